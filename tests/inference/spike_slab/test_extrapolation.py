"""Gaps between rows: where the variance of a spike-and-slab model returns to that of the prior."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rwf.inference.spike_slab.extrapolation import GapReversion


@given(st.integers(2, 40), st.integers(0, 10**6), st.floats(-3, 3))
def test_the_prior_share_is_zero_among_rows_and_grows_away_from_them(n, seed, power):
    x = 10.0**power * np.random.default_rng(seed).normal(size=n)
    gaps = GapReversion.between(x)
    assert_array_equal(gaps.prior_share(x), 0.0)
    span = np.ptp(x) or 1.0
    assert_allclose(gaps.prior_share(np.array([x.min() - 40 * span, x.max() + 40 * span])), 1.0)
    line = np.linspace(x.max(), x.max() + 3 * span, 50)
    assert (np.diff(gaps.prior_share(line)) >= 0).all()
    # Shift and unit do not matter.
    q = np.random.default_rng(seed + 1).normal(size=20) * span
    assert_allclose(
        GapReversion.between(3 * x + 7).prior_share(3 * q + 7),
        gaps.prior_share(q),
        rtol=1e-5,
        atol=1e-9,
    )
