"""The paper's experiments: tables, counts and anchors."""

import re
import tomllib

from experiments.reporting import paper
from experiments.reporting.cells import MEASURES
from experiments.reporting.labels import LABELS
from experiments.reporting.printed import PRINTED
from experiments.reporting.tables import suite_tables
from experiments.runner import store
from experiments.runner.methods import METHODS
from experiments.runner.plan import load_suite
from experiments.runner.run import Run, row_of
from harness import SESSION

OFFICIAL = ("suite-official", "suite-large")


def test_printed_numbers_are_of_known_methods_and_whole():
    for name, found in tomllib.loads(PRINTED.read_text(encoding="utf-8")).items():
        form = r"–|-?\d+\.\d+(e-\d)?" if name in OFFICIAL else r"-?\d+\.\d+ ± \d\.\d+"
        for field in found.keys() - {"tasks"}:
            assert field in MEASURES
            assert set(found[field]) <= set(LABELS if name in OFFICIAL else METHODS)
            for texts in found[field].values():
                assert len(texts) == len(found["tasks"]), (name, field)
                assert all(re.fullmatch(form, text) for text in texts)


def test_numbers_for_official_splits_are_rows_of_the_suites_tables():
    suite = load_suite("official")
    row = row_of(Run("hla-energy", "rwf", 0), {"rmse": 0.25, "facts": {}}, SESSION)
    table = suite_tables(suite, [row], "rmse")
    assert "| *best number in papers* ˡ | 0.39 | 2.36 | 0.322 | 3.86 |" in table
    assert "best number" not in suite_tables(suite, [row], "coverage95")


def keep(directory, values):
    """Rows of RMSE, CRPS, NLL and seconds that are all the same number."""
    for (task, method), score in values.items():
        for split in load_suite("paper").splits_of(method, task):
            outcome = dict.fromkeys((*paper.SCORES, "coverage95", "fit_cpu_seconds"), score)
            row = row_of(Run(task, method, split), {**outcome, "facts": {}}, SESSION)
            store.append(store.results_file("paper", directory), row)


def test_printed_numbers_stand_beside_ours_and_never_beside_other_data(tmp_path):
    keep(tmp_path, {("energy", "svgp"): 0.5, ("stock_aerospace", "svgp"): 0.7})
    text = paper.experiment("tables", "energy", "stock_aerospace")(tmp_path)
    assert "| method | energy (kWh/m²) | energy, as printed | stock_aerospace (USD) |\n" in text
    assert "| **0.500 ± 0.000** | 0.68 ± 0.02 | **0.700 ± 0.000** |" in text


def test_cells_are_counted_as_best_where_rwf_is_best_or_tied(tmp_path):
    values = {
        **{
            (task, method): 3.0
            for task in ("energy", "naval", "five-plateaus-quiet")
            for method in paper.COUNTED
        },
        ("energy", "rwf"): 1.0,
        ("energy", "dgp"): 1.0,
        ("naval", "rwf"): 2.0,
        ("naval", "dgp"): 1.0,
        ("naval", "linear"): 0.1,  # not among the paper's methods
        ("concrete", "rwf"): 1.0,  # the best of two methods, which means nothing
        ("concrete", "rff"): 2.0,
    }
    keep(tmp_path, values)
    late = row_of(Run("energy", "rwf", 4), {"rmse": 9.0, "facts": {}}, SESSION)
    store.append(store.results_file("paper", tmp_path), late)  # others have no split 4
    text = paper.count(tmp_path)
    assert "On the 3 of 13 tasks" in text
    assert "best or tied in **6 of 9** cells. Its kernel" in text
    assert "2 are among them; RWF is best or tied in **3 of 6** cells." in text
    assert "non-stationary on 0 tasks, and there" in text  # these rows have not measured it
    assert "| concrete | not all methods yet |" in text
    assert (
        "| energy | 3 | **RWF** | **RWF** | **RWF** | 1.0 | 1.0 (deep GP) | not measured |" in text
    )
    assert text.count("| deep GP ") == 3


def test_of_many_that_are_best_the_number_is_printed():
    assert paper._listed({"rff"}) == "RFF"
    assert paper._listed({"exact5k-se", "exact5k-matern32", "dgp"}) == "exact GP and deep GP"
    assert paper._listed({"dgp", "drf", "svgp", "sm"}) == "SVGP and 3 more"


def test_without_rows_every_section_names_the_command(tmp_path):
    for build in (paper.count, paper.experiment("protein", "protein")):
        assert "No rows are stored yet" in build(tmp_path)
    assert paper.anchors(tmp_path).count("| – | 0 | – |") == len(paper.ANCHORS)
    assert "energy" not in paper.behind_a_line(tmp_path)


def test_anchors_are_on_runs_of_the_suite():
    suite = load_suite("paper")
    for anchor in paper.ANCHORS:
        assert anchor.method in suite.methods
        assert anchor.task in suite.tasks
        assert isinstance(anchor.limit, float) or anchor.limit in suite.methods


def test_an_anchor_may_be_another_method(tmp_path):
    keep(tmp_path, {("five-plateaus", "ns-gp"): 0.06, ("five-plateaus", "exact5k-se"): 0.08})
    wanted = "| five-plateaus | 0.08 (exact GP, squared exponential) | 0.06 | 3 | 0.06 |"
    assert wanted in paper.anchors(tmp_path)


def test_methods_behind_a_line_are_named_on_the_splits_that_both_have(tmp_path):
    values = {("energy", "linear"): 2.0, ("energy", "dgp"): 1.0, ("energy", "sm"): 2.5}
    keep(tmp_path, {**values, ("energy", "constant"): 9.0})
    late = row_of(Run("energy", "linear", 4), {"rmse": 9.0, "facts": {}}, SESSION)
    store.append(store.results_file("paper", tmp_path), late)  # where sm has no row
    *_, last = text = paper.behind_a_line(tmp_path).splitlines()
    assert len(text) == 3
    assert last == "| energy | spectral mixture, stationary | 2.5 | 2 | 0.5 ± 0 | 3 |"


def test_all_tasks_of_the_suite_are_on_some_page():
    shown = {"five-plateaus", "five-plateaus-quiet", "protein", *paper.TABLES, *paper.SPEECH}
    assert set(load_suite("paper").tasks) == shown
    assert set(paper.COUNTED) <= set(load_suite("paper").methods)
    assert set(paper.SCORES) <= set(MEASURES)


def test_a_kernel_is_called_what_was_measured():
    def rows(*values):
        return [{"method": "rwf", "facts": {"stationarity": value}} for value in values]

    assert paper.kernel_of(rows(1e-32, 1e-3)) == "stationary"
    assert paper.kernel_of(rows(0.4, None)) == "non-stationary"
    assert paper.kernel_of(rows(None)) == "not measured"
    other = {"method": "rff", "facts": {"stationarity": 0.0}}
    assert paper.kernel_of([*rows(0.4), other]) == "non-stationary"


def test_the_fastest_are_counted_where_the_kernel_is_not_stationary(tmp_path):
    for task, index in (("energy", 0.0), ("naval", 0.3)):
        for method in paper.COUNTED:
            score = 1.0 if method == "rwf" else 2.0
            outcome = dict.fromkeys((*paper.SCORES, "fit_cpu_seconds"), score)
            facts = {"stationarity": index} if method == "rwf" else {}
            row = row_of(Run(task, method, 0), {**outcome, "facts": facts}, SESSION)
            store.append(store.results_file("paper", tmp_path), row)
    text = paper.count(tmp_path)
    assert "non-stationary on 1 tasks, and there it is the fastest" in text
    assert "non-stationary methods on 1." in text
    assert "| energy | 1 | **RWF** | **RWF** | **RWF** | 1.0 | 2.0 (NS-GP) | stationary |" in text
