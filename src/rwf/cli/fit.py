"""``rwf fit``: from a table to a model file."""

import time
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rwf.cli.app import app
from rwf.cli.checks import check_input, check_output, names_in
from rwf.cli.terminal import (
    Force,
    Json,
    Quiet,
    print_json,
    scores_table,
    show,
    table_of,
    warnings_shown,
)

if TYPE_CHECKING:
    from rwf.estimators.table import TableModel


KEEPS_ROWS = "with all its rows, as the nearest are asked too (--no-second-opinion leaves them out)"


class Missing(StrEnum):
    """What a missing value is."""

    error = "error"
    impute = "impute"


class Validation(StrEnum):
    """How the scores are found."""

    holdout = "holdout"
    cv = "cv"
    none = "none"


class PriorName(StrEnum):
    """Priors over the weights."""

    auto = "auto"
    nystrom = "nystrom"
    multiscale = "multiscale"
    adaptive = "adaptive"
    spike_slab = "spike_slab"
    random_features = "random_features"


@app.command(epilog="Example: rwf fit houses.csv --target price --features area,town --out h.rwf")
def fit(
    data: Annotated[
        Path, typer.Argument(help="A CSV or Parquet file, a folder of such, or a pattern.")
    ],
    target: Annotated[str, typer.Option(help="The column to predict.")],
    out: Annotated[Path, typer.Option(help="The model file to write.")],
    features: Annotated[
        str | None, typer.Option(help="Input columns, a,b,c; all others if not given.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="The column that says how many times a row counts.")
    ] = None,
    missing: Annotated[
        Missing,
        typer.Option(help="Missing inputs: an error, or the median and the most frequent text."),
    ] = Missing.error,
    validate: Annotated[
        Validation,
        typer.Option(help="Scores from a fifth of the rows, from five folds, or none."),
    ] = Validation.holdout,
    prior: Annotated[PriorName, typer.Option(help="The prior over the weights.")] = PriorName.auto,
    n_components: Annotated[
        int | None, typer.Option(min=1, help="Feature columns; chosen by the rows if not given.")
    ] = None,
    second_opinion: Annotated[
        bool | None,
        typer.Option(
            help="Ask the nearest rows too, which are then kept in the model file. If not given, "
            "up to 10,000 rows of four or more columns are asked where that helps."
        ),
    ] = None,
    n_restarts: Annotated[int, typer.Option(min=0, help="Starts after the first.")] = 2,
    max_iter: Annotated[int, typer.Option(min=1, help="Iterations for the shape.")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all draws.")] = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Fit a model to a table, and print how it does on rows that it has not seen.

    Columns of text become a column of zeros and ones for each text. Interrupted by Ctrl-C, a long
    fit leaves OUT.checkpoint, from which the same command goes on.
    """
    check_input(data)
    check_output(out, force=force, inputs=[data])
    from rwf import RWFRegressor
    from rwf.estimators.table import TableModel

    checkpoint = out.with_name(f"{out.name}.checkpoint")
    regressor = RWFRegressor(
        n_components,
        prior=prior.value,
        second_opinion="auto" if second_opinion is None else second_opinion,
        n_restarts=n_restarts,
        max_iter=max_iter,
        random_state=seed,
        verbose=int(not quiet),
    )
    begun, saved = time.perf_counter(), False
    try:
        with warnings_shown():
            model = TableModel.fit(
                data,
                target,
                features=names_in(features),
                weight=weights,
                missing="impute" if missing is Missing.impute else "error",
                regressor=regressor,
                checkpoint=checkpoint,
            )
            _save(model, out, verbose=0)
            saved = True
            if validate is not Validation.none:
                model.regressor.set_params(verbose=int(not quiet))
                folds = validate is Validation.cv
                model.validate(data, "cross-validation" if folds else "hold-out")
                _save(model, out, verbose=0)
    except KeyboardInterrupt:
        typer.echo(f"rwf: interrupted. {_left_behind(out, checkpoint, saved)}", err=True)
        raise typer.Exit(130) from None
    seconds = time.perf_counter() - begun
    if as_json:
        print_json(_described(model, out, seconds))
    else:
        _print(model, out, seconds)


def _save(model: "TableModel", out: Path, verbose: int) -> None:
    model.regressor.set_params(verbose=verbose)
    model.save(out, with_rows=True)


def _left_behind(out: Path, checkpoint: Path, saved: bool) -> str:
    if saved:
        return f"The model is complete in {out}; its scores are not."
    if checkpoint.exists():
        return f"What was done is in {checkpoint}: the same command goes on from there."
    return "Nothing was written."


def _described(model: "TableModel", out: Path, seconds: float) -> dict[str, object]:
    report = model.regressor.fit_report_
    return {
        "out": str(out),
        "target": model.schema.target,
        "columns": [asdict(column) for column in model.schema.columns],
        "rows": report.n_rows,
        "features": report.n_features,
        "solver": report.solver,
        "keeps_rows": model.keeps_rows,
        "seconds": seconds,
        "leave_one_out_nll": report.nll,
        "scores": None if model.scores is None else asdict(model.scores),
    }


def _print(model: "TableModel", out: Path, seconds: float) -> None:
    report, parts = model.regressor.fit_report_, list[object]()
    if model.scores is not None:
        parts.append(scores_table(model.scores))
    else:
        table = table_of("leave-one-out, on the rows of the fit", "predictor", "NLL")
        for name, value in (
            ("model", report.nll),
            ("constant", report.constant_nll),
            ("linear", report.linear_nll),
        ):
            table.add_row(name, f"{value:.4g}")
        parts.append(table)
    parts.append(
        f"{report.n_rows:,} rows, {report.n_features:,} features ({report.solver}), "
        f"{seconds:.1f} s. Model: {out}" + (f", {KEEPS_ROWS}" if model.keeps_rows else "")
    )
    show(*parts)
