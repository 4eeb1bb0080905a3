"""The page of a model: what it is, how well it does, what it looks at, and what to be careful about."""

from __future__ import annotations

from typing import Any

import numpy as np

import plstream

from .._core.metrics import ClassificationMetrics, RegressionMetrics
from .._core.types import Array, Float64Array
from ..data.columns import listed
from ..monitoring.pipelines import last_step
from .applied import N_COMPONENTS, Applied, apply_model
from .cautions import Caution, cautions
from .charts import (
    ELLIPSE_LEVEL,
    N_LINES,
    confusion_view,
    explained_view,
    feature_view,
    n_bins,
    predicted_views,
    score_views,
    t2_q_view,
    validation_view,
)
from .html import Page, Section
from .interactive import View
from .traits import Features, Traits, counted

_N_FEATURES = 15
_N_MORE_FEATURES = 200
_N_RESPONSES = 4
_MOST_CONFUSED = 40
_MOST_IN_TABLE = 12
_NOTHING = "–"  # noqa: RUF001


def model_report(model: Any, X: Any = None, y: Any = None, *, title: str | None = None) -> Page:
    """Return a page about a model, and about what it makes of data: one file of HTML, with figures to point at.

    It says what the model is, how well it predicts, which features it looks at, which rows are unlike those before, and
    what to be careful about. Data is read block by block, and memory does not depend on the number of rows. Of many
    rows a sample is drawn, and of many features the peaks of every stretch.

    Parameters
    ----------
    model : object
        A fitted model or selector of this package, or scikit-learn's ``Pipeline`` that ends with one: then the page is
        about its last step, and about rows as the steps before it return them.
    X : array-like or sparse matrix of shape (n_samples, n_features), or source, default=None
        Rows to try the model on, best such that it has not learnt from.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
        What is true of them, if that is known. None if X is a source, which has it.
    title : str, default=None
        Of the page.

    Returns
    -------
    page : Page
        Its method ``write`` writes it to a file.

    Raises
    ------
    ImportError
        When it becomes HTML, if Plotly is not installed: ``pip install plstream[report]``.

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
    traits = Traits(model)
    if traits.is_selector and X is not None:
        raise ValueError(f"{traits.kind} keeps features, and has neither scores nor predictions: leave out the data.")
    found = None if X is None else apply_model(*last_step(model, X), y)
    responses = traits.responses(None if found is None else found.target_names)
    watched = cautions(traits, found, responses)
    page = Page(
        title or f"{traits.kind}: a report",
        list(filter(None, [_what(traits), _how_good(traits, found, responses), _how_many(watched)])),
        _footer(),
    )
    page.verdicts(caution for caution in watched if caution[0] in {"no", "partly"})
    page.facts(_facts(traits, found))
    if found is not None and found.score is not None:
        _predictions(page.part("How well it predicts"), traits, found, responses)
    _components(page, traits)
    if found is not None:
        _rows(page.part("The rows"), traits, found, responses)
    _features(page.part("The features"), traits, responses)
    _checked(page, watched)
    _model(page.part("The model"), traits)
    return page


def _what(traits: Traits) -> str:
    m = counted(len(traits.features), "feature")
    if traits.kept is not None:
        return f"A {traits.kind}, which keeps {int(traits.kept.sum()):,} of {m}."
    text = f"A model of {counted(traits.n_components or 0, 'component')} and {m}"
    text += f", made from {counted(traits.n_rows or 0, 'row')} by {traits.kind}"
    text += f" (solver {traits.model.solver_!r})" if hasattr(traits.model, "solver_") else ""
    text += f", after {', '.join(traits.before)}" if traits.before else ""
    if traits.classes is not None:
        return f"{text}. It tells {len(traits.classes)} classes apart: {listed(traits.classes)}."
    return f"{text}."


def _how_good(traits: Traits, found: Applied | None, responses: list[str]) -> str:
    model = traits.model
    if found is not None and found.score is not None:
        words = _labels_in_words if isinstance(found.score, ClassificationMetrics) else _values_in_words
        where = f"On {found.name}, {counted(found.n_rows, 'row')}"
        return f"{where}, {words(found.score, responses)}{_flattered(traits, found)}"
    if hasattr(model, "best_score_"):
        share = f"{model.best_score_:.1%} of"
        does = f"predicts {share} the variance of rows held out"
        does = does if traits.classes is None else f"is expected to tell {share} rows held out right"
        return f"In cross-validation it {does}."
    if hasattr(model, "y_explained_variance_ratio_"):
        share = model.y_explained_variance_ratio_.sum()
        return (
            f"It explains {share:.1%} of the variance of the target in the rows it was made from. That flatters it: "
            "how well it predicts others, only data that it has not learnt from can tell."
        )
    if traits.is_selector:
        return "What the kept features are good for, only a model of them can tell."
    if hasattr(model, "predict"):
        return "How well it predicts, only data with a known target can tell."
    return "It predicts nothing by itself: its scores are for other methods to learn from."


def _labels_in_words(score: Any, _: list[str]) -> str:
    most = max(score.totals.values())
    return (
        f"{score.n_right / score.n_rows:.1%} of its labels are right, where the most common label would be right for "
        f"{most / score.n_rows:.1%}."
    )


def _values_in_words(score: Any, responses: list[str]) -> str:
    parts = [
        f"{name} with an RMSE of {rmse:.4g}, where the mean would have {other:.4g}"
        + (f" (R2 {r2:.4f})" if score.n_rows > 1 else "")
        for name, rmse, other, r2 in zip(responses, score.rmse, score.rmse_of_mean, score.r2, strict=False)
    ]
    more = f", and {counted(len(parts) - 2, 'more response')}" if len(parts) > 2 else ""
    return f"it predicts {', and '.join(parts[:2])}{more}."


def _flattered(traits: Traits, found: Applied) -> str:
    if found.n_rows == traits.n_rows:
        return " It has learnt from as many rows, and if from these very ones, that flatters it."
    return " If it has learnt from any of these rows, that flatters it."


def _how_many(watched: list[Caution]) -> str:
    n = sum(caution[0] in {"no", "partly"} for caution in watched)
    if not n:
        return "The checks below have found nothing to be careful about." if watched else ""
    return f"There {'is one thing' if n == 1 else f'are {n} things'} to be careful about:"


def _footer() -> str:
    return f"Made by plstream {plstream.__version__}. This page is one file: it loads nothing, and sends nothing."


def _facts(traits: Traits, found: Applied | None) -> dict[str, object]:
    facts: dict[str, object] = {}
    if traits.n_components is not None:
        facts["Components"] = traits.n_components
    facts["Features"] = f"{len(traits.features):,}"
    if traits.n_rows is not None:
        facts["Rows learnt"] = f"{traits.n_rows:,}"
    if found is not None:
        facts["Rows of data"] = f"{found.n_rows:,}"
    return facts


def _predictions(section: Section, traits: Traits, found: Applied, responses: list[str]) -> None:
    if isinstance(found.score, ClassificationMetrics):
        _label_predictions(section, traits, found.score)
        return
    score = found.score
    assert isinstance(score, RegressionMetrics)
    rows = [
        [name, f"{r2:.4f}" if score.n_rows > 1 else _NOTHING, *(f"{value:.4g}" for value in values)]
        for name, r2, *values in zip(responses, score.r2, score.rmse, score.bias, score.rmse_of_mean, strict=False)
    ]
    section.table(
        ["Response", "R2", "RMSE", "Bias", "RMSE of the mean"],
        rows,
        f"Predictions of {counted(found.n_rows, 'row')} of {found.name}. The bias is what they are too large by on "
        "average; the last column is the error if the mean of these rows were predicted for all.",
    )
    section.plot(
        predicted_views(found, responses),
        f"Predicted against measured values of {listed(responses)}, one point a row, with the line of equality.",
        "Predicted against measured. Good predictions are near the dashed line at both ends. A curve speaks of "
        f"something that is not linear, and points far off are rows to look at.{_sampled(found)}",
    )


def _sampled(found: Applied) -> str:
    n = len(found.sample["row"])
    return f" Drawn are {n:,} rows, a random sample of {found.n_rows:,}." if n < found.n_rows else ""


def _label_predictions(section: Section, traits: Traits, score: ClassificationMetrics) -> None:
    assert traits.classes is not None
    known: list[Any] = traits.classes.tolist()
    labels = [*known, *sorted({true for true, _ in score.confusions} - set(known), key=str)]
    totals = score.totals
    given = dict.fromkeys(labels, 0)
    for (_, guess), count in score.confusions.items():
        given[guess] += count
    right = {label: score.confusions[label, label] for label in labels}
    recalls = [right[label] / totals[label] for label in totals]
    facts = {
        "Accuracy": f"{score.n_right / score.n_rows:.2%}",
        "Mean over classes": f"{np.mean(recalls):.2%}",
        "Most common label": f"{max(totals.values()) / score.n_rows:.2%}",
        "Rows": f"{score.n_rows:,}",
    }
    section.facts(facts)
    names = [str(label) for label in labels]
    if len(labels) <= _MOST_CONFUSED:
        counts = np.array([[score.confusions[true, guess] for guess in labels] for true in labels])
        section.plot(
            [confusion_view(names, counts)],
            f"How many rows of each of {len(labels)} labels were given which label; right ones are on the diagonal.",
            "Confusions: rows are the true labels, columns the predicted ones, and colours are shares of a true label. "
            "What is off the diagonal is wrong, and what is off it on both sides alike is hard to tell apart.",
        )
        if len(labels) <= _MOST_IN_TABLE:
            rows = [[name, *map(str, line)] for name, line in zip(names, counts.tolist(), strict=True)]
            section.folded("Confusions as a table").table(["True \\ predicted", *names], rows, "Rows by label")
    wrong = sorted(((pair, n) for pair, n in score.confusions.items() if pair[0] != pair[1]), key=lambda item: -item[1])
    if wrong and len(labels) > 2:
        section.table(
            ["True", "Predicted", "Rows"],
            [[str(true), str(guess), f"{n:,}"] for (true, guess), n in wrong[:10]],
            "The most common mistakes",
        )
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


def _components(page: Page, traits: Traits) -> None:
    model = traits.model
    shares: dict[str, Float64Array] = {}
    for name, attribute in (
        ("X", "x_explained_variance_ratio_"),
        ("y", "y_explained_variance_ratio_"),
        ("between classes" if hasattr(model, "scalings_") else "X", "explained_variance_ratio_"),
    ):
        if hasattr(model, attribute):
            shares[name] = np.asarray(getattr(model, attribute))
    results = getattr(model, "cv_results_", None)
    if not shares and results is None:
        return
    section = page.part("The components")
    if results is not None:
        _validation(section, traits, results)
    if shares:
        section.plot(
            [explained_view(shares)],
            f"Share of the variance of {' and '.join(shares)} that each component explains, and their sums.",
            "Explained variance in the rows that the model was made from."
            + (
                " A component that explains much of X and little of y describes something that does not matter for the "
                "target; the last ones often describe noise."
                if len(shares) > 1
                else ""
            ),
        )
        header = ["Component", *(f"{name}{more}" for name in shares for more in ("", ", sum"))]
        rows = [
            [str(k + 1), *(f"{value:.2%}" for share in shares.values() for value in (share[k], share[: k + 1].sum()))]
            for k in range(max(map(len, shares.values())))
        ]
        section.folded("Explained variance as a table").table(header, rows, "Share of the variance")


def _validation(section: Section, traits: Traits, results: Any) -> None:
    chosen = int(traits.n_components or 0)
    section.plot(
        [validation_view(results, chosen)],
        f"Cross-validated score by the number of components, of which {chosen} were chosen.",
        "Cross-validation: the score of rows that the model had not learnt, with standard errors. Take the first "
        "number from which on it hardly gets better; where it falls, further components describe noise.",
    )
    rmse = results.get("mean_test_rmse")
    header, columns = ["Components", "Score"], [np.asarray(results["mean_test_score"])]
    if rmse is not None:
        columns += list(np.asarray(rmse).reshape(len(columns[0]), -1).T[:_N_RESPONSES])
        header += ["RMSE"] if len(columns) == 2 else [f"RMSE of y{k}" for k in range(len(columns) - 1)]
    rows = [
        [str(n), *(f"{column[i]:.4g}" for column in columns)] for i, n in enumerate(np.asarray(results["n_components"]))
    ]
    strong = [i for i, n in enumerate(np.asarray(results["n_components"])) if n == chosen]
    section.folded("Cross-validation as a table").table(header, rows, "Errors of rows held out", strong)


def _rows(section: Section, traits: Traits, found: Applied, responses: list[str]) -> None:
    views = score_views(found, responses)
    coloured = f", coloured by {'label' if found.labels else responses[0]}" if "y" in found.sample else ""
    first = f"the first {N_COMPONENTS} " if len(found.sample["scores"][0]) == N_COMPONENTS else ""
    section.plot(
        views,
        f"Scores of rows on pairs of {first}components{coloured}, one point a row.",
        f"Scores{coloured}: rows near each other are alike to the model. Look for groups, for trends of the colour, "
        f"and for rows far from all others. The dashed ellipse holds {ELLIPSE_LEVEL:.0%} of normal rows that are like "
        f"these.{_sampled(found)}",
    )
    if found.monitor is None:
        return
    own = (
        " The limits are from these very rows, as the model keeps none of its own: fit it with solver='gram' to have "
        "them from the rows it has learnt."
        if found.monitor.n_reference_rows_
        else ""
    )
    section.plot(
        [t2_q_view(found)],
        f"T2 and Q of rows with their limits: {found.n_alarms:,} of {found.n_rows:,} are beyond one.",
        "T2 and Q. To the right are rows that are extreme in ways that the model knows, and above those that have "
        "something it has never seen: a failed sensor, a new ingredient. There, predictions are in doubt."
        f"{own}{_sampled(found)}",
    )
    _unusual(section, found, traits.features.names)


def _unusual(section: Section, found: Applied, names: tuple[str, ...]) -> None:
    assert found.monitor is not None
    monitor, unusual = found.monitor, found.unusual
    rows = []
    for i in np.flatnonzero(unusual["excess"] > 1):
        t2, q = float(unusual["t2"][i]), float(unusual["q"][i])
        shares = ", ".join(f"{names[k]} ({share:.0%})" for k, share in found.causes[i])
        beyond = [
            name for name, is_beyond in (("T2", t2 > monitor.t2_limit_), ("Q", q > monitor.q_limit_)) if is_beyond
        ]
        rows.append([str(unusual["row"][i]), f"{t2:.4g}", f"{q:.4g}", " and ".join(beyond), shares])
    if rows:
        limits = f"The limits are {monitor.t2_limit_:.4g} for T2 and {monitor.q_limit_:.4g} for Q."
        section.table(
            ["Row", "T2", "Q", "Beyond", "Features with the largest part"],
            rows,
            f"The {len(rows)} most unusual rows, counted from 0. {limits}",
        )


def _features(section: Section, traits: Traits, responses: list[str]) -> None:
    features = traits.features
    if traits.importance is not None:
        name = traits.importance_name
        threshold = (1.0, "VIP of 1") if name == "VIP" else None
        above = int(np.count_nonzero(traits.importance > 1))
        words = (
            f"Importance (VIP): its squares are one on average, and {above:,} of {len(features):,} features are above "
            "one. These matter most for the target."
            if threshold
            else "What the selector ranks features by: the larger, the better."
        )
        section.plot(
            [feature_view(name, features, {name: traits.importance}, marked=traits.kept, threshold=threshold)],
            f"{name} of all {len(features):,} features.",
            words + _thinned(features, 1),
        )
    _top(section, traits, responses)
    if traits.coefficients is not None:
        lines = dict(zip(_distinct(responses), traits.coefficients[:N_LINES], strict=False))
        views = [feature_view("Coefficients", features, lines)]
        if traits.scale is not None and not np.all(traits.scale == 1):
            scaled = {name: line * traits.scale for name, line in lines.items()}
            views = [feature_view("Coefficients of scaled features", features, scaled), *views]
        section.plot(
            views,
            f"Coefficients of all {len(features):,} features, a line for each of {listed(responses)}.",
            "Coefficients: what a prediction changes by when a feature changes by one (scaled: by its standard "
            "deviation) and no other does. Smooth lines with few peaks speak of chemistry or physics, a jagged line of "
            f"noise and of too many components.{_thinned(features, len(lines))}",
        )
    views = [
        feature_view(name, features, _by_component(matrix))
        for name, matrix in (("Loadings", traits.loadings), ("Weights", traits.weights))
        if matrix is not None
    ]
    if views:
        section.plot(
            views,
            f"{' and '.join(view.name for view in views)} of all {len(features):,} features, a line a component.",
            f"{_what_views_are(views)} Click on a name above the figure to hide or show a line."
            f"{_thinned(features, len(views[0].data))}",
        )


def _thinned(features: Features, n_lines: int) -> str:
    words = " Of so many features, the largest and the smallest value of every stretch are drawn."
    return words if len(features) > 2 * n_bins(n_lines) else ""


def _what_views_are(views: list[View]) -> str:
    names = {view.name for view in views}
    loadings = "Loadings are what a component looks like in the features." if "Loadings" in names else ""
    weights = (
        "Weights are what it looks for." if loadings else "Weights are what a component looks for in the features."
    )
    return f"{loadings} {weights}".strip()


def _by_component(matrix: Array) -> dict[str, Float64Array]:
    return {f"component {k + 1}": matrix[:, k] for k in range(min(matrix.shape[1], N_LINES))}


def _distinct(names: list[str]) -> list[str]:
    """Return names that are all different: lines are known by their names."""
    return [name if names.index(name) == k else f"{name} ({k})" for k, name in enumerate(names)]


def _top(section: Section, traits: Traits, responses: list[str]) -> None:
    strength = traits.strength
    order = np.argsort(-strength, kind="stable")[:_N_MORE_FEATURES]
    columns: dict[str, Array] = {}
    if traits.importance is not None:
        columns[traits.importance_name] = traits.importance
    if traits.coefficients is not None:
        for name, line in zip(_distinct(responses), traits.coefficients[:_N_RESPONSES], strict=False):
            columns["Coefficient" if len(traits.coefficients) == 1 else f"Coefficient of {name}"] = line
    if not columns and traits.weights is not None:
        columns["Largest weight"] = strength
    for name, attribute in (("Mean", "x_mean_"), ("Scale", "x_scale_")):
        if hasattr(traits.model, attribute):
            columns[name] = getattr(traits.model, attribute)
    if traits.kept is not None:
        columns["Kept"] = np.where(traits.kept, "yes", "no")
    rows = [
        [traits.features.names[k], *(f"{c[k]:.4g}" if c.dtype.kind == "f" else str(c[k]) for c in columns.values())]
        for k in order
    ]
    by = f"by {traits.importance_name}" if traits.importance is not None else "by size"
    header = ["Feature", *columns]
    section.table(header, rows[:_N_FEATURES], f"The {min(len(rows), _N_FEATURES)} features that matter most, {by}")
    if len(rows) > _N_FEATURES:
        rest = f"Features {_N_FEATURES + 1} to {len(rows)} of {len(traits.features):,}"
        section.folded(rest).table(header, rows[_N_FEATURES:], f"Further features, {by}")


def _checked(page: Page, watched: list[Caution]) -> None:
    fine = [caution for caution in watched if caution[0] in {"yes", "open"}]
    if fine:
        page.part("What else was checked").verdicts(fine)


def _model(section: Section, traits: Traits) -> None:
    parameters = [[name, repr(value)] for name, value in traits.model.get_params(deep=False).items()]
    section.table(["Parameter", "Value"], parameters, f"Parameters of {traits.kind}")
    facts: dict[str, object] = {}
    if traits.before:
        facts["Steps before"] = ", ".join(traits.before)
    if hasattr(traits.model, "solver_"):
        facts["Solver"] = traits.model.solver_
    if hasattr(traits.model, "retained_variance_"):
        facts["Variance of X kept"] = f"{traits.model.retained_variance_:.4%}"
    if traits.classes is not None:
        facts["Classes"] = listed(traits.classes)
    if hasattr(traits.model, "feature_names_in_"):
        facts["Names of features"] = listed(traits.features.names)
    section.facts(facts)
