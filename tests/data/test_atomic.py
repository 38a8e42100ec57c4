"""Files that are written all or nothing."""

from __future__ import annotations

import pytest

from rwf.data.atomic import replace_file


def test_a_folder_that_is_missing_is_named_and_not_a_file_of_ours(tmp_path):
    path = tmp_path / "models" / "a.rwf"
    with pytest.raises(FileNotFoundError, match=r"no folder '.*models' for 'a\.rwf': make it") as e:
        replace_file(path, lambda file: file.write(b"x"))
    assert ".a.rwf." not in str(e.value)
    path.parent.mkdir()
    replace_file(path, lambda file: file.write(b"x"))
    assert path.read_bytes() == b"x"
