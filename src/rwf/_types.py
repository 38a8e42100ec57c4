"""The array types that signatures use."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
"""Float64 data: everything the engine multiplies and factorises."""

FloatArray: TypeAlias = NDArray[np.float64] | NDArray[np.float32]
"""Feature values, which may be stored in single precision."""

IntArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]
