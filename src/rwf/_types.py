"""The array types that signatures use.

A dataclass that is saved names the lengths of its arrays: ``shifts: Annotated[Array, "m d"]``.
Equal names within one class mean equal lengths, and "..." stands for any shape. ``rwf.persistence``
checks them when a file is written or read.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
"""Float64 data: everything the solvers multiply and factorise."""

FloatArray: TypeAlias = NDArray[np.float64] | NDArray[np.float32]
"""Feature values, which may be stored in single precision."""

IntArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]
