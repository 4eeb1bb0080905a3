"""``plstream monitor``: rows that differ from the training rows of a model, and the features responsible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, Data, Force, Keep, Model, Reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..monitoring import Monitor
    from ..monitoring.monitor import Checked
    from .results import Results


def monitor(
    model: Model,
    data: Data,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="OUT", help="CSV file to write; - for standard output.")
    ] = "-",
    level: Annotated[float | None, typer.Option(help="Share of normal rows below each limit. Default: 0.99.")] = None,
    allow: Annotated[
        float, typer.Option(min=0, max=1, help="Share of rows that may exceed a limit before the exit code is 3.")
    ] = 0.0,
    reference: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="Normal rows, other than training rows, for more accurate limits."),
    ] = None,
    every_row: Annotated[bool, typer.Option("--all", help="Write all rows, not only those above a limit.")] = False,
    keep: Keep = None,
    force: Force = False,
    as_json: AsJson = False,
    *,
    reading: Reading,
) -> None:
    """Check rows against a model by Hotelling's T2 and Q, and name the features behind each alarm.

    T2 is large for rows that are extreme within the model, Q for rows that vary in directions outside of it. The output
    contains the rows above a limit, with the features that contribute most. Exit code 3 means that there are
    such rows, or a larger share of them than --allow.

    \b
    plstream monitor model.plstream today.csv
    plstream monitor model.plstream today.csv --keep id --level 0.999 --allow 0.01 -o alarms.csv
    plstream monitor model.plstream today.csv --reference june.csv --json
    """
    from .._core.errors import counted
    from .errors import ALARMED, tell
    from .output import STANDARD_OUTPUT, opened_output, print_json, require_free, require_inputs, write_table
    from .progress import shown
    from .results import Results, require_distinct

    require_inputs(model, data, reference)
    require_free(output, force=force, endings=(".csv",), or_printed=True)
    monitor = _monitor_of(model, level)
    if reference is not None:
        with shown():
            monitor.partial_fit(reading.open(reference, None, monitor.model))
    results = Results(reading, data, monitor.model, keep)
    counts = {"rows": 0, "alarms": 0, "t2_alarms": 0, "q_alarms": 0}
    rows = _rows(results, monitor, counts, every_row=every_row)
    names = [*results.names, "row", "t2", "q", "alarm", "features"]
    require_distinct(names)
    found: list[dict[str, Any]] = []
    with shown():
        if as_json and output == STANDARD_OUTPUT:
            found = list(rows)
        else:
            with opened_output(output, force=force) as file:
                write_table(file, names, rows)
    limits = {"t2_limit": monitor.t2_limit_, "q_limit": monitor.q_limit_, "level": monitor.level}
    if as_json:
        result = {"model": str(model), "data": data, **limits, **counts}
        print_json(result | ({"found": found} if output == STANDARD_OUTPUT else {"output": output}))
    else:
        tell(
            f"{data}: {counts['alarms']:,} of {counted(counts['rows'], 'row')} above a limit, {counts['t2_alarms']:,} "
            f"of T2 ({limits['t2_limit']:.4g}), {counts['q_alarms']:,} of Q ({limits['q_limit']:.4g})"
        )
    if counts["alarms"] > allow * counts["rows"]:
        raise typer.Exit(ALARMED)


def _monitor_of(path: Any, level: float | None) -> Monitor:
    """Return the monitor in a file, or one for its model."""
    from ..files import load
    from ..monitoring import DriftTracker, Monitor

    loaded = load(path)
    if isinstance(loaded, Monitor):
        if level is not None:
            loaded.level = level
        return loaded
    loaded = loaded.model if isinstance(loaded, DriftTracker) else loaded
    return Monitor(loaded) if level is None else Monitor(loaded, level=level)


def _rows(results: Results, monitor: Monitor, counts: dict[str, int], *, every_row: bool) -> Iterator[dict[str, Any]]:
    """Yield the rows to write, and count all of them."""
    results.add([], lambda X: (monitor.check(X), X))
    for *kept, (result, X) in results.blocks():
        counts["t2_alarms"] += int(result.t2_alarm.sum())
        counts["q_alarms"] += int(result.q_alarm.sum())
        counts["alarms"] += int(result.alarm.sum())
        for i in range(len(X)) if every_row else result.alarm.nonzero()[0].tolist():
            row = {name: column[i].item() for name, column in zip(results.names, kept, strict=True)}
            row |= {"row": counts["rows"] + i, "t2": float(result.t2[i]), "q": float(result.q[i])}
            yield row | _reasons(monitor, result, X, i)
        counts["rows"] += len(X)


def _reasons(monitor: Monitor, result: Checked, X: Any, i: int) -> dict[str, str]:
    """Return the limits that a row exceeds, and the features that contribute most."""
    from ..monitoring.monitor import largest_contributions

    above = [name for name, alarm in (("t2", result.t2_alarm[i]), ("q", result.q_alarm[i])) if alarm]
    # Q shows which features are wrong, T2 which are extreme.
    most = largest_contributions(monitor, X[i], above[-1]) if above else []
    names = monitor.feature_names_
    return {"alarm": "+".join(above), "features": ", ".join(f"{names[k]} {share:.0%}" for k, share in most)}
