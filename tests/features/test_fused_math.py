"""Compiled code is kept in a folder that the user can write to."""

from __future__ import annotations

from pathlib import Path

import numba
import pytest
from numba.core import caching

from rwf.features._fused_math import compiled

LOCATORS = caching.CacheImpl._locator_classes


def double(x):
    return 2 * x


def folder():
    function = compiled(double)
    assert function(3) == 6
    path = Path(function.stats.cache_path)
    assert any(path.glob("*double*.nbc"))
    return path


@pytest.fixture
def installed_by_another_user(monkeypatch):
    """No folder beside the sources can be written to: numba passes on to the next."""
    elsewhere = [c for c in LOCATORS if "InTree" not in c.__name__]
    assert len(elsewhere) < len(LOCATORS)
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", elsewhere)


@pytest.mark.usefixtures("installed_by_another_user")
def test_code_is_cached_in_the_home_of_the_user_or_where_a_variable_says(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert folder().is_relative_to(tmp_path / "home" / "numba")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "chosen"))
    assert folder().is_relative_to(tmp_path / "chosen")


def test_without_any_such_folder_code_is_compiled_anew(monkeypatch):
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    assert compiled(double)(3) == 6
