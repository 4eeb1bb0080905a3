"""The report section about predictions: errors of values, and confusions of labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.errors import counted
from .._core.metrics import ClassificationMetrics
from .._core.types import Array
from ..data.columns import listed
from ..plots import PredictionDisplay
from ..plots.features import MOST_LINES
from ..plots.interactive import PlotlyFigure, figure, numbers, plain, tick_labels
from .evaluation import EvaluationResult
from .html import Section
from .model_summary import ModelSummary, drawn_note

# Maximum labels of a confusion matrix drawn, drawn with numbers, and shown as a table.
_MOST_CONFUSED, _MOST_WITH_NUMBERS, _MOST_IN_TABLE = 40, 20, 12
# Labels whose shares are listed.
_MOST_LABELS = 200
_NOTHING = "–"  # noqa: RUF001


def predictions_part(section: Section, summary: ModelSummary, result: EvaluationResult, responses: list[str]) -> None:
    """Fill the section about predictions: metrics, and predicted against measured values or labels."""
    metrics = result.metrics
    assert metrics is not None
    if isinstance(metrics, ClassificationMetrics):
        _label_predictions(section, summary, metrics)
        return
    columns = (
        metrics.r2,
        metrics.rmse,
        metrics.sep,
        metrics.bias_without_noise,
        metrics.slope,
        metrics.rpd,
        metrics.rmse_of_mean,
    )
    rows = [
        [
            name,
            f"{r2:.4f}" if metrics.n_rows > 1 else _NOTHING,
            *(f"{value:.4g}" if np.isfinite(value) else _NOTHING for value in values),
        ]
        for name, r2, *values in zip(responses, *columns, strict=False)
    ]
    section.table(
        ["Response", "R2", "RMSE", "SEP", "Bias", "Slope", "RPD", "RMSE of the mean"],
        rows,
        f"Predictions of {counted(result.n_rows, 'row')} of {result.name}. The bias is the mean of predicted minus "
        "measured values, SEP the deviation of the errors about it, slope that of predicted against measured values, "
        "and RPD the deviation of measured values over SEP; the last column is the error if the mean of these rows "
        "were predicted for all.",
    )
    true, predicted = (
        np.asarray(result.sample[name]).reshape(len(result.sample["row"]), -1) for name in ("y", "predicted")
    )
    figures = {
        name: PredictionDisplay(true[:, k], predicted[:, k], name=name, rows=result.sample["row"]).plotly()
        for k, name in enumerate(responses[:MOST_LINES])
    }
    section.plot(
        figures,
        f"Predicted against measured values of {listed(responses)}, one point per row, with the line of equality.",
        "Predicted against measured. Good predictions are near the dashed line at both ends. A curve suggests "
        f"a nonlinear relation, and points far off are rows to inspect.{result.sampled_note}"
        f"{drawn_note(responses)}",
    )


def _label_predictions(section: Section, summary: ModelSummary, metrics: ClassificationMetrics) -> None:
    assert summary.classes is not None
    known: list[Any] = summary.classes.tolist()
    labels = [*known, *sorted({true for true, _ in metrics.confusions} - set(known), key=str)]
    totals = metrics.totals
    given = dict.fromkeys(labels, 0)
    for (_, guess), count in metrics.confusions.items():
        given[guess] += count
    right = {label: metrics.confusions[label, label] for label in labels}
    recalls = [right[label] / totals[label] for label in totals]
    section.facts(
        {
            "Accuracy": f"{metrics.n_right / metrics.n_rows:.2%}",
            "Mean over classes": f"{np.mean(recalls):.2%}",
            "Most common label": f"{max(totals.values()) / metrics.n_rows:.2%}",
            "Rows": f"{metrics.n_rows:,}",
        }
    )
    names = [str(label) for label in labels]
    if len(labels) <= _MOST_CONFUSED:
        counts = np.array([[metrics.confusions[true, guess] for guess in labels] for true in labels])
        section.plot(
            {"Confusions": _confusion_figure(names, counts)},
            f"Confusion matrix of {len(labels)} labels: number of rows by true and predicted label; correct ones are "
            "on the diagonal.",
            "Confusions: rows are the true labels, columns the predicted ones, and colours are shares of a true label. "
            "Entries off the diagonal are mistakes; pairs with mistakes in both directions are hard to distinguish.",
        )
        if len(labels) <= _MOST_IN_TABLE:
            rows = [[name, *map(str, line)] for name, line in zip(names, counts.tolist(), strict=True)]
            section.folded("Confusions as a table").table(["True \\ predicted", *names], rows, "Rows by label")
    wrong = [(pair, n) for pair, n in metrics.confusions.items() if pair[0] != pair[1]]
    if wrong and len(labels) > 2:
        most = sorted(wrong, key=lambda item: -item[1])[:10]
        rows = [[str(true), str(guess), f"{n:,}"] for (true, guess), n in most]
        section.table(["True", "Predicted", "Rows"], rows, "The most common mistakes")
    rows = [
        [
            str(label),
            f"{totals.get(label, 0):,}",
            f"{right[label] / totals[label]:.1%}" if totals.get(label) else _NOTHING,
            f"{right[label] / given[label]:.1%}" if given[label] else _NOTHING,
        ]
        for label in labels[:_MOST_LABELS]
    ]
    where = section.folded(f"All {len(labels)} labels") if len(labels) > _MOST_IN_TABLE else section
    where.table(["Label", "Rows", "Recall", "Precision"], rows, "How well each label is predicted")


def _confusion_figure(names: list[str], counts: Array) -> PlotlyFigure:
    # Shares of the rows of each label: otherwise frequent labels would dominate.
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    positions = list(range(len(names)))
    data = {
        "type": "heatmap",
        "x": positions,
        "y": positions,
        "z": [numbers(row) for row in shares],
        "text": counts.tolist(),
        "texttemplate": "%{text}" if len(names) <= _MOST_WITH_NUMBERS else "",
        "customdata": [[[plain(true), plain(guess)] for guess in names] for true in names],
        "hovertemplate": "true %{customdata[0]}<br>predicted %{customdata[1]}<br>"
        "%{text} rows, %{z:.1%} of that label<extra></extra>",
        "colorscale": [[0, "--paper"], [1, "--c0"]],
        "zmin": 0,
        "zmax": 1,
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
    }
    ticks = {"tickvals": positions, "ticktext": tick_labels(names)}
    return figure("Predicted", "True", [data], xaxis=ticks, yaxis=ticks | {"autorange": "reversed"})
