"""Other libraries against the fastest RWF that is as good."""

from experiments.reporting import peers
from experiments.runner.run import Run, row_of
from harness import SESSION


def test_peers_are_compared_with_the_fastest_rwf_that_is_as_good():
    def row(method, rmse, nll, seconds):
        outcome = {"rmse": rmse, "nll": nll, "fit_cpu_seconds": seconds}
        return row_of(Run("protein", method, 0), outcome, SESSION)

    ours = [row("rwf-quick", 4.0, 2.0, 9.0), row("rwf-quick", 4.5, 2.5, 1.0)]
    assert peers.fastest_as_good(ours, row("svgp", 4.5, 2.6, 90.0)) is ours[1]
    assert peers.fastest_as_good(ours, row("svgp", 4.5, 2.4, 90.0)) is ours[0]  # by its density
    assert peers.fastest_as_good(ours, row("svgp", 3.9, 2.6, 90.0)) is None
