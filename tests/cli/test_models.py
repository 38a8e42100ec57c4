"""From a table to a model and to predictions by commands: every way there, and every wrong turn."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from typer.testing import CliRunner

import rwf
from rwf import TableRegressor, cli
from rwf.cli.app import app
from rwf.data.readers import base
from rwf.diagnostics.scores import linear_prediction

QUICK = ["--n-components", "20", "--max-iter", "3", "--n-restarts", "0", "--quiet"]
NONE = [*QUICK, "--validate", "none"]


def make(n=120, seed=4):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "height": rng.uniform(2, 9, n),
            "age": rng.integers(1, 80, n),
            "colour": rng.choice(["red", "blue", "sea green"], n),
            "times": rng.integers(1, 4, n),
        }
    )
    frame["price"] = (
        30 + 5 * np.sin(frame.height) + 3 * (frame.colour == "red") + 0.3 * rng.normal(size=n)
    )
    return frame


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A folder with a table as CSV and Parquet."""
    monkeypatch.chdir(tmp_path)
    make().to_csv("rows.csv", index=False)
    make().to_parquet("rows.parquet")
    return tmp_path


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs a command as its user does: exit code, standard output, standard error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["rwf", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped, warnings.catch_warnings():
            cli.main()
        said = capsys.readouterr()
        return stopped.value.code or 0, said.out, said.err

    return run


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """The bytes of a model of four columns."""
    path = tmp_path_factory.mktemp("model") / "model.rwf"
    quick = TableRegressor(20, max_iter=3, n_restarts=0, random_state=0)
    quick.fit(make(), target="price").save(path)
    return path.read_bytes()


@pytest.fixture
def model(work, fitted):
    (work / "model.rwf").write_bytes(fitted)
    return work / "model.rwf"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_whole_way(work, command, kind):
    fit = ["fit", f"rows.{kind}", "--target", "price", "--out", "base.rwf", *QUICK, "--json"]
    code, out, err = command(*fit)
    assert code == 0, err
    answer = json.loads(out)
    assert answer["rows"] == 120
    assert [column["name"] for column in answer["columns"]] == ["height", "age", "colour", "times"]
    scores = answer["scores"]
    assert scores["n_rows"] == 24
    assert scores["model"]["rmse"] < scores["constant"]["rmse"]
    assert set(scores["linear"]) == {"rmse", "nll", "coverage"}

    code, out, err = command("predict", "base.rwf", f"rows.{kind}", "--out", "p.csv", "--json")
    assert code == 0, err
    assert json.loads(out)["rows"] == 120
    predicted = pd.read_csv("p.csv")
    assert [*predicted.columns] == ["mean", "std", "lower", "upper"]
    mean, std = rwf.load("base.rwf").predict(make(), return_std=True)
    assert_allclose(predicted["mean"], mean, rtol=1e-12)
    reach = (predicted["upper"] - predicted["lower"]) / (2 * std)
    assert ((reach > 1.83) & (reach < 2.0)).all()  # of t's with 3 to 10 degrees of freedom

    for part, seed in (("left", 5), ("right", 6)):
        make(60, seed).to_csv(f"{part}.csv", index=False)
        assert (
            command("update", "base.rwf", f"{part}.csv", "--fresh", "--out", f"{part}.rwf")[0] == 0
        )
    code, out, _ = command("merge", "left.rwf", "right.rwf", "--out", "both.rwf", "--json")
    assert (code, json.loads(out)["rows"]) == (0, 120)
    both = pd.concat([make(60, 5), make(60, 6)])
    whole = rwf.load("base.rwf").empty_copy().partial_fit(both)
    assert_allclose(rwf.load("both.rwf").predict(make()), whole.predict(make()), rtol=1e-6)

    code, out, _ = command("update", "base.rwf", "left.csv", "--json")
    assert (code, json.loads(out)["rows"]) == (0, 180)
    code, out, _ = command("inspect", "base.rwf", "--json")
    found = json.loads(out)
    assert (found["rows"], found["target"]) == (180, "price")
    assert set(found["length_scales"]) >= {"height", "colour=red"}
    code, out, _ = command("report", "base.rwf", f"rows.{kind}", "--out", "report.html", "--json")
    assert (code, json.loads(out)["rows"]) == (0, 120)
    assert (work / "report.html").read_text().startswith("<!DOCTYPE html>")
    names = {path.name for path in work.iterdir()}
    assert not [name for name in names if name.startswith(".") or "checkpoint" in name]


def test_outlying_rows_are_counted_less_if_asked(work, command):
    fit = ["fit", "rows.csv", "--target", "price", "--out", "m.rwf", *QUICK, "--json"]
    code, _, err = command(*fit, "--noise", "student")
    assert code == 0, err
    model = rwf.load("m.rwf")
    assert model.noise == "student"
    assert len(model.model_.base.noise.factors) == 120
    code, _, err = command(*fit, "--force", "--noise", "student", "--neighbors", "16")
    assert code != 0
    assert "neighbors=None" in err


def test_tables_are_printed_without_json(model, command):
    code, out, _ = command("inspect", "model.rwf")
    assert code == 0
    for word in ("height", "blue, red, sea green", "length-scales", "noise sd", "TableRegressor"):
        assert word in out
    code, out, err = command("fit", "rows.csv", "--target", "price", "--out", "m.rwf", *QUICK)
    assert "hold-out" in out
    assert "constant" in out
    assert err == ""
    assert "one-out" in command(
        "fit", "rows.csv", "--target", "price", "--out", "n.rwf", *NONE
    )[1]  # fmt: skip
    assert "Predictions: p.csv" in command("predict", "m.rwf", "rows.csv", "--out", "p.csv")[1]
    assert "rows added" in command("update", "m.rwf", "rows.csv")[1]
    assert "Report: r.html" in command("report", "m.rwf", "rows.csv", "--out", "r.html")[1]


def test_progress_is_on_standard_error(work, command):
    loud = [option for option in NONE if option != "--quiet"]
    _, out, err = command("fit", "rows.csv", "--target", "price", "--out", "m.rwf", *loud, "--json")
    json.loads(out)
    assert "log evidence" in err
    assert rwf.load("m.rwf").verbose == 0


def test_cross_validation_scores_every_row(work, command):
    _, out, _ = command(
        "fit", "rows.csv", "--target", "price", "--out", "m.rwf", *QUICK, "--validate", "cv",
        "--json",
    )  # fmt: skip
    scores = json.loads(out)["scores"]
    assert (scores["method"], scores["n_rows"]) == ("5-fold cross-validation", 120)


def test_features_and_weights_are_named_columns(work, command):
    code, out, err = command(
        "fit", "rows.csv", "--target", "price", "--features", "age, height", "--weights", "times",
        "--out", "m.rwf", *NONE, "--json",
    )  # fmt: skip
    assert code == 0, err
    assert [column["name"] for column in json.loads(out)["columns"]] == ["age", "height"]
    found = rwf.load("m.rwf")
    assert found.model_.n_rows == make().times.sum()
    rows = make()
    direct = rwf.RWFRegressor(20, max_iter=3, n_restarts=0, random_state=0)
    direct.fit(rows[["age", "height"]], rows.price, sample_weight=rows.times)
    assert_array_equal(found.predict(rows), direct.predict(rows[["age", "height"]]))


def test_columns_are_taken_by_name_in_any_order(model, command):
    rows = make()
    rows[["price", "colour", "times", "age", "height"]].to_csv("other.csv", index=False)
    for name in ("rows.csv", "other.csv"):
        assert command("predict", "model.rwf", name, "--out", f"p-{name}")[0] == 0
    assert (model.parent / "p-rows.csv").read_bytes() == (model.parent / "p-other.csv").read_bytes()


def test_a_category_that_looks_like_a_number_stays_text(work, command):
    rows = make()
    rows["code"] = np.where(rows.colour == "red", "007", "x1")
    rows.to_csv("coded.csv", index=False)
    fit = ["fit", "coded.csv", "--target", "price", "--features", "height,code"]
    assert command(*fit, "--out", "m.rwf", *NONE)[0] == 0
    rows[rows.code == "007"].to_csv("zeros.csv", index=False)
    code, _, err = command("predict", "m.rwf", "zeros.csv", "--out", "p.csv")
    assert code == 0, err


def test_missing_values_are_filled_in_or_an_error(work, command):
    rows = make()
    rows.loc[3, "height"] = np.nan
    rows.loc[[5, 6], "colour"] = None
    rows.to_csv("gaps.csv", index=False)
    fit = ["fit", "gaps.csv", "--target", "price", "--out", "m.rwf", *NONE]
    code, _, err = command(*fit, "--strict")
    assert code == 1
    assert "column 'height': 1 missing value" in err
    assert "gaps.csv, row 5" in err
    assert "leave out strict=True, or --strict" in err
    assert not (work / "m.rwf").exists()

    assert command(*fit)[0] == 0
    found = rwf.load("m.rwf")
    height, _, colour, _ = found.schema_.columns
    assert height.fill == pytest.approx(rows.height.median())
    assert (colour.gaps, colour.indicated, height.indicated) == (2, True, False)
    filled = rows.fillna({"height": height.fill})
    assert_array_equal(found.predict("gaps.csv"), found.predict(filled))
    code, _, err = command("predict", "m.rwf", "gaps.csv", "--out", "p.csv", "--strict")
    assert (code, "row 3 (the first is 0), column 'height': a missing value" in err) == (1, True)


def test_a_new_category_is_encoded_as_zeros_or_an_error(model, command):
    rows = make(5)
    rows.loc[2, "colour"] = "purple"
    rows.to_csv("new.csv", index=False)
    code, _, err = command("predict", "model.rwf", "new.csv", "--out", "p.csv", "--strict")
    assert code == 1
    for word in ("row 2", "'purple'", "'blue', 'red', 'sea green'", "without strict=True"):
        assert word in err
    code, _, err = command("predict", "model.rwf", "new.csv", "--out", "p.csv")
    assert code == 0
    assert err.count("purple") == 1
    assert "It is encoded as zeros" in err


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (["--target", "prise"], 2, ["no column 'prise'", "'colour'", "Did you mean 'price'?"]),
        (["--target", "price", "--features", "hight"], 2, ["Did you mean 'height'?"]),
        (["--target", "price", "--features", "price"], 2, ["without the target"]),
        (["--target", "price", "--features", "age,age"], 2, ["different columns"]),
        (["--target", "price", "--weights", "price"], 2, ["both the target and the weights"]),
        (["--target", "price", "--weights", "tmes"], 2, ["Did you mean 'times'?"]),
        (["--target", "colour"], 1, ["the target must be numbers"]),
        (["--target", "price", "--weights", "colour"], 1, ["weights must be numbers"]),
        (
            ["--target", "price", "--prior", "spike_slab"],
            1,
            ["prior='spike_slab' is for up to 1 input"],
        ),
        (["--target", "price", "--prior", "best"], 2, ["'auto', 'nystrom'"]),
        ([], 2, ["--target"]),
    ],
)
def test_what_cannot_be_fitted_is_said_before_anything_is_written(
    work, command, arguments, code, words
):
    found, out, err = command("fit", "rows.csv", "--out", "m.rwf", *arguments, *NONE)
    assert found == code
    assert out == ""
    said = " ".join(err.replace("│", " ").split())
    assert all(word in said for word in words), err
    assert not (work / "m.rwf").exists()


def test_inputs_that_are_not_there(model, command):
    code, _, err = command("fit", "row.csv", "--target", "price", "--out", "m.rwf")
    assert code == 2
    assert "there is no file row.csv" in err
    assert "Did you mean 'rows.csv'?" in err
    code, _, err = command("predict", "modle.rwf", "rows.csv", "--out", "p.csv")
    assert code == 2
    assert "Did you mean 'model.rwf'?" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "rows.csv", "--target", "price"],
        ["predict", "model.rwf", "rows.csv"],
        ["update", "model.rwf", "rows.csv"],
        ["merge", "model.rwf", "model.rwf"],
        ["report", "model.rwf", "rows.csv"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_outputs_are_looked_at_first(model, command, arguments, monkeypatch):
    monkeypatch.setattr(TableRegressor, "fit", None)  # nothing is computed
    monkeypatch.setattr(rwf.persistence.estimators.file, "read", None)
    work = model.parent
    (work / "there.csv").write_text("precious")
    code, _, err = command(*arguments, "--out", "there.csv")
    assert (code, "--force" in err) == (2, True)
    assert (work / "there.csv").read_text() == "precious"
    code, _, err = command(*arguments, "--out", "nowhere/new.csv")
    assert (code, "no folder 'nowhere'" in err) == (2, True)
    code, _, err = command(*arguments, "--out", ".")
    assert (code, "is a folder" in err) == (2, True)
    own = next(argument for argument in arguments[1:] if "." in argument)
    code, _, err = command(*arguments, "--out", own, "--force")
    assert (code, "is read by this command" in err) == (2, True)


def test_force_replaces_an_output(model, command):
    (model.parent / "p.csv").write_text("old")
    assert command("predict", "model.rwf", "rows.csv", "--out", "p.csv", "--force")[0] == 0
    assert len(pd.read_csv("p.csv")) == 120


@pytest.mark.parametrize("name", ["p.csv", "p.csv.gz", "p.parquet", "p.pq"])
def test_the_end_of_the_name_says_how_predictions_are_written(model, command, name):
    assert command("predict", "model.rwf", "rows.csv", "--out", name, "--interval", "0.5")[0] == 0
    found = pd.read_csv(name) if "csv" in name else pd.read_parquet(name)
    model = rwf.load("model.rwf")
    mean, std = model.predict("rows.parquet", return_std=True)
    assert_allclose(found["mean"], mean, rtol=1e-12)
    assert_allclose(found["std"], std, rtol=1e-12)
    p = model.predict_rows(model.sample_rows("rows.parquet")[0].X)
    assert_allclose(np.sort(found["upper"]), np.sort(p.ppf(0.75)), rtol=1e-7)


def test_quantiles_take_the_place_of_the_interval(model, command):
    quantiles = ("--quantiles", ".05,.5,.95")
    assert command("predict", "model.rwf", "rows.csv", "--out", "p.csv", *quantiles)[0] == 0
    found = pd.read_csv("p.csv")
    assert [*found.columns] == ["mean", "std", "q0.05", "q0.5", "q0.95"]
    assert_allclose(found["q0.5"], found["mean"])
    assert_allclose(found["q0.05"] + found["q0.95"], 2 * found["mean"])
    for wrong in ("5,95", "a"):
        code, _, err = command(
            "predict", "model.rwf", "rows.csv", "--out", "q.csv", "--quantiles", wrong
        )
        assert (code, "such as .05,.5,.95" in err) == (2, True)


@pytest.mark.parametrize(
    "options, word",
    [(["--out", "p.txt"], ".parquet"), (["--out", "p.csv", "--interval", "95"], "0.95 is usual")],
)
def test_predictions_that_cannot_be_written(model, command, options, word):
    code, _, err = command("predict", "model.rwf", "rows.csv", *options)
    assert (code, word in err) == (2, True)


def test_a_failed_prediction_leaves_the_old_one(model, command):
    rows = make()
    rows.loc[100, "height"] = np.inf
    rows.to_csv("bad.csv", index=False)
    (model.parent / "p.csv").write_text("old")
    code, _, err = command("predict", "model.rwf", "bad.csv", "--out", "p.csv", "--force")
    assert (code, "row 100" in err) == (1, True)
    assert (model.parent / "p.csv").read_text() == "old"
    assert not [*model.parent.glob(".p.csv*")]


def test_columns_are_checked_at_predict(model, command):
    make().drop(columns="age").to_csv("less.csv", index=False)
    code, _, err = command("predict", "model.rwf", "less.csv", "--out", "p.csv")
    assert (code, "has no column 'age'" in err) == (2, True)
    rows = make().astype({"age": str})
    rows["age"] += " years"
    rows.to_csv("text.csv", index=False)
    code, _, err = command("predict", "model.rwf", "text.csv", "--out", "p.csv")
    assert (code, "'age'" in err, "should hold numbers" in err) == (1, True, True)
    make().assign(colour=3.0).to_parquet("number.parquet")
    code, _, err = command("predict", "model.rwf", "number.parquet", "--out", "p.csv")
    assert (code, "should hold text" in err) == (1, True)


def test_a_damaged_model_is_refused(model, command):
    content = bytearray(model.read_bytes())
    content[-40] ^= 1
    model.write_bytes(content)
    for arguments in (
        ["inspect", "model.rwf"],
        ["predict", "model.rwf", "rows.csv", "--out", "p.csv"],
        ["update", "model.rwf", "rows.csv"],
        ["report", "model.rwf", "rows.csv", "--out", "r.html"],
    ):
        code, out, err = command(*arguments)
        assert (code, out) == (3, "")
        assert "checksum" in err
    assert model.read_bytes() == content
    assert command("inspect", "rows.csv")[0] == 3


def test_a_failed_update_leaves_the_model(model, command):
    before = model.read_bytes()
    rows = make()
    rows.loc[7, "height"] = np.inf
    rows.to_csv("bad.csv", index=False)
    assert command("update", "model.rwf", "bad.csv")[0] == 1
    assert model.read_bytes() == before


def test_models_of_other_fits_are_not_merged(model, command):
    quick = TableRegressor(20, max_iter=3, n_restarts=0, random_state=1)
    quick.fit("rows.csv", target="price").save("same-columns.rwf")
    quick.fit("rows.csv", target="price", features=["age"]).save("other.rwf")
    for name in ("same-columns.rwf", "other.rwf"):
        code, _, _ = command("merge", "model.rwf", name, "--out", "m.rwf")
        assert code == 1
    code, _, err = command("merge", "model.rwf", "--out", "m.rwf")
    assert (code, "two or more" in err) == (2, True)
    assert not (model.parent / "m.rwf").exists()


def test_a_model_that_keeps_its_rows_says_so(work, command):
    rng = np.random.default_rng(4)
    u = rng.uniform(2.0, 9.0, 700)
    table = pd.DataFrame(np.sin(np.arange(1, 5) * u[:, None] / 4), columns=[*"abcd"])
    table.assign(y=np.sin(25 * u)).to_csv("curve.csv", index=False)
    fit = ["fit", "curve.csv", "--target", "y", "--out", "curve.rwf", "--force", *NONE]
    code, out, err = command(*fit)
    assert code == 0, err
    assert "with all its rows" in " ".join(out.split())
    assert "RowsInFile" not in err
    assert json.loads(command(*fit, "--json")[1])["keeps_rows"] is True
    assert command("update", "curve.rwf", "curve.csv")[0] == 0
    assert rwf.load("curve.rwf").model_.model.blends[0].rows.weights.sum() == 1400
    _, out, _ = command(*fit, "--neighbors", "none")
    assert "with all its rows" not in " ".join(out.split())
    assert json.loads(command(*fit, "--json", "--neighbors", "none")[1])["keeps_rows"] is False


def test_models_that_python_saved(work, command):
    rows = make()[["height", "age", "price"]]
    rows.to_csv("plain.csv", index=False)
    plain = rwf.RWFRegressor(20, prior="nystrom", max_iter=3, n_restarts=0, random_state=0)
    plain.fit("plain.csv", "price").save("plain.rwf")
    assert command("predict", "plain.rwf", "plain.csv", "--out", "p.csv")[0] == 0
    assert_allclose(pd.read_csv("p.csv")["mean"], plain.predict("plain.csv"), rtol=1e-12)
    assert command("inspect", "plain.rwf")[0] == 0
    code, _, err = command("update", "plain.rwf", "plain.csv")
    assert (code, "without the name of its target" in err) == (1, True)
    plain.fit(rows[["height"]].to_numpy(), rows.price).save("arrays.rwf")
    code, _, err = command("inspect", "arrays.rwf")
    assert (code, "without names" in err) == (1, True)


def test_few_rows_are_not_kept_back(work, command):
    make(8).to_csv("few.csv", index=False)
    code, _, err = command("fit", "few.csv", "--target", "price", "--out", "m.rwf", *QUICK)
    assert (code, "too few" in err) == (1, True)


def test_an_interrupt_after_the_fit_keeps_the_model(work, command, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(TableRegressor, "validate", interrupted)
    code, _, err = command("fit", "rows.csv", "--target", "price", "--out", "m.rwf", *QUICK)
    assert (code, "The model is complete in m.rwf" in err) == (130, True)
    assert rwf.load("m.rwf").scores_ is None


# Processes in the background ignore Ctrl-C, and so would their children.
LISTENING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
INTERRUPTED = (
    LISTENING
    + """
import os
from rwf.data.readers import base
base.SMALL = 1
from rwf import cli
from rwf.persistence import checkpoint as checkpoints
note, count = checkpoints.Checkpoint.note, 0
def noted(self, entry):
    global count
    note(self, entry)
    count += 1
    if count == 1:
        os.kill(os.getpid(), signal.SIGINT)
checkpoints.Checkpoint.note = noted
cli.main()
"""
)
MAIN = LISTENING + "from rwf.cli import main; main()"


def test_an_interrupted_fit_keeps_a_checkpoint_and_goes_on(work, command, monkeypatch):
    monkeypatch.setattr(base, "SMALL", 1)  # bytes of rows from which a fit streams
    make(4000).to_parquet("many.parquet", row_group_size=500)
    fit = ["fit", "many.parquet", "--target", "price", *NONE, "--prior", "random_features"]

    program = [sys.executable, "-c", INTERRUPTED, *fit, "--out", "m.rwf"]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert "m.rwf.checkpoint: the same command continues from there" in done.stderr
    assert (work / "m.rwf.checkpoint").exists()
    assert not (work / "m.rwf").exists()
    for name in ("m.rwf", "whole.rwf"):
        assert command(*fit, "--out", name)[0] == 0
    assert not [*work.glob("*checkpoint*")]
    some = make(50)
    found, whole = (rwf.load(name).predict(some) for name in ("m.rwf", "whole.rwf"))
    assert_array_equal(found, whole)


def test_an_interrupt_while_learning_ends_without_a_traceback(work):
    make(300).to_csv("more.csv", index=False)
    fit = ["fit", "more.csv", "--target", "price", "--out", "m.rwf", "--max-iter", "50"]
    program = [sys.executable, "-c", MAIN, *fit, "--n-restarts", "200"]
    process = subprocess.Popen(program, stderr=subprocess.PIPE, text=True)
    try:
        while "trial" not in (line := process.stderr.readline()):
            assert line
        time.sleep(0.5)
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "Nothing was written" in err
    assert [path.name for path in work.glob("m.rwf*")] == []


def test_scores_are_those_of_metrics_without_weights(rng):
    from rwf.data.rows import Block
    from rwf.diagnostics.metrics import constant_reference, linear_reference

    X, y = rng.normal(3, 2, (40, 3)), rng.normal(5, 1, 40)
    X[:, 2] = 4.0  # constant
    known, new = Block(X, y[:, None], np.full(40, 2.5)), rng.normal(3, 2, (7, 3))
    for found, expected in (
        (linear_prediction(known, new), linear_reference(X, y, new)),
        (
            linear_prediction(Block(X[:, :0], y[:, None], np.ones(40)), new[:, :0]),
            constant_reference(y, 7),
        ),
    ):
        assert_allclose((found.mean, found.std), expected)


def test_weights_of_least_squares_repeat_rows(rng):
    from rwf.data.rows import Block

    X, y = rng.normal(3, 2, (30, 2)), rng.normal(5, 1, 30)
    times = rng.integers(0, 4, 30).astype(float)
    repeated = np.repeat(np.arange(30), times.astype(int))
    new = rng.normal(3, 2, (7, 2))
    found = linear_prediction(Block(X, y[:, None], times), new)
    same = linear_prediction(
        Block(X[repeated], y[repeated, None], np.ones(len(repeated))), new
    )  # fmt: skip
    assert_allclose(found.mean, same.mean)


def test_the_commands_of_the_page_about_them_run(work, command):
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
    (tables, *_), lines = (
        re.findall(rf"```{kind}\n(.*?)```", page, flags=re.DOTALL) for kind in ("python", "sh")
    )
    exec(compile(tables, "command-line.md", "exec"), {})
    for line in "".join(lines).splitlines():
        if line:
            name, *arguments = shlex.split(line, comments=True)
            assert name == "rwf"
            cheap = NONE if arguments[0] == "fit" else []
            code, _, err = command(*arguments, *cheap)
            assert code == 0, f"{line}: {err}"
    assert len(pd.read_parquet("predicted.parquet")) == 300
    assert rwf.load("houses.rwf").model_.n_rows == 150
    assert rwf.load("more.rwf").model_.n_rows == 220
    assert rwf.load("winter.rwf").model_.n_rows == 150
    for command_name in ("fit", "predict", "update", "merge", "inspect", "report"):
        assert f"`{command_name}`" in page


def test_groups_are_held_out_and_their_scores_printed(tmp_path):
    rng = np.random.default_rng(0)
    who, x = np.repeat(np.arange(12), 6), rng.normal(size=72)
    lines = [f"{a},{np.sin(a) + 0.3 * (g % 3)},site {g}" for a, g in zip(x, who, strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["x,y,site", *lines]), encoding="utf-8")
    given = [str(tmp_path / "rows.csv"), "--target", "y", "--groups", "site", "--quiet"]
    given += ["--prior", "multiscale", "--out", str(tmp_path / "model.rwf")]
    result = CliRunner().invoke(app, ["fit", *given, "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert [column["name"] for column in told["columns"]] == ["x"]
    assert told["group_scores"]["n_groups"] == 12
    assert told["scores"]["method"] == "hold-out of every fifth group"
    assert told["scores"]["n_rows"] == 18
    shown = CliRunner().invoke(app, ["fit", *given, "--force", "--validate", "none"])
    assert "leave-group-out, 12 groups" in shown.stdout
    model = rwf.load(tmp_path / "model.rwf")
    assert model.schema_.group == "site"
    assert np.isfinite(model.predict(tmp_path / "rows.csv")).all()


def test_inspect_says_which_columns_count(model, command):
    code, out, err = command("inspect", model, "--data", "rows.csv", "--json")
    assert code == 0, err
    found = json.loads(out)["importance"]
    assert set(found) == {"height", "age", "colour", "times"}
    assert found["height"]["total"] > 0.5
    assert all(value["total_error"] < 0.1 for value in found.values())
    assert "Sobol" in command("inspect", model, "--data", "rows.csv")[1]
    assert json.loads(command("inspect", model, "--json")[1])["importance"] is None
