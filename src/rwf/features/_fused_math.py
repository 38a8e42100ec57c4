"""What fused loops are made of: compilation, wide vectors, and exp, sin and cos without branches.

The functions are polynomials, because a call to libm would stop the compiler from using vector
instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# All but reassociation, which would undo the two-part range reductions.
FAST = {"contract", "nnan", "ninf", "nsz", "arcp"}


def compiled(function: Callable[..., Any], sums: bool = False) -> Callable[..., Any]:
    """Compile on first call; keep the machine code on disk where a cache directory is writable.

    With ``sums``, these are in any order, as vector instructions need.
    """
    fast = FAST | {"reassoc"} if sums else FAST
    options: dict[str, Any] = {
        "nogil": True,
        "fastmath": fast,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,
    }
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # no writable cache directory
        return njit(**options)(function)


@intrinsic
def wide(context: Any) -> Any:
    """Ask for vectors of 512 bits in the function that calls this, where the machine has them.

    LLVM prefers 256 bits for the sake of old processors that slowed down; polynomials gain half.
    """

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        # The set's own method, as llvmlite's admits only the attributes that it has a name for.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), generate


@intrinsic
def _float_of_bits(context: Any, bits: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic
def _bits_of_float(context: Any, value: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@njit(inline="always", fastmath=FAST)
def exp(x: float) -> float:
    """e^x for -700 < x < 700: a polynomial on |f| <= ln(2)/2, and k added to its exponent."""
    shifted = x * 1.4426950408889634 + 6755399441055744.0  # 1.5·2⁵²: the last bits are k, rounded
    k = shifted - 6755399441055744.0
    f = x - k * 0.6931471803691238 - k * 1.9082149292705877e-10
    p = 1.0 / 479001600
    p = p * f + 1.0 / 39916800
    p = p * f + 1.0 / 3628800
    p = p * f + 1.0 / 362880
    p = p * f + 1.0 / 40320
    p = p * f + 1.0 / 5040
    p = p * f + 1.0 / 720
    p = p * f + 1.0 / 120
    p = p * f + 1.0 / 24
    p = p * f + 1.0 / 6
    p = p * f + 0.5
    p = p * f + 1.0
    p = p * f + 1.0
    return _float_of_bits(_bits_of_float(p) + (_bits_of_float(shifted) << 52))


@njit(inline="always", fastmath=FAST)
def cos_sin(x: float) -> tuple[float, float]:
    """cos x and sin x for |x| < 1e8: reduction by quarter turns, then Taylor on |r| <= π/4."""
    shifted = x * 0.6366197723675814 + 6755399441055744.0
    turns = shifted - 6755399441055744.0
    k: int = _bits_of_float(shifted)
    r = turns * -1.5707963267341256 + x
    r = r - turns * 6.077100506303966e-11 - turns * 2.0222662487959506e-21
    z = r * r
    c = 1.0 / 20922789888000
    c = c * z - 1.0 / 87178291200
    c = c * z + 1.0 / 479001600
    c = c * z - 1.0 / 3628800
    c = c * z + 1.0 / 40320
    c = c * z - 1.0 / 720
    c = c * z + 1.0 / 24
    c = c * z - 0.5
    c = c * z + 1.0
    s = -1.0 / 1307674368000
    s = s * z + 1.0 / 6227020800
    s = s * z - 1.0 / 39916800
    s = s * z + 1.0 / 362880
    s = s * z - 1.0 / 5040
    s = s * z + 1.0 / 120
    s = s * z - 1.0 / 6
    s = (s * z + 1.0) * r
    odd = (k & 1) == 1
    cosine = s if odd else c
    sine = c if odd else s
    cosine = -cosine if ((k + 1) & 2) == 2 else cosine
    sine = -sine if (k & 2) == 2 else sine
    return cosine, sine
