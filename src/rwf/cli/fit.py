"""``rwf fit``: from a table to a model file."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rwf.cli.checks import check_input, check_output, names_in, neighbors_in
from rwf.cli.terminal import (
    Force,
    Json,
    Quiet,
    TableFile,
    group_table,
    print_result,
    scores_table,
    table_of,
    warnings_shown,
)

if TYPE_CHECKING:
    from rwf.estimators.table import TableRegressor


KEEPS_ROWS = "with all its rows, for the nearest-neighbour GP (--neighbors none leaves them out)"


def fit(
    data: TableFile,
    target: Annotated[str, typer.Option(help="The column to predict.")],
    out: Annotated[Path, typer.Option(help="The model file to write.")],
    features: Annotated[
        str | None, typer.Option(help="Input columns, a,b,c; all others if not given.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="The column of weights: 2 counts a row twice.")
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            help="The column of groups, such as speakers or sites: they are held out together, so "
            "that scores are those of new groups."
        ),
    ] = None,
    categorical: Annotated[
        str | None, typer.Option(help="Columns of numbers that are categories, a,b,c.")
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Refuse a table with dates, gaps, many categories or rows without a target, and "
            "list all of them.",
        ),
    ] = False,
    validate: Annotated[
        Literal["holdout", "cv", "none"],
        typer.Option(help="Scores from a fifth of the rows, from five folds, or none."),
    ] = "holdout",
    prior: Annotated[
        Literal["auto", "nystrom", "multiscale", "adaptive", "spike_slab", "random_features"],
        typer.Option(help="The prior over the weights."),
    ] = "auto",
    target_transform: Annotated[
        Literal["auto", "log", "sqrt", "none"],
        typer.Option(
            help="Model the target's logarithm or square root, for intervals that grow with a "
            "price; 'auto' does so where that clearly helps. Predictions are in its units."
        ),
    ] = "auto",
    noise: Annotated[
        Literal["auto", "constant", "heteroscedastic", "student"],
        typer.Option(
            help="The noise: 'heteroscedastic' changes with the inputs, 'student' counts outlying "
            "rows less; 'auto' is constant, or heteroscedastic where that clearly helps."
        ),
    ] = "auto",
    n_components: Annotated[
        int | None, typer.Option(min=1, help="Feature columns; by the number of rows if not given.")
    ] = None,
    neighbors: Annotated[
        str,
        typer.Option(
            help="Blend with the GP of so many nearest rows, which are then stored in the model "
            "file: a number, 'auto' (where that helps), or 'none'."
        ),
    ] = "auto",
    n_restarts: Annotated[
        int | None, typer.Option(min=0, help="Trials after the first; by the prior if not given.")
    ] = None,
    max_iter: Annotated[
        int | None,
        typer.Option(
            min=1, help="Iterations to learn the hyperparameters; by the prior if not given."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all draws.")] = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Fit a model to a table, and print what was done with it and scores on held-out rows.

    Dates, categories and missing values become numbers. Interrupted by Ctrl-C, a long fit leaves
    OUT.checkpoint, from which the same command continues.
    """
    check_input(data)
    check_output(out, force=force, inputs=[data])
    from rwf import TableRegressor

    checkpoint = out.with_name(f"{out.name}.checkpoint")
    model = TableRegressor(
        n_components,
        categorical=tuple(names_in(categorical) or ()),
        strict=strict,
        prior=prior,
        noise=noise,
        neighbors=neighbors_in(neighbors),
        target_transform=None if target_transform == "none" else target_transform,
        n_restarts=n_restarts,
        max_iter=max_iter,
        random_state=seed,
        verbose=int(not quiet),
    )
    begun, saved = time.perf_counter(), False
    try:
        with warnings_shown():
            model.fit(
                data,
                target=target,
                sample_weight=weights,
                groups=groups,
                features=names_in(features),
                checkpoint=None if groups else checkpoint,
            )
            _save(model, out)
            saved = True
            if validate != "none":
                model.set_params(verbose=int(not quiet))
                model.validate(data, method="cross-validation" if validate == "cv" else "hold-out")
                _save(model, out)
    except KeyboardInterrupt:
        typer.echo(f"rwf: interrupted. {_left_behind(out, checkpoint, saved)}", err=True)
        raise typer.Exit(130) from None
    seconds = time.perf_counter() - begun
    print_result(as_json, _described(model, out, seconds), *_parts(model, out, seconds))


def _save(model: "TableRegressor", out: Path) -> None:
    model.set_params(verbose=0)  # a loaded model is quiet
    model.save(out, include_rows=True)


def _left_behind(out: Path, checkpoint: Path, saved: bool) -> str:
    if saved:
        return f"The model is complete in {out}; its scores are not."
    if checkpoint.exists():
        return f"What was done is in {checkpoint}: the same command continues from there."
    return "Nothing was written."


def _described(model: "TableRegressor", out: Path, seconds: float) -> dict[str, object]:
    report = model.fit_report_
    return {
        "out": str(out),
        "target": model.schema_.target,
        "columns": [asdict(column) for column in model.schema_.columns],
        "preparation": dict(model.preparation_.lines),
        "rows": report.n_rows,
        "features": report.n_features,
        "solver": report.solver,
        "keeps_rows": model.model_.keeps_rows,
        "seconds": seconds,
        "stages": report.seconds,
        "leave_one_out_nll": report.nll,
        "scores": None if model.scores_ is None else asdict(model.scores_),
        "group_scores": None if report.group_scores is None else asdict(report.group_scores),
    }


def _parts(model: "TableRegressor", out: Path, seconds: float) -> tuple[object, ...]:
    report, by_group = model.fit_report_, []
    if report.group_scores is not None:
        by_group.append(group_table(report.group_scores))
    if model.scores_ is not None:
        table = scores_table(model.scores_)
    else:
        table = table_of("leave-one-out, on the rows of the fit", "predictor", "NLL")
        nll = {"model": report.nll, "constant": report.constant_nll, "linear": report.linear_nll}
        for name, value in nll.items():
            table.add_row(name, f"{value:.4g}")
    return (
        str(model.preparation_),
        *by_group,
        table,
        (
            f"{report.n_rows:,} rows, {report.n_features:,} features ({report.solver}), "
            f"{seconds:.1f} s. Model: {out}"
            + (f", {KEEPS_ROWS}" if model.model_.keeps_rows else "")
        ),
        f"Seconds of the fit: {report.timing}",
    )
