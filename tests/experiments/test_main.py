"""The command line of the experiments."""

import os

import pytest

from experiments.__main__ import main, parser
from experiments.data.speech import TIMIT_VARIABLE
from experiments.runner import store
from experiments.runner.run import Run
from experiments.runner.session import Conditions, outcome_of
from harness import stored_rows, vowel, write_wav


@pytest.mark.parametrize("command", ["run", "table", "tidy", "theory", "figures", "docs"])
def test_every_command_has_help_that_ends_with_an_example(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        parser().parse_args([command, "--help"])
    assert f"Example: python -m experiments {command}" in capsys.readouterr().out


def test_the_table_command_prints_and_tidy_keeps_the_last_rows(tmp_path, capsys):
    path = store.results_file("tables", tmp_path)
    for row in [*stored_rows(), *stored_rows()]:
        store.append(path, row)
    assert (
        main(["table", "--suite", "tables", "--measures", "rmse", "--results", f"{tmp_path}"]) == 0
    )
    assert "| RFF (this library) | – | – | **1.150 ± 0.030** (3 of 5)" in capsys.readouterr().out
    assert main(["tidy", "--suite", "tables", "--results", str(tmp_path)]) == 0
    assert len(path.read_text().splitlines()) == 24
    assert main(["table", "--suite", "nothing"]) == 2
    assert "there are" in capsys.readouterr().err


def test_the_option_names_the_copy_for_the_processes_of_the_runs(disc, rng, monkeypatch, capsys):
    for k in range(100, 180):  # more training rows than columns
        write_wav(disc / f"TIMIT/TRAIN/DR1/MCCC0/SX{k}.WAV", vowel(rng, float(k)))
    monkeypatch.setenv(TIMIT_VARIABLE, "")
    monkeypatch.chdir(disc)
    nothing = ["run", "--suite", "tables", "--splits", "99", "--results", str(disc)]
    assert main([*nothing, "--timit", "missing"]) == 2
    assert "--timit missing: nothing is there" in capsys.readouterr().err
    assert main([*nothing, "--timit", "TIMIT"]) == 0
    assert os.environ[TIMIT_VARIABLE] == str((disc / "TIMIT").resolve())
    outcome = outcome_of(Run("timit-mel-bin", "constant", 0), Conditions())
    assert outcome.get("error") is None
    assert (outcome["n_train"], outcome["n_test"], outcome["n_inputs"]) == (92, 6, 79)
