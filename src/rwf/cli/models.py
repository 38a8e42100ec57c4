"""``rwf update``, ``rwf merge`` and ``rwf inspect``: operations on model files."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rwf.cli.checks import UsageError, check_input, check_output, load_model
from rwf.cli.terminal import (
    Force,
    Json,
    ModelFile,
    TableFile,
    print_result,
    scores_table,
    table_of,
    warnings_shown,
)
from rwf.data.wording import numeral

if TYPE_CHECKING:
    from rwf.diagnostics.inspection import Inspection


def update(
    model: ModelFile,
    data: TableFile,
    out: Annotated[
        Path | None, typer.Option(help="The model file to write; MODEL itself if not given.")
    ] = None,
    fresh: Annotated[
        bool,
        typer.Option(help="Keep the features and drop all earlier rows, to make parts for merge."),
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Add the rows of another table to a model; its features stay as they are."""
    check_input(data)
    if out is not None:
        check_output(out, force=force, inputs=[model, data])
    place = model if out is None else out
    with warnings_shown():
        found = load_model(model)
        before = 0.0 if fresh else found.model_.n_rows
        if fresh:
            found = found.empty_copy()
        found.partial_fit(data).save(place, include_rows=True)
    after = found.model_.n_rows
    text = f"{after - before:,g} rows added, {after:,g} in all. Model: {place}"
    print_result(as_json, {"out": str(place), "rows_before": before, "rows": after}, text)


def merge(
    models: Annotated[list[Path], typer.Argument(help="Two or more model files of one fit.")],
    out: Annotated[Path, typer.Option(help="The model file to write.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Add up the rows of models with the same features, as rwf update --fresh makes them."""
    check_output(out, force=force, inputs=models)
    if len(models) < 2:
        raise UsageError("give two or more models to merge.")
    total = load_model(models[0])
    for path in models[1:]:
        total.merge(load_model(path))
    with warnings_shown():
        total.save(out, include_rows=True)
    rows = total.model_.n_rows
    answer = {"out": str(out), "models": [str(path) for path in models], "rows": rows}
    text = f"{len(models)} models of {rows:,g} rows in all. Model: {out}"
    print_result(as_json, answer, text)


def inspect(
    model: ModelFile,
    data: Annotated[
        Path | None,
        typer.Option(help="A table whose rows say how columns vary: also print what each counts."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the contents of a model file: columns, scores, length-scales, noise and timings."""
    if data is not None:
        check_input(data)
    from rwf.diagnostics.inspection import Inspection

    loaded = load_model(model, maps=data is None)
    found = Inspection.of(loaded, None if data is None else loaded.sample_rows(data)[0].X)
    print_result(as_json, {"file": str(model), **asdict(found)}, *_parts(found))


def _parts(found: "Inspection") -> list[object]:
    head = "column", "type", "categories", "missing values become"
    columns = table_of(f"inputs of the model of {found.target!r}", *head)
    for each in columns.columns:
        each.justify = "left"
    for column in found.columns:
        columns.add_row(column.name, column.dtype, column.categories, column.fill)
    lengths = table_of("length-scales, in the units of the columns", "", "shortest", "longest")
    for name, values in found.length_scales.items():
        lengths.add_row(name, numeral(min(values)), numeral(max(values)))
    parts: list[object] = [columns]
    if found.scores is not None:
        parts.append(scores_table(found.scores))
    if found.length_scales:
        parts.append(lengths)
    if found.importance is not None:
        counts = table_of("Sobol indices ± standard error", "column", "total", "alone")
        for name, v in sorted(found.importance.items(), key=lambda item: -item[1]["total"]):
            total = f"{v['total']:.3f} ± {v['total_error']:.3f}"
            counts.add_row(name, total, f"{v['first']:.3f} ± {v['first_error']:.3f}")
        parts.append(counts)
    text = (
        f"{found.estimator}, {found.rows:,g} rows, {found.features:,} features ({found.solver}); "
        f"noise sd {numeral(found.noise_deviation)}{found.noise_of}, "
        f"leave-one-out NLL {found.nll:.4g}; fitted in {sum(found.seconds.values()):.1f} s."
    )
    return [*parts, text]
