"""model_report: a report about a model, its accuracy, important features, unusual rows, and diagnostics."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

import plstream

from .._core.errors import counted
from .._core.metrics import ClassificationMetrics, Metrics
from ..data.columns import listed
from ..monitoring.limits import matrix_of
from ..monitoring.pipelines import last_step, rows_for_last_step
from ..plots import CrossValidationDisplay, ExplainedVarianceDisplay, MonitoringDisplay, ScoresDisplay
from ..plots.interactive import PlotlyFigure
from ..plots.scores import component_labels
from .diagnostics import diagnose
from .evaluation import N_COMPONENTS, EvaluationResult, evaluate
from .features import features_part
from .html import Page, Section
from .model_summary import N_RESPONSES, ModelSummary
from .predictions import predictions_part


def model_report(model: Any, X: Any = None, y: Any = None, *, title: str | None = None) -> Page:
    """Return a report about a model and its results on data, as one HTML file with interactive plots.

    It describes the model, its accuracy, important features, unusual rows, and diagnostics. Data is read block by
    block, and memory does not depend on the number of rows. Plots show a sample of many rows, and the extremes of many
    features.

    Parameters
    ----------
    model : object
        A fitted model or selector of this package, or a scikit-learn ``Pipeline`` that ends with one: the report then
        describes its last step, and rows as transformed by the earlier steps.
    X : array-like or sparse matrix of shape (n_samples, n_features), or source, default=None
        Rows to evaluate the model on, preferably not training rows.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
        The true target, if known. None if X is a source, which provides it.
    title : str, default=None
        Title of the report.

    Returns
    -------
    page : Page
        The report. Its method ``write`` writes it to a file.

    Raises
    ------
    ImportError
        On conversion to HTML, if Plotly is not installed: ``pip install 'plstream[report]'``.

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
    On the data given, 100 rows, it predicts y with an RMSE of 0.2..., compared with 2... for the mean (R2 0.99...). ...
    """
    summary = ModelSummary(model)
    if summary.is_selector and X is not None:
        raise ValueError(f"{summary.kind} selects features and has neither scores nor predictions: leave out the data.")
    result = None if X is None else evaluate(last_step(model), rows_for_last_step(model, X), y)
    responses = summary.responses(None if result is None else result.target_names)
    diagnostics = diagnose(summary, result, responses)
    problems = [diagnostic for diagnostic in diagnostics if diagnostic[0] in {"no", "partly"}]
    points = "The checks below found no problems." if diagnostics else ""
    if problems:
        points = f"There {'is one point' if len(problems) == 1 else f'are {len(problems)} points'} to check:"
    page = Page(
        title or f"{summary.kind}: a report",
        [*filter(None, [_what(summary), _how_good(summary, result, responses), points])],
        f"Made by plstream {plstream.__version__}. This page is a single file that loads and sends nothing.",
    )
    sizes = {
        "Components": summary.n_components,
        "Features": len(summary.feature_names),
        "Training rows": summary.n_rows,
        "Rows of data": None if result is None else result.n_rows,
    }
    page.verdicts(problems).facts({name: f"{size:,}" for name, size in sizes.items() if size is not None})
    if result is not None and result.metrics is not None:
        predictions_part(page.part("How well it predicts"), summary, result, responses)
    _components(page, summary)
    if result is not None:
        _rows(page.part("The rows"), summary, result, responses)
    features_part(page.part("The features"), summary, responses)
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
        text = f"On {result.name}, {counted(result.n_rows, 'row')}, {_metrics_sentence(result.metrics, responses)}"
        as_many = "It was fitted to the same number of rows: if these are the same rows, the result is optimistic."
        others = "If it was fitted to any of these rows, the result is optimistic."
        return f"{text} {as_many if result.n_rows == summary.n_rows else others}"
    if hasattr(model, "best_score_"):
        share = f"{model.best_score_:.1%} of"
        does = f"predicts {share} the variance of held-out rows"
        does = does if summary.classes is None else f"is expected to classify {share} held-out rows correctly"
        return f"In cross-validation it {does}."
    if hasattr(model, "y_explained_variance_ratio_"):
        share = model.y_explained_variance_ratio_.sum()
        return (
            f"It explains {share:.1%} of the variance of the target in the training rows. This estimate is optimistic: "
            "evaluate the model on data that it was not fitted to."
        )
    if summary.is_selector:
        return "To judge the kept features, fit a model to them."
    if hasattr(model, "predict"):
        return "To see how well it predicts, pass data with a known target."
    return "It makes no predictions: its scores are inputs for other methods."


def _metrics_sentence(metrics: Metrics, responses: list[str]) -> str:
    if isinstance(metrics, ClassificationMetrics):
        most = max(metrics.totals.values())
        return (
            f"{metrics.n_right / metrics.n_rows:.1%} of its labels are correct, compared with "
            f"{most / metrics.n_rows:.1%} for always predicting the most common label."
        )
    parts = [
        f"{name} with an RMSE of {rmse:.4g}, compared with {other:.4g} for the mean"
        + (f" (R2 {r2:.4f})" if metrics.n_rows > 1 else "")
        for name, rmse, other, r2 in zip(responses, metrics.rmse, metrics.rmse_of_mean, metrics.r2, strict=False)
    ]
    more = f", and {counted(len(parts) - 2, 'more response')}" if len(parts) > 2 else ""
    return f"it predicts {', and '.join(parts[:2])}{more}."


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
        f"Cross-validated score against the number of components; {display.chosen} were chosen.",
        "Cross-validation: the score of held-out rows, with standard errors. Take the smallest number after which it "
        "hardly improves; where it falls, further components describe noise.",
    )
    rmse = summary.model.cv_results_.get("mean_test_rmse")
    header, columns = ["Components", "Score"], [display.error]
    if rmse is not None:
        columns += list(np.asarray(rmse).reshape(len(display.error), -1).T[:N_RESPONSES])
        names = summary.responses()[: len(columns) - 1]
        header += ["RMSE"] if len(names) == 1 else [f"RMSE of {name}" for name in names]
    rows = [[str(n), *(f"{column[i]:.4g}" for column in columns)] for i, n in enumerate(display.n_components)]
    strong = np.flatnonzero(display.n_components == display.chosen).tolist()
    section.folded("Cross-validation as a table").table(header, rows, "Errors of held-out rows", strong)


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
        f"Scores{coloured}: rows near each other are similar in the model. Look for groups, for trends in colour, "
        "and for rows far from all others. The dashed ellipse contains 95% of normally distributed rows."
        f"{result.sampled_note}",
    )
    monitor = result.monitor
    if monitor is None:
        return
    sample, unusual = result.sample, result.unusual
    extra = ~np.isin(unusual["row"], sample["row"])
    rows, t2, q = (np.concatenate([sample[name], unusual[name][extra]]) for name in ("row", "t2", "q"))
    display = MonitoringDisplay(t2, q, monitor.t2_limit_, monitor.q_limit_, level=monitor.level, rows=rows)
    own = (
        " The limits are computed from these rows, because the model has none of its own: fit it with solver='gram' to "
        "have them from the training rows."
        if monitor.n_reference_rows_
        else ""
    )
    section.plot(
        {"T2 and Q": display.plotly()},
        f"T2 and Q of rows with their limits: {result.n_alarms:,} of {result.n_rows:,} are beyond one.",
        "T2 and Q. Rows on the right are extreme within the model; rows at the top contain "
        "something unknown to the model, such as a failed sensor or a new ingredient. Do not trust their predictions."
        f"{own}{result.sampled_note}",
    )
    _unusual(section, result, summary.feature_names)


def _score_figures(model: Any, result: EvaluationResult, responses: list[str]) -> dict[str, PlotlyFigure]:
    """Return the scores of sampled rows, one figure per pair of the first components."""
    scores, moments = result.sample["scores"], result.moments
    covariance = matrix_of(moments) / max(moments.n_rows - 1, 1)
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
            ["Row", "T2", "Q", "Beyond", "Largest contributions"],
            rows,
            f"The {len(rows)} most unusual rows, counted from 0. "
            f"The limits are {t2_limit:.4g} for T2 and {q_limit:.4g} for Q.",
        )


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
