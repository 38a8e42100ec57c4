"""``rwf report``: a page about a model and a table."""

from pathlib import Path
from typing import Annotated

import typer

from rwf.cli.checks import check_input, check_output, load_model
from rwf.cli.terminal import Force, Json, ModelFile, print_result, warnings_shown


def report(
    model: ModelFile,
    data: Annotated[
        Path, typer.Argument(help="A table with the target, preferably not that of the fit.")
    ],
    out: Annotated[Path, typer.Option(help="The HTML file to write.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write an HTML file about a model: a verdict, figures and scores; it needs no network."""
    check_input(data)
    check_output(out, force=force, inputs=[model, data])
    from rwf.diagnostics.report import write_report

    with warnings_shown():
        page = write_report(load_model(model), data, out, title=model.name)
    answer = {"out": str(out), "rows": page.n_rows, "scores": page.scores, "verdict": page.verdict}
    print_result(as_json, answer, *page.verdict, f"{page.n_rows:,} rows. Report: {out}")
