"""model_report: what a model is, how well it predicts, which features and rows matter, and what to be careful about."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

import plstream

from .._core.errors import counted
from .._core.metrics import ClassificationMetrics, Metrics
from .._core.types import Array
from ..data.columns import listed
from ..monitoring.pipelines import last_step
from ..plots import (
    CoefficientsDisplay,
    CrossValidationDisplay,
    ExplainedVarianceDisplay,
    LoadingsDisplay,
    MonitoringDisplay,
    PredictionDisplay,
    ScoresDisplay,
    VIPDisplay,
)
from ..plots._plotly import PlotlyFigure, figure, numbers, plain, tick_labels
from ..plots.features import MOST_LINES, SHOWN_AT_FIRST, FeatureDisplay
from ..plots.scores import component_labels
from .diagnostics import Diagnostic, diagnose
from .evaluation import N_COMPONENTS, EvaluationResult, evaluate
from .html import Page, Section
from .model_summary import ModelSummary

_N_FEATURES, _N_MORE_FEATURES = 15, 200
_N_RESPONSES = 4
# Labels of a confusion matrix that is drawn, drawn with numbers, and shown as a table.
_MOST_CONFUSED, _MOST_WITH_NUMBERS, _MOST_IN_TABLE = 40, 20, 12
_NOTHING = "–"  # noqa: RUF001


def model_report(model: Any, X: Any = None, y: Any = None, *, title: str | None = None) -> Page:
    """Return a report about a model, and about its results on data: one HTML file with interactive plots.

    It says what the model is, how well it predicts, which features matter, which rows are unusual, and what to be
    careful about. Data is read block by block, and memory does not depend on the number of rows. Of many rows a sample
    is drawn, and of many features the extremes of every stretch.

    Parameters
    ----------
    model : object
        A fitted model or selector of this package, or scikit-learn's ``Pipeline`` that ends with one: then the report
        is about its last step, and about rows as the steps before it return them.
    X : array-like or sparse matrix of shape (n_samples, n_features), or source, default=None
        Rows to evaluate the model on, best such that it was not fitted to.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
        The true target, if known. None if X is a source, which has it.
    title : str, default=None
        Title of the report.

    Returns
    -------
    page : Page
        The report. Its method ``write`` writes it to a file.

    Raises
    ------
    ImportError
        When it becomes HTML, if Plotly is not installed: ``pip install 'plstream[report]'``.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLS
    >>> from plstream.report import model_report
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 10))
    >>> y = X[:, 0] - 2 * X[:, 1] + 0.1 * rng.normal(size=300)
    >>> model = IncrementalPLS(n_components=2, solver="gram").fit(X[:200], y[:200])
    >>> page = model_report(model, X[200:], y[200:])
    >>> print(page.lead[1])
    On the data given, 100 rows, it predicts y with an RMSE of 0.2..., where the mean would have 2... (R2 0.99...). ...
    """
    summary = ModelSummary(model)
    if summary.is_selector and X is not None:
        raise ValueError(f"{summary.kind} keeps features, and has neither scores nor predictions: leave out the data.")
    result = None if X is None else evaluate(*last_step(model, X), y)
    responses = summary.responses(None if result is None else result.target_names)
    diagnostics = diagnose(summary, result, responses)
    problems = [diagnostic for diagnostic in diagnostics if diagnostic[0] in {"no", "partly"}]
    page = Page(
        title or f"{summary.kind}: a report",
        [*filter(None, [_what(summary), _how_good(summary, result, responses), _how_many(diagnostics, problems)])],
        f"Made by plstream {plstream.__version__}. This page is one file: it loads nothing, and sends nothing.",
    )
    page.verdicts(problems)
    _facts(page, summary, result)
    if result is not None and result.metrics is not None:
        _predictions(page.part("How well it predicts"), summary, result, responses)
    _components(page, summary)
    if result is not None:
        _rows(page.part("The rows"), summary, result, responses)
    _features(page.part("The features"), summary, responses)
    others = [diagnostic for diagnostic in diagnostics if diagnostic not in problems]
    if others:
        page.part("What else was checked").verdicts(others)
    _model(page.part("The model"), summary)
    return page


def _what(summary: ModelSummary) -> str:
    m = counted(len(summary.feature_names), "feature")
    if summary.kept is not None:
        return f"A {summary.kind}, which keeps {int(summary.kept.sum()):,} of {m}."
    text = f"A model of {counted(summary.n_components or 0, 'component')} and {m}"
    text += f", fitted to {counted(summary.n_rows or 0, 'row')} by {summary.kind}"
    text += f" (solver {summary.model.solver_!r})" if hasattr(summary.model, "solver_") else ""
    text += f", after {', '.join(summary.before)}" if summary.before else ""
    if summary.classes is not None:
        return f"{text}. It distinguishes {len(summary.classes)} classes: {listed(summary.classes)}."
    return f"{text}."


def _how_good(summary: ModelSummary, result: EvaluationResult | None, responses: list[str]) -> str:
    model = summary.model
    if result is not None and result.metrics is not None:
        text = f"On {result.name}, {counted(result.n_rows, 'row')}, {_in_words(result.metrics, responses)}"
        as_many = "It was fitted to as many rows: if these are the same ones, the result is optimistic."
        others = "If it was fitted to any of these rows, the result is optimistic."
        return f"{text} {as_many if result.n_rows == summary.n_rows else others}"
    if hasattr(model, "best_score_"):
        share = f"{model.best_score_:.1%} of"
        does = f"predicts {share} the variance of rows held out"
        does = does if summary.classes is None else f"is expected to classify {share} rows held out correctly"
        return f"In cross-validation it {does}."
    if hasattr(model, "y_explained_variance_ratio_"):
        share = model.y_explained_variance_ratio_.sum()
        return (
            f"It explains {share:.1%} of the variance of the target in the training rows. This estimate is optimistic: "
            "how well it predicts other rows, only data that it was not fitted to can tell."
        )
    if summary.is_selector:
        return "What the kept features are good for, only a model of them can tell."
    if hasattr(model, "predict"):
        return "How well it predicts, only data with a known target can tell."
    return "It predicts nothing by itself: its scores are for other methods to learn from."


def _in_words(metrics: Metrics, responses: list[str]) -> str:
    if isinstance(metrics, ClassificationMetrics):
        most = max(metrics.totals.values())
        return (
            f"{metrics.n_right / metrics.n_rows:.1%} of its labels are right, where the most common label would be "
            f"right for {most / metrics.n_rows:.1%}."
        )
    parts = [
        f"{name} with an RMSE of {rmse:.4g}, where the mean would have {other:.4g}"
        + (f" (R2 {r2:.4f})" if metrics.n_rows > 1 else "")
        for name, rmse, other, r2 in zip(responses, metrics.rmse, metrics.rmse_of_mean, metrics.r2, strict=False)
    ]
    more = f", and {counted(len(parts) - 2, 'more response')}" if len(parts) > 2 else ""
    return f"it predicts {', and '.join(parts[:2])}{more}."


def _how_many(diagnostics: list[Diagnostic], problems: list[Diagnostic]) -> str:
    n = len(problems)
    if not n:
        return "The checks below have found nothing to be careful about." if diagnostics else ""
    return f"There {'is one thing' if n == 1 else f'are {n} things'} to be careful about:"


def _facts(page: Page, summary: ModelSummary, result: EvaluationResult | None) -> None:
    facts = {
        "Components": summary.n_components,
        "Features": len(summary.feature_names),
        "Training rows": summary.n_rows,
        "Rows of data": None if result is None else result.n_rows,
    }
    page.facts({name: f"{number:,}" for name, number in facts.items() if number is not None})


def _predictions(section: Section, summary: ModelSummary, result: EvaluationResult, responses: list[str]) -> None:
    metrics = result.metrics
    assert metrics is not None
    if isinstance(metrics, ClassificationMetrics):
        _label_predictions(section, summary, metrics)
        return
    columns = metrics.r2, metrics.rmse, metrics.bias_without_noise, metrics.rmse_of_mean
    rows = [
        [name, f"{r2:.4f}" if metrics.n_rows > 1 else _NOTHING, *(f"{value:.4g}" for value in values)]
        for name, r2, *values in zip(responses, *columns, strict=False)
    ]
    section.table(
        ["Response", "R2", "RMSE", "Bias", "RMSE of the mean"],
        rows,
        f"Predictions of {counted(result.n_rows, 'row')} of {result.name}. The bias is the mean of predicted minus "
        "measured values; the last column is the error if the mean of these rows were predicted for all.",
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
        "Predicted against measured. Good predictions are near the dashed line at both ends. A curve speaks of "
        f"something that is not linear, and points far off are rows to look at.{_sampled(result)}"
        f"{_first_of(MOST_LINES, responses)}",
    )


def _without_noise(values: Array, smallest: Array) -> Array:
    """Return values, of which those that are rounding errors are zero."""
    return np.where(np.abs(values) < smallest, 0.0, values)


def _sampled(result: EvaluationResult) -> str:
    n = len(result.sample["row"])
    return f" Drawn are {n:,} rows, a random sample of {result.n_rows:,}." if n < result.n_rows else ""


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
            f"How many rows of each of {len(labels)} labels were given which label; right ones are on the diagonal.",
            "Confusions: rows are the true labels, columns the predicted ones, and colours are shares of a true label. "
            "What is off the diagonal is wrong, and what is off it on both sides alike is hard to distinguish.",
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
        for label in labels[:_N_MORE_FEATURES]
    ]
    where = section.folded(f"All {len(labels)} labels") if len(labels) > _MOST_IN_TABLE else section
    where.table(
        ["Label", "Rows", "Found (recall)", "Right when given (precision)"], rows, "How well each label is predicted"
    )


def _confusion_figure(names: list[str], counts: Array) -> PlotlyFigure:
    # Shares of the rows of a label: else common ones would outshine the others.
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


def _components(page: Page, summary: ModelSummary) -> None:
    model = summary.model
    has_shares = any(hasattr(model, f"{of}explained_variance_ratio_") for of in ("", "x_"))
    if not has_shares and not hasattr(model, "cv_results_"):
        return
    section = page.part("The components")
    if hasattr(model, "cv_results_"):
        _validation(section, summary)
    if has_shares:
        _explained_variance(section, ExplainedVarianceDisplay.from_estimator(model, draw=False))


def _validation(section: Section, summary: ModelSummary) -> None:
    display = CrossValidationDisplay.from_estimator(summary.model, metric="score", draw=False)
    section.plot(
        {"Cross-validation": display.plotly()},
        f"Cross-validated score by the number of components, of which {display.chosen} were chosen.",
        "Cross-validation: the score of rows held out, with standard errors. Take the first number from which on it "
        "hardly gets better; where it falls, further components describe noise.",
    )
    rmse = summary.model.cv_results_.get("mean_test_rmse")
    header, columns = ["Components", "Score"], [display.error]
    if rmse is not None:
        columns += list(np.asarray(rmse).reshape(len(display.error), -1).T[:_N_RESPONSES])
        header += ["RMSE"] if len(columns) == 2 else [f"RMSE of y{k}" for k in range(len(columns) - 1)]
    rows = [[str(n), *(f"{column[i]:.4g}" for column in columns)] for i, n in enumerate(display.n_components)]
    strong = np.flatnonzero(display.n_components == display.chosen).tolist()
    section.folded("Cross-validation as a table").table(header, rows, "Errors of rows held out", strong)


def _explained_variance(section: Section, display: ExplainedVarianceDisplay) -> None:
    ratios = display.ratios
    caption = "Explained variance in the training rows."
    if len(ratios) > 1:
        caption += (
            " A component that explains much of X and little of y describes something that does not matter for the "
            "target; the last ones often describe noise."
        )
    description = f"Share of the variance of {' and '.join(ratios)} that each component explains, and their sums."
    section.plot({"Explained variance": display.plotly()}, description, caption)
    header = ["Component", *(f"{name}{more}" for name in ratios for more in ("", ", sum"))]
    columns = [column for ratio in ratios.values() for column in (ratio, np.cumsum(ratio))]
    rows = [[str(k), *(f"{value:.2%}" for value in values)] for k, values in enumerate(zip(*columns, strict=True), 1)]
    section.folded("Explained variance as a table").table(header, rows, "Share of the variance")


def _rows(section: Section, summary: ModelSummary, result: EvaluationResult, responses: list[str]) -> None:
    coloured = f", coloured by {'label' if result.has_labels else responses[0]}" if "y" in result.sample else ""
    first = f"the first {N_COMPONENTS} " if len(result.sample["scores"][0]) == N_COMPONENTS else ""
    section.plot(
        _score_figures(summary.model, result, responses),
        f"Scores of rows on pairs of {first}components{coloured}, one point per row.",
        f"Scores{coloured}: rows near each other are alike to the model. Look for groups, for trends of the colour, "
        "and for rows far from all others. The dashed ellipse holds 95% of normal rows that are like these."
        f"{_sampled(result)}",
    )
    monitor = result.monitor
    if monitor is None:
        return
    sample, unusual = result.sample, result.unusual
    extra = ~np.isin(unusual["row"], sample["row"])
    rows, t2, q = (np.concatenate([sample[name], unusual[name][extra]]) for name in ("row", "t2", "q"))
    display = MonitoringDisplay(t2, q, monitor.t2_limit_, monitor.q_limit_, level=monitor.level, rows=rows)
    own = (
        " The limits are from these very rows, because the model keeps none of its own: fit it with solver='gram' to "
        "have them from the training rows."
        if monitor.n_reference_rows_
        else ""
    )
    section.plot(
        {"T2 and Q": display.plotly()},
        f"T2 and Q of rows with their limits: {result.n_alarms:,} of {result.n_rows:,} are beyond one.",
        "T2 and Q. To the right are rows that are extreme in ways that the model knows, and above those that have "
        "something it has never seen: a failed sensor, a new ingredient. There, predictions are in doubt."
        f"{own}{_sampled(result)}",
    )
    _unusual(section, result, summary.feature_names)


def _score_figures(model: Any, result: EvaluationResult, responses: list[str]) -> dict[str, PlotlyFigure]:
    """Return the scores of sampled rows, one figure per pair of the first components."""
    scores, moments = result.sample["scores"], result.moments
    upper = moments.upper / max(moments.n_rows - 1, 1)
    covariance = np.triu(upper) + np.triu(upper, 1).T
    n = scores.shape[1]
    pairs = sorted(combinations(range(n), 2), key=lambda pair: pair[1]) if n > 1 else [(0,)]
    figures = {}
    for columns in map(list, pairs):
        ellipse = moments.x_mean[columns], covariance[np.ix_(columns, columns)], moments.n_rows
        display = ScoresDisplay(
            scores[:, columns],
            result.sample.get("y"),
            labels=component_labels(model, columns),
            ellipse=ellipse,
            rows=result.sample["row"],
            has_values=not result.has_labels,
        )
        names = " and ".join(str(k + 1) for k in columns)
        figures[f"Component{'s' if n > 1 else ''} {names}"] = display.plotly(ylabel=responses[0])
    return figures


def _unusual(section: Section, result: EvaluationResult, names: tuple[str, ...]) -> None:
    assert result.monitor is not None
    t2_limit, q_limit, unusual = result.monitor.t2_limit_, result.monitor.q_limit_, result.unusual
    rows = []
    for i in np.flatnonzero(unusual["excess"] > 1):
        t2, q = float(unusual["t2"][i]), float(unusual["q"][i])
        shares = ", ".join(f"{names[k]} ({share:.0%})" for k, share in result.causes[i])
        beyond = [name for name, is_beyond in (("T2", t2 > t2_limit), ("Q", q > q_limit)) if is_beyond]
        rows.append([str(unusual["row"][i]), f"{t2:.4g}", f"{q:.4g}", " and ".join(beyond), shares])
    if rows:
        section.table(
            ["Row", "T2", "Q", "Beyond", "Features with the largest part"],
            rows,
            f"The {len(rows)} most unusual rows, counted from 0. "
            f"The limits are {t2_limit:.4g} for T2 and {q_limit:.4g} for Q.",
        )


def _features(section: Section, summary: ModelSummary, responses: list[str]) -> None:
    n = f"all {len(summary.feature_names):,} features"
    if summary.importance is not None:
        name = summary.importance_name
        vip = VIPDisplay(summary.importance, summary.feature_names, name=name, kept=summary.kept)
        caption = "What the selector ranks features by: the larger, the better."
        if name == "VIP":
            above = int(np.count_nonzero(summary.importance > 1))
            caption = (
                f"Importance (VIP): its squares are one on average, and {above:,} of {len(summary.feature_names):,} "
                "features are above one. These matter most for the target."
            )
        figure = vip.plotly(threshold=1.0 if name == "VIP" else None)
        section.plot({name: figure}, f"{name} of {n}.", caption + _thinned(vip))
    _top(section, summary, responses)
    if summary.coefficients is not None:
        kinds: dict[str, bool | str] = {"Coefficients": False}
        if summary.scale is not None and not np.all(summary.scale == 1):
            kinds = {"Coefficients of scaled features": "features", **kinds}
        coefficients = {
            name: CoefficientsDisplay.from_estimator(summary.given, targets=responses, scaled=scaled, draw=False)
            for name, scaled in kinds.items()
        }
        section.plot(
            {name: display.plotly() for name, display in coefficients.items()},
            f"Coefficients of {n}, one line for each of {listed(responses)}.",
            "Coefficients: what a prediction changes by when a feature changes by one (scaled: by its standard "
            f"deviation) and no other does.{_of_spectra(coefficients['Coefficients'])}"
            f"{_thinned(coefficients['Coefficients'])}{_first_of(MOST_LINES, responses)}{_hidden(coefficients)}",
        )
    meanings = {
        "Loadings": "Loadings are what a component looks like in the features.",
        "Weights": "Weights are what a component looks for in the features.",
    }
    directions = {
        kind: LoadingsDisplay.from_estimator(
            summary.given,
            kind=kind.lower(),
            components=range(1, min(matrix.shape[1], MOST_LINES) + 1),
            draw=False,
        )
        for kind, matrix in (("Loadings", summary.loadings), ("Weights", summary.weights))
        if matrix is not None
    }
    if directions:
        section.plot(
            {name: display.plotly() for name, display in directions.items()},
            f"{' and '.join(directions)} of {n}, one line per component.",
            f"{' '.join(meanings[name] for name in directions)}{_thinned(next(iter(directions.values())))}"
            f"{_hidden(directions)}",
        )


def _of_spectra(display: FeatureDisplay) -> str:
    """Return what to look for where features are points of a spectrum."""
    words = " Smooth lines with few peaks suggest chemistry or physics, a jagged line noise and too many components."
    return words if display.axis else ""


def _hidden(displays: Mapping[str, FeatureDisplay]) -> str:
    """Return how to see what is not shown at first."""
    n = len(next(iter(displays.values())).values)
    if n < 2:
        return ""
    at_first = f" The first {SHOWN_AT_FIRST} of {n} are shown at first." if n > SHOWN_AT_FIRST else ""
    return f"{at_first} Click on a name above the figure to hide or show it."


def _first_of(n: int, responses: list[str]) -> str:
    return f" Drawn are the first {n} of {len(responses)} responses." if len(responses) > n else ""


def _thinned(display: FeatureDisplay) -> str:
    words = " Of so many features, the largest and the smallest value of every stretch are drawn."
    return words if display.is_thinned else ""


def _top(section: Section, summary: ModelSummary, responses: list[str]) -> None:
    strength = summary.strength
    order = np.argsort(-strength, kind="stable")[:_N_MORE_FEATURES]
    columns: dict[str, Array] = {}
    if summary.importance is not None:
        columns[summary.importance_name] = summary.importance
    if summary.coefficients is not None:
        for name, line in zip(responses, summary.coefficients[:_N_RESPONSES], strict=False):
            columns["Coefficient" if len(summary.coefficients) == 1 else f"Coefficient of {name}"] = line
    if not columns and summary.weights is not None:
        columns["Largest weight"] = strength
    scale = getattr(summary.model, "x_scale_", np.ones(1))
    if hasattr(summary.model, "x_mean_"):
        # Centred features have a mean of zero but for rounding.
        columns["Mean"] = _without_noise(summary.model.x_mean_, 1e-8 * scale)
    if hasattr(summary.model, "x_scale_"):
        columns["Scale"] = scale
    if summary.kept is not None:
        columns["Kept"] = np.where(summary.kept, "yes", "no")
    rows = [
        [summary.feature_names[k], *(f"{c[k]:.4g}" if c.dtype.kind == "f" else str(c[k]) for c in columns.values())]
        for k in order
    ]
    by = f"by {summary.importance_name}" if summary.importance is not None else "by size"
    if summary.coefficients is not None and len(summary.coefficients) > _N_RESPONSES:
        by += f", with the coefficients of the first {_N_RESPONSES} of {len(summary.coefficients)} responses"
    header = ["Feature", *columns]
    section.table(header, rows[:_N_FEATURES], f"The {min(len(rows), _N_FEATURES)} features that matter most, {by}")
    if len(rows) > _N_FEATURES:
        rest = f"Features {_N_FEATURES + 1} to {len(rows)} of {len(summary.feature_names):,}"
        section.folded(rest).table(header, rows[_N_FEATURES:], f"Further features, {by}")


def _model(section: Section, summary: ModelSummary) -> None:
    model = summary.model
    parameters = [[name, repr(value)] for name, value in model.get_params(deep=False).items()]
    section.table(["Parameter", "Value"], parameters, f"Parameters of {summary.kind}")
    facts: dict[str, object] = {}
    if summary.before:
        facts["Steps before"] = ", ".join(summary.before)
    if hasattr(model, "solver_"):
        facts["Solver"] = model.solver_
    if hasattr(model, "retained_variance_"):
        facts["Variance of X kept"] = f"{model.retained_variance_:.4%}"
    if summary.classes is not None:
        facts["Classes"] = listed(summary.classes)
    if hasattr(model, "feature_names_in_"):
        facts["Names of features"] = listed(summary.feature_names)
    section.facts(facts)
