"""No file, whatever is in it, gets more out of the readers, the loader and the commands than errors
of the documented classes: no other exception, no hang, and no output that was overwritten.

RWF_FUZZ_CASES says how many cases each test has; a few thousand of them take seconds. A case that
fails names its number, by which it can be made again, and becomes a regression test below.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rwf
from rwf import TableRegressor, cli
from rwf.data.readers import open_table
from rwf.data.schema import EncodedReader, Roles, learn_schema
from rwf.errors import ModelFileError
from rwf.persistence.file import DIGEST, PREFIX

pytestmark = pytest.mark.filterwarnings("ignore::rwf.errors.UnknownCategoryWarning")

DOCUMENTED = (ValueError, OSError)
"""What bad data raise; ModelFileError is a ValueError, and so is NoSuchColumnError."""

PATIENCE = 20.0
"""Seconds that no case may take, on a busy machine."""

TOKENS = [
    b",", b"\n", b"\r\n", b'"', b"'", b"NaN", b"inf", b"-inf", b"1e999", b"-0", b"0x1F", b"null",
    b"true", b"2020-01-01", b"2020-01-01T00:00:00Z", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b";",
    b"\xf0\x9f\x8c\x8a", b"<script>", b"=1+1", b"a,b,colour,y\n", b",,,\n", b"1" * 400, b"",
]  # fmt: skip


def count(usual):
    return int(os.environ.get("RWF_FUZZ_CASES", usual))


def table(n=40):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "a": rng.uniform(2, 9, n),
            "b": rng.integers(-5, 50, n),
            "colour": rng.choice(["red", "blue", "sea green"], n),
        }
    )
    frame["y"] = 3 + np.sin(frame.a) + (frame.colour == "red") + 0.1 * rng.normal(size=n)
    return frame


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a good table and a tiny model of it."""
    folder = tmp_path_factory.mktemp("fuzz")
    frame = table()
    frame.to_csv(folder / "good.csv", index=False)
    frame.to_parquet(folder / "good.parquet", row_group_size=15)
    quick = TableRegressor(8, max_iter=1, n_restarts=0, random_state=0)
    with warnings.catch_warnings(action="ignore"):
        quick.fit(frame, target="y").save(folder / "good.rwf")
    return folder


def mutated(content, rng, tokens=TOKENS):
    """A few bytes changed, cut out, put in, doubled or cut off."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(len(data) + 1))
        match int(rng.integers(6)):
            case 0 if data:
                data[at % len(data)] = int(rng.integers(256))
            case 1:
                del data[at : at + int(rng.integers(1, 30))]
            case 2:
                data[at:at] = tokens[int(rng.integers(len(tokens)))]
            case 3:
                data[at:at] = data[at : at + int(rng.integers(1, 60))]
            case 4 if rng.uniform() < 0.2:
                del data[at:]
            case 5 if data:
                data[at % len(data)] ^= 1 << int(rng.integers(8))
    return bytes(data)


def made_up(rng):
    """A table of random cells, which may or may not have the columns of the model."""
    cells = [b"1", b"2.5", b"-3e4", b"red", b"blue", b"", b"x y"]
    cells += [t for t in TOKENS if rng.uniform() < 0.1 or not {*b',\n\r"'} & {*t}]
    names = [b"a", b"b", b"colour", b"y", b"", b"a"]
    width = int(rng.integers(1, 7))
    lines = [b",".join(names[int(i)] for i in rng.integers(0, len(names), width))]
    if rng.uniform() < 0.6:
        lines, width = [b"a,b,colour,y"], 4
    for _ in range(int(rng.integers(0, 12))):
        lines.append(b",".join(cells[int(i)] for i in rng.integers(0, len(cells), width)))
    return b"\n".join(lines)


def with_other_cells(content, rng):
    """The table with some cells replaced, and its columns in another order."""
    lines = [line.split(b",") for line in content.split(b"\n") if line]
    cells = [t for t in TOKENS if not {*b',\n\r"'} & {*t}] + [b"blue", b"7", b"purple", b" red"]
    for _ in range(int(rng.integers(0, 5))):
        row, column = int(rng.integers(rng.uniform() < 0.95, len(lines))), int(rng.integers(4))
        lines[row][column] = cells[int(rng.integers(len(cells)))]
    order = rng.permutation(4)
    return b"\n".join(b",".join(line[i] for i in order) for line in lines)


def odd_columns(n, rng):
    """A table of columns that Parquet can hold and that mean nothing to a model, among others."""
    numbers, gaps = rng.normal(3, 2, n), rng.uniform(size=n) < 0.2
    texts = np.array(["red", "blue", "sea green", "", "purple"])[rng.integers(0, 5, n)].tolist()
    binary = pa.array([t.encode() + bytes([int(rng.integers(256))]) for t in texts], pa.binary())
    kinds = {
        "double": pa.array(numbers, mask=gaps),
        "half": pa.array(numbers.astype(np.float16)),
        "infinite": pa.array(np.where(gaps, np.inf, numbers)),
        "integer": pa.array(rng.integers(-9, 9, n), mask=gaps),
        "large": pa.array(rng.integers(0, 2**63, n, dtype=np.uint64)),
        "bool": pa.array(gaps, mask=rng.uniform(size=n) < 0.1),
        "decimal": pa.array(numbers.round(2).astype(str).tolist()).cast(pa.decimal128(12, 6)),
        "null": pa.nulls(n),
        "text": pa.array(texts),
        "texts": pa.array(texts, pa.large_string()),
        "dictionary": pa.array(texts).dictionary_encode(),
        "numbered": pa.array(rng.integers(0, 3, n)).dictionary_encode(),
        "gaps": pa.array(texts, mask=gaps),
        "binary": binary,
        "no unicode": pa.Array.from_buffers(pa.string(), n, binary.buffers()),
        "date": pa.array(rng.integers(0, 9999, n).astype("datetime64[D]")),
        "list": pa.array([[x] for x in numbers]),
        "struct": pa.array([{"x": x} for x in numbers]),
    }
    usual = {"a": "double", "b": "integer", "colour": "text", "y": "double"}
    for name in usual:
        if rng.uniform() < 0.4:
            usual[name] = [*kinds][int(rng.integers(len(kinds)))]
    names = [*usual, "a" if rng.uniform() < 0.02 else "z"]
    columns = [*(kinds[kind] for kind in usual.values()), kinds["double"]]
    return pa.table(columns, names=names)


class Case:
    """Runs one case, and says which it was if something else than a documented error comes out.

    The error must name the file, where that is asked for, or the column.
    """

    def __init__(self, number, content, allowed=DOCUMENTED, where=""):
        self.number, self.content, self.allowed, self.where = number, content, allowed, where

    def __enter__(self):
        self.begun = time.perf_counter()

    def __exit__(self, kind, error, trace):
        assert time.perf_counter() - self.begun < PATIENCE, f"case {self.number} takes too long"
        if error is None or isinstance(error, self.allowed):
            assert error is None or str(error).strip(), f"case {self.number} says nothing"
            assert not isinstance(error, UnicodeError), f"case {self.number}: {error!r}"
            said = f"{self.where if error is None else error}"
            assert self.where in said or "column '" in said, f"case {self.number}: {error!r}"
            return True
        if isinstance(error, Exception):
            raise AssertionError(f"case {self.number}: {error!r} from {self.content!r}") from error
        return False


def read_everything(path, schema, rng):
    """Learn a schema from a table, or take the model's, and read all rows by it."""
    if rng.uniform() < 0.5:
        features = None if rng.uniform() < 0.5 else ["colour", "a"]
        weight = "b" if rng.uniform() < 0.2 else None
        declared = ["a"] if rng.uniform() < 0.2 else []
        roles = Roles("y", weight, features=features, categorical=declared)
        found, files = learn_schema(
            open_table(path), roles, strict=rng.uniform() < 0.3, max_one_hot=2
        )
        reader = EncodedReader.of(files, found.schema, targets=True, learning=True)
    else:
        options = {"targets": rng.uniform() < 0.5, "strict": rng.uniform() < 0.5}
        reader = EncodedReader.of(open_table(path), schema, **options)
    for block in reader.read():
        assert np.isfinite(block.X).all()
        assert block.X.shape[1] == reader.n_inputs
        assert np.isfinite(block.y).all()


def test_csv_files_give_rows_or_documented_errors(home):
    good, schema = (home / "good.csv").read_bytes(), rwf.load(home / "good.rwf").schema_
    for number in range(count(2400)):
        rng = np.random.default_rng([1, number])
        make = (mutated, with_other_cells, lambda _, rng: made_up(rng))[number % 3]
        content = make(good, rng)
        zipped = rng.uniform() < 0.1
        path = home / ("case.csv.gz" if zipped else "case.csv")
        path.write_bytes(gzip.compress(content, 1) if zipped else content)
        if zipped and rng.uniform() < 0.3:
            path.write_bytes(mutated(path.read_bytes(), rng))
        with Case(number, content, where=path.name):
            read_everything(path, schema, rng)


def test_parquet_files_give_rows_or_documented_errors(home):
    good, schema = (home / "good.parquet").read_bytes(), rwf.load(home / "good.rwf").schema_
    path = home / "case.parquet"
    for number in range(count(1600)):
        rng = np.random.default_rng([2, number])
        if number % 2:
            pq.write_table(odd_columns(int(rng.integers(0, 30)), rng), path)
            content = path.read_bytes()
        else:
            content = mutated(good, rng)
            path.write_bytes(content)
        with Case(number, content, where=path.name):
            read_everything(path, schema, rng)


def repaired(content):
    """The file with a right checksum, and the right length of its header where it still has one."""
    body = content[:-DIGEST]
    return body + hashlib.sha256(body).digest()


def with_header(content, header):
    _, version, length = PREFIX.unpack(content[: PREFIX.size])
    text = json.dumps(header).encode()
    rest = content[PREFIX.size + length : -DIGEST]
    body = PREFIX.pack(b"RWFMODEL", version, len(text)) + text + rest
    return body + hashlib.sha256(body).digest()


def changed_somewhere(value, rng):
    """JSON with one of its parts replaced, left out or doubled."""
    if isinstance(value, dict) and value and rng.uniform() < 0.9:
        key = list(value)[int(rng.integers(len(value)))]
        if rng.uniform() < 0.1:
            return {other: each for other, each in value.items() if other != key}
        return {**value, key: changed_somewhere(value[key], rng)}
    if isinstance(value, list) and value and rng.uniform() < 0.9:
        at = int(rng.integers(len(value)))
        if rng.uniform() < 0.1:
            return value[:at] + value[at : at + 1] * int(rng.integers(0, 3)) + value[at + 1 :]
        return [*value[:at], changed_somewhere(value[at], rng), *value[at + 1 :]]
    others = [None, True, -1, 0, 3, 2**70, 1e300, "", "nan", "red", [], {}, [[]], {"object": 0}]
    return others[int(rng.integers(len(others)))]


def test_model_files_are_loaded_or_refused(home):
    good = (home / "good.rwf").read_bytes()
    length = PREFIX.unpack(good[: PREFIX.size])[2]
    header = json.loads(good[PREFIX.size : PREFIX.size + length])
    path, frame = home / "case.rwf", table(3)
    for number in range(count(1500)):
        rng = np.random.default_rng([3, number])
        if rng.uniform() < 0.6:
            # Tables are what this file is about: their part of the header has half of the cases.
            part = "table" if rng.uniform() < 0.5 else None
            if part and rng.uniform() < 0.5:
                objects = header["objects"]
                at = len(objects) - 1 - int(rng.integers(6))
                other = [*objects[:at], changed_somewhere(objects[at], rng), *objects[at + 1 :]]
                content = with_header(good, {**header, "objects": other})
            elif part:
                changed = changed_somewhere(header["table"], rng)
                content = with_header(good, {**header, "table": changed})
            else:
                content = with_header(good, changed_somewhere(header, rng))
        else:
            content = mutated(good, rng)
            content = repaired(content) if rng.uniform() < 0.5 else content
        path.write_bytes(content)
        model = None
        with Case(number, content[:2000], (ModelFileError,)):
            model = rwf.load(path)
        if isinstance(model, TableRegressor) and rng.uniform() < 0.2:
            with Case(number, content[:2000]), np.errstate(all="ignore"), quiet():
                model.predict(frame)


def quiet():
    return warnings.catch_warnings(action="ignore")


def run(arguments, monkeypatch):
    """The exit code of the command line."""
    monkeypatch.setattr(sys, "argv", ["rwf", *map(str, arguments)])
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    try:
        with quiet(), np.errstate(all="ignore"):
            cli.main()
    except SystemExit as stopped:
        assert "Traceback" not in sys.stderr.getvalue()
        return stopped.code
    raise AssertionError("the command line returned")


def test_commands_end_with_a_code_and_overwrite_nothing_but_on_success(home, monkeypatch):
    csv, model = (home / "good.csv").read_bytes(), (home / "good.rwf").read_bytes()
    codes = set()
    for number in range(count(300)):
        rng = np.random.default_rng([4, number])
        data, file, out = home / "cli.csv", home / "cli.rwf", home / "cli-out.csv"
        data.write_bytes(csv if rng.uniform() < 0.2 else mutated(csv, rng))
        file.write_bytes(model if rng.uniform() < 0.8 else mutated(model, rng))
        out.write_bytes(b"precious")
        update = rng.uniform() < 0.3
        if update:
            before = file.read_bytes()
            code = run(["update", file, data], monkeypatch)
            assert code == 0 or file.read_bytes() == before, f"case {number}"
        else:
            force = ["--force"] if rng.uniform() < 0.8 else []
            code = run(["predict", file, data, "--out", out, *force], monkeypatch)
            assert code == 0 or out.read_bytes() == b"precious", f"case {number}"
            assert code != 0 or out.read_bytes().startswith(b'"mean","std","lower","upper"')
        assert code in (0, 1, 2, 3), f"case {number}: {code}"
        codes.add(code)
        assert not [*home.glob(".cli*")], f"case {number} leaves a file behind"
    assert codes == {0, 1, 2, 3}
