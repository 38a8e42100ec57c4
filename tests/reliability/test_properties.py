"""What goes wrong around a fit: full disks, refused permissions, other threads, other machines; and
any choice of parameters.

Interrupts are in test_cli_models and test_checkpoints, damaged files in test_fuzz_cli.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import rwf
from rwf import RFFRegressor, RWFRegressor, TableRegressor, cli
from rwf.data import stream
from rwf.fit import pipeline as fitting
from rwf.persistence import checkpoint as checkpoints
from rwf.persistence import file

pytestmark = pytest.mark.filterwarnings("ignore::rwf.NoImprovementWarning")

QUICK = {"n_components": 20, "max_iter": 3, "n_restarts": 0, "random_state": 0}


def table(n=120):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"height": rng.uniform(2, 9, n), "age": rng.integers(1, 80, n)})
    frame["price"] = 30 + 5 * np.sin(frame.height) + 0.3 * rng.normal(size=n)
    return frame


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.rwf"
    TableRegressor(**QUICK).fit(table(), target="price").save(path)
    return path


@pytest.fixture
def work(tmp_path, monkeypatch, model_file):
    """A folder with rows, a model of them, and a file that commands are told to replace."""
    monkeypatch.chdir(tmp_path)
    table().to_csv("rows.csv", index=False)
    (tmp_path / "model.rwf").write_bytes(model_file.read_bytes())
    for name in ("out.csv", "out.csv.gz", "out.parquet", "out.rwf", "out.html"):
        (tmp_path / name).write_text("precious")
    return tmp_path


def run(monkeypatch, capsys, *arguments):
    """Exit code and standard error of a command."""
    monkeypatch.setattr(sys, "argv", ["rwf", *arguments])
    with pytest.raises(SystemExit) as stopped, warnings.catch_warnings(action="ignore"):
        cli.main()
    return stopped.value.code, capsys.readouterr().err


COMMANDS = {
    "fit": "fit rows.csv --target price --out out.rwf --force --n-components 20 --max-iter 3 "
    "--n-restarts 0 --quiet --validate none",
    "predict to CSV": "predict model.rwf rows.csv --out out.csv --force",
    "predict to compressed CSV": "predict model.rwf rows.csv --out out.csv.gz --force",
    "predict to Parquet": "predict model.rwf rows.csv --out out.parquet --force",
    "update": "update model.rwf rows.csv",
    "merge": "merge model.rwf model.rwf --out out.rwf --force",
    "report": "report model.rwf rows.csv --out out.html --force",
}
each_command = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def no_room(descriptor):
    raise OSError(errno.ENOSPC, "No space left on device")


def denied(self, *arguments, **options):
    raise PermissionError(errno.EACCES, "Permission denied", str(self))


@each_command
def test_a_disk_that_is_full_at_the_end_costs_nothing_but_the_result(
    work, monkeypatch, capsys, command
):
    before = contents(work)
    monkeypatch.setattr(file.os, "fsync", no_room)
    code, said = run(monkeypatch, capsys, *command.split())
    assert code == 1
    name = "model.rwf" if command.startswith("update") else command.split("--out ")[1].split()[0]
    assert said.startswith("rwf: [Errno 28] No space left on device: ")
    assert name in said
    assert "Traceback" not in said
    assert contents(work) == before


@each_command
def test_a_write_that_fails_on_the_way_costs_nothing_but_the_result(
    work, monkeypatch, capsys, command
):
    """The kernel refuses to make a file longer than a thousand bytes, as a full disk would."""
    before = contents(work)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        code, said = run(monkeypatch, capsys, *command.split())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code == 1
    assert "too large" in said
    assert "Traceback" not in said
    assert contents(work) == before


@each_command
@pytest.mark.parametrize("step", ["open", "replace"])
def test_a_folder_that_may_not_be_written_costs_nothing_but_the_result(
    work, monkeypatch, capsys, command, step
):
    """The user who runs the tests may be one to whom permissions do not apply."""
    before, path, own = contents(work), file.Path, getattr(file.Path, step)

    def guarded(self, *arguments, **options):
        hidden = self.name.startswith((".out", ".model"))
        return (denied if hidden else own)(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(path, step, guarded)
        code, said = run(monkeypatch, capsys, *command.split())
    assert (code, "Permission denied" in said, "Traceback" in said) == (1, True, False)
    assert contents(work) == before


def test_devices_and_pipes_are_not_replaced_by_files(work, monkeypatch, capsys):
    os.mkfifo("pipe.csv")
    predict = ["predict", "model.rwf", "rows.csv", "--out", "pipe.csv", "--force"]
    code, said = run(monkeypatch, capsys, *predict)
    assert (code, "is a device or a pipe" in said) == (2, True)
    with pytest.raises(ValueError, match=r"device or a pipe.*give another"):
        rwf.load("model.rwf").save("pipe.csv")
    assert (work / "pipe.csv").is_fifo()


def test_a_disk_that_fills_up_during_a_fit_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    for owner, name, value in (
        (stream, "BLOCK_BYTES", 1),
        (stream, "SEGMENT", 2),
        (checkpoints, "SECONDS", 0.0),
        (checkpoints, "SHARE", 1e9),
        (fitting, "STREAM_SAMPLE", 1000),
    ):
        monkeypatch.setattr(owner, name, value)
    rng = np.random.default_rng(7)
    X = rng.uniform(2.0, 5.0, (4000, 2))
    y = np.sin(5 * X[:, 0]) + 0.1 * rng.normal(size=4000)
    path, calls, fsync = tmp_path / "fit.checkpoint", [], os.fsync

    def filling_up(descriptor):
        calls.append(descriptor)
        return no_room(descriptor) if len(calls) > 6 else fsync(descriptor)

    def blocks():
        return ((X[i : i + 250], y[i : i + 250]) for i in range(0, 4000, 250))

    quick = RWFRegressor(prior="random_features", noise="constant", **QUICK)
    with monkeypatch.context() as patch:
        patch.setattr(file.os, "fsync", filling_up)
        with pytest.raises(OSError, match=r"No space left on device: .*fit\.checkpoint"):
            clone(quick).fit(blocks, checkpoint=path)
    assert {p.name for p in tmp_path.iterdir()} == {"fit.checkpoint", "fit.checkpoint.previous"}
    again, whole = clone(quick).fit(blocks, checkpoint=path), clone(quick).fit(blocks)
    assert_allclose(again.predict(X[:50]), whole.predict(X[:50]), rtol=1e-9)
    assert list(tmp_path.iterdir()) == []


# Threads


def regressors():
    return [
        RWFRegressor(prior="nystrom", **QUICK),
        RWFRegressor(prior="random_features", **QUICK),
        RWFRegressor(solver="multifrontal", **QUICK),
        RFFRegressor(**QUICK),
    ]


def test_fits_in_threads_give_the_numbers_of_fits_one_after_another():
    rng = np.random.default_rng(8)
    X = rng.uniform(2.0, 5.0, (300, 2))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=300)

    def predictions(model):
        return np.array(model.fit(X, y).predict(X, return_std=True))

    expected = [predictions(model) for model in regressors()]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(predictions, regressors() + regressors()))
    # A product may have one BLAS thread or several, by what else runs: it rounds otherwise then.
    assert_allclose(found, expected + expected, rtol=1e-6, atol=1e-8)


OVERLAP = """
import threading
import numpy
import scipy.linalg
from threadpoolctl import threadpool_info
from rwf.linalg.threads import one_blas_thread

def blas():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

inside, first_left, leave = (threading.Event() for _ in range(3))

def first():
    with one_blas_thread():
        threads[1].start()
        inside.wait(60)
    first_left.set()

def second():
    with one_blas_thread():
        inside.set()
        leave.wait(60)

seen, threads = [blas()], [threading.Thread(target=target) for target in (first, second)]
threads[0].start()
first_left.wait(60)
seen.append(blas())
leave.set()
threads[1].join(60)
print([*seen, blas()])
"""


def python(program, *arguments, threads):
    """A process of its own, with so many threads for BLAS."""
    limits = {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program, *arguments],
        env={**os.environ, **limits},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_threads_that_share_a_limit_leave_blas_as_it_was():
    out, err = python(OVERLAP, threads=2).communicate(timeout=120)
    assert out, err
    before, between, after = json.loads(out)
    assert between == [1] * len(before)  # the second is still at work
    assert after == before


SEVERAL = """
import json, os, sys
threads = int(sys.argv[1])
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
import numpy as np
from rwf import RFFRegressor, RWFRegressor
rng = np.random.default_rng(8)
X = rng.uniform(2.0, 5.0, (3000, 2))
y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=3000)
quick = {"n_components": 200, "max_iter": 3, "n_restarts": 0, "random_state": 0}
models = RWFRegressor(prior="random_features", **quick), RFFRegressor(**quick)
models += (RWFRegressor(prior="multiscale", solver="multifrontal", **quick),)
print(json.dumps([np.array(m.fit(X, y).predict(X, return_std=True)).tolist() for m in models]))
"""


def test_one_core_and_two_agree_to_rounding():
    """Sums over rows are made in another order, which learning magnifies to 1e-8 or so."""
    running = [python(SEVERAL, str(threads), threads=threads) for threads in (1, 2)]
    ended = [process.communicate(timeout=300) for process in running]
    assert [process.returncode for process in running] == [0, 0], ended
    one, two = (np.array(json.loads(out)) for out, _ in ended)
    assert_allclose(one, two, rtol=1e-6, atol=1e-8)


# Any parameters

SHARED = {
    "n_components": st.sampled_from([None, 1, 9, 40]),
    "metric": st.sampled_from(["auto", "isotropic", "ard", "full"]),
    "log_skewed": st.booleans(),
    "trend": st.sampled_from(["linear", "constant", "none"]),
    "noise": st.sampled_from(["auto", "constant", "heteroscedastic", "student"]),
    "calibration": st.sampled_from(["local", "global", None]),
    "variances": st.sampled_from(["block", "unit"]),
    "max_iter": st.integers(1, 4),
    "n_restarts": st.integers(0, 2),
    "random_state": st.integers(0, 2**32 - 1),
}
FOURIER = {
    **SHARED,
    "kernel": st.sampled_from(["se", "matern12", "matern32", "matern52"]),
    "n_blocks": st.integers(1, 3),
}
WAVELET = {
    **{name: values for name, values in SHARED.items() if name != "variances"},
    "prior": st.sampled_from(["auto", "nystrom", "multiscale", "adaptive", "random_features"]),
    "solver": st.sampled_from(["auto", "dense", "multifrontal"]),
    "neighbors": st.sampled_from(["auto", 5, None]),
}
models = st.one_of(
    st.fixed_dictionaries({}, optional=FOURIER).map(lambda given: RFFRegressor(**given)),
    st.fixed_dictionaries({}, optional=WAVELET).map(lambda given: RWFRegressor(**given)),
)


@settings(max_examples=40)
@given(model=models, d=st.integers(1, 3), k=st.integers(1, 2), seed=st.integers(0, 9))
def test_any_choice_of_parameters_fits_predicts_and_is_cloned(model, d, k, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(3.0, 2.0, (30, d))
    y = np.abs(X).sum(axis=1, keepdims=True) * [1.0, -20.0][:k] + 0.1 * rng.normal(size=(30, k))
    parameters = model.get_params()
    copies = clone(model), type(model)().set_params(**parameters)
    assert all(copy.get_params() == parameters for copy in copies)
    if getattr(model, "solver", "") == "multifrontal" and model.prior not in ("auto", "multiscale"):
        with pytest.raises(ValueError, match="solver='multifrontal'"):
            model.fit(X, y)
        return
    if model.noise == "student" and isinstance(getattr(model, "neighbors", None), int):
        with pytest.raises(ValueError, match="neighbors=None"):
            model.fit(X, y)
        return
    with warnings.catch_warnings(action="ignore"):
        mean, std = model.fit(X, y).predict(np.vstack([X, 100 * X]), return_std=True)
        if model.random_state is not None:
            assert_array_equal(copies[0].fit(X, y).predict(X), model.predict(X))
    assert model.get_params() == parameters  # fitting changes none
    assert mean.shape == std.shape == (60, k)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std > 0).all()
