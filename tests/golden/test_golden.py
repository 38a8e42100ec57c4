"""Stored predictions of small fits: refactoring must not move them.

``python tests/golden/test_golden.py`` stores them anew, for a change that must move them, which
the commit then says. They are compared to 1e-10 where the linear algebra rounds as on the machine
that stored them. Sampling and L-BFGS amplify the last bits of other machines: there, to 1e-4.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent))
from configurations import CONFIGURATIONS

NUMBERS = Path(__file__).with_name("numbers.json")


def arithmetic() -> str:
    """Of the bits of products, a factorisation and an exponential, on one thread."""
    with threadpool_limits(1):
        return _arithmetic()


def _arithmetic() -> str:
    A = np.random.default_rng(0).normal(size=(300, 170))
    parts = [A.T @ A, np.linalg.cholesky(A.T @ A), np.exp(A), np.linalg.eigvalsh(A.T @ A)]
    digest = hashlib.sha256(b"".join(part.tobytes() for part in parts))
    return f"numpy {np.__version__}, {digest.hexdigest()[:16]}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_stored_numbers_are_reproduced(name):
    stored = json.loads(NUMBERS.read_text(encoding="utf-8"))
    tolerance = 1e-10 if arithmetic() == stored["arithmetic"] else 1e-4
    with threadpool_limits(1):
        found = CONFIGURATIONS[name]()
    assert found.keys() == stored["numbers"][name].keys()
    for quantity, values in found.items():
        expected = stored["numbers"][name][quantity]
        assert_allclose(values, expected, rtol=tolerance, atol=tolerance, err_msg=quantity)


def store(names: list[str]) -> None:
    """Store the numbers of some configurations, or of all."""
    old = json.loads(NUMBERS.read_text(encoding="utf-8")) if NUMBERS.exists() else {}
    numbers = old.get("numbers", {})
    for name in names or CONFIGURATIONS:
        with threadpool_limits(1):
            numbers[name] = CONFIGURATIONS[name]()
    content = {"arithmetic": arithmetic(), "numbers": numbers}
    NUMBERS.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    store(sys.argv[1:])
