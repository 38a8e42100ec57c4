"""Rows on disk."""

import pytest

from experiments.runner import store


def test_rows_are_appended_and_the_last_of_a_key_counts(tmp_path):
    path = tmp_path / "deep" / "suite.jsonl"
    assert store.read(path) == []
    for row in ({"key": "a", "x": 1}, {"key": "b", "x": 2}, {"key": "a", "x": 3}):
        store.append(path, row)
    assert store.read(path) == [{"key": "a", "x": 3}, {"key": "b", "x": 2}]


def test_a_line_torn_by_a_crash_costs_only_itself(tmp_path):
    path = tmp_path / "suite.jsonl"
    path.write_text('{"key": "a"}\n{"key": "b", "rm')
    store.append(path, {"key": "c"})
    with pytest.warns(UserWarning, match="line 2 is not JSON"):
        assert store.read(path) == [{"key": "a"}, {"key": "c"}]


def test_what_is_not_a_number_is_not_stored(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        store.append(tmp_path / "suite.jsonl", {"key": "a", "rmse": float("nan")})
