"""What one should know before one trusts a model, or its predictions of some data, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from .._core.metrics import ClassificationMetrics, RegressionMetrics
from .applied import Applied
from .html import Verdict
from .traits import Traits, counted

# A verdict, a few words, and a sentence.
Caution: TypeAlias = tuple[Verdict, str, str]

# Fewer rows than these, or than these for each component, are few.
_FEW_ROWS = 30
_FEW_ROWS_A_COMPONENT = 5
# Estimated sine of the angle to the exact solution, as IncrementalPLS has it.
_LARGE_SUBSPACE_ERROR = 0.3
# In standard errors: one in hundreds of thousands is as far off by chance, and there are many features.
_BEYOND_CHANCE = 5.0
# In standard deviations.
_MOVED = 0.5
_N_NAMED = 3
# Rows of measured data are not normal: so many times as many are beyond the two limits as of normal rows.
_OFTEN_BEYOND = 5.0
# Limits from fewer rows are too narrow, the more so the more features there are.
_FEW_ROWS_FOR_LIMITS = 100
# Errors of fewer rows are not compared, and those that are so many times as large as others are much larger.
_COMPARABLE_ROWS = 5
_MUCH_LARGER = 2.0


def cautions(traits: Traits, found: Applied | None, responses: list[str]) -> list[Caution]:
    """Return what was looked at: problems first, then what is to be kept in mind, then what is fine."""
    order = {"no": 0, "partly": 1, "open": 2, "yes": 3}
    all_of_them = [*_rows(traits), *_rank(traits), *_validation(traits), *_sketch(traits), *_unused(traits)]
    if found is not None:
        all_of_them += [*_predictions(found, responses), *_labels(traits, found)]
        all_of_them += [*_alarms(traits, found, responses), *_drift(traits, found), *_constant(traits, found)]
    return sorted(all_of_them, key=lambda caution: order[caution[0]])


def _rows(traits: Traits) -> Iterator[Caution]:
    n, c = traits.n_rows, traits.n_components
    if n is None or c is None:
        return
    if n < max(_FEW_ROWS, _FEW_ROWS_A_COMPONENT * c):
        yield (
            "partly",
            "Few rows.",
            f"The model was made from {counted(n, 'row')}: with others, weights and limits may look otherwise.",
        )


def _rank(traits: Traits) -> Iterator[Caution]:
    n, asked = traits.n_components, traits.n_asked
    if n is None or asked is None:
        return
    if n < asked:
        yield (
            "partly",
            "Fewer components.",
            f"{asked} components were asked for, and the rows have only {n}: the others are zero, and change nothing.",
        )
    elif not traits.is_selector:
        yield "yes", "Components.", f"The rows have all that were asked for, {n}."


def _validation(traits: Traits) -> Iterator[Caution]:
    results = getattr(traits.model, "cv_results_", None)
    if results is None or len(results["n_components"]) < 2:
        return
    most = max(results["n_components"])
    if traits.n_components == most < len(traits.features):
        yield (
            "partly",
            "The most components tried.",
            f"Cross-validation has chosen {traits.n_components} components, the most that it tried: try more.",
        )


def _sketch(traits: Traits) -> Iterator[Caution]:
    retained = getattr(traits.model, "retained_variance_", None)
    if retained is None or getattr(traits.model, "solver_", "") != "sketch":
        return
    error = np.asarray(traits.model.subspace_error_)
    good = int(np.argmax(error > _LARGE_SUBSPACE_ERROR)) if (error > _LARGE_SUBSPACE_ERROR).any() else len(error)
    text = f"The sketch has kept {retained:.1%} of the variance of X."
    if good < len(error):
        text += (
            f" Only the first {good} of {len(error)} components are likely to be close to those of an exact fit: take "
            "a larger sketch_size, or fewer components."
        )
        yield "no", "Sketch.", text
    else:
        angle = f"{error.max(initial=0.0):.2g}"
        yield "yes", "Sketch.", f"{text} Its components are close to exact ones (sine of the angle about {angle})."


def _unused(traits: Traits) -> Iterator[Caution]:
    if traits.unused:
        yield (
            "partly",
            "Features without a part.",
            (
                f"{traits.unused:,} of {len(traits.features):,} features have weights of zero: they were constant, or "
                "had nothing in common with the target, in the rows that the model was made from."
            ),
        )


def _predictions(found: Applied, responses: list[str]) -> Iterator[Caution]:
    score = found.score
    if isinstance(score, ClassificationMetrics):
        ((common, n),) = score.totals.most_common(1)
        if score.n_right <= n and len(score.totals) > 1:
            yield (
                "no",
                "No better than guessing.",
                (
                    f"To call every row {common} would be right for {n / score.n_rows:.1%} of them, the model is for "
                    f"{score.n_right / score.n_rows:.1%}."
                ),
            )
    if isinstance(score, RegressionMetrics) and score.n_rows > 1:
        for name, r2, bias, rmse in zip(responses, score.r2, score.bias, score.rmse, strict=False):
            if not r2 > 0:
                yield "no", "No better than the mean.", f"Predictions of {name} have an R2 of {r2:.3g} on this data."
            spread = np.sqrt(max(rmse**2 - bias**2, 0.0) / (score.n_rows - 1))
            if abs(bias) > _BEYOND_CHANCE * spread and abs(bias) > 1e-6 * rmse:
                side = "high" if bias > 0 else "low"
                yield (
                    "partly",
                    "Bias.",
                    f"Predictions of {name} are too {side} by {abs(bias):.3g} on average, more than chance explains.",
                )


def _labels(traits: Traits, found: Applied) -> Iterator[Caution]:
    if traits.classes is None or not isinstance(found.score, ClassificationMetrics):
        return
    known = set(traits.classes.tolist())
    new = sorted({str(true) for true in found.score.totals if true not in known})
    if new:
        more = f" and {len(new) - _N_NAMED:,} more" if len(new) > _N_NAMED else ""
        names = ", ".join(new[:_N_NAMED])
        yield "no", "New labels.", f"The data has labels that the model has never seen, and gets wrong: {names}{more}."


def _alarms(traits: Traits, found: Applied, responses: list[str]) -> Iterator[Caution]:
    if found.monitor is None:
        if found.no_monitor:
            yield "open", "Unusual rows.", found.no_monitor
        return
    n, expected = found.n_rows, 1 - found.monitor.level
    share = found.n_alarms / n
    text = (
        f"{found.n_alarms:,} of {n:,} rows ({share:.1%}) are beyond a limit of T2 ({found.n_t2_alarms:,}) "
        f"or of Q ({found.n_q_alarms:,}); of normal rows like those before, {expected:.0%} are beyond each."
    )
    if found.monitor.n_reference_rows_:
        yield (
            "open",
            "Unusual rows.",
            f"{text} The limits are from these very rows, as the model keeps none of its own.",
        )
        return
    if share <= 2 * expected + 3 * np.sqrt(expected / n):
        yield "yes", "Unusual rows.", text
        return
    if traits.n_rows is not None and traits.n_rows < _FEW_ROWS_FOR_LIMITS:
        text += f" Limits from only {counted(traits.n_rows, 'row')} are too narrow, and more rows are beyond by chance."
    often = 2 * expected * _OFTEN_BEYOND
    if share <= often + 3 * np.sqrt(often / n):
        yield "yes", "Unusual rows.", f"{text} That is not more than measured data often has."
        return
    larger, errors = _errors_beyond(found, responses)
    if larger is None:
        yield "no", "Unusual rows.", f"{text} Predictions of these are in doubt."
    elif larger:
        yield "no", "Unusual rows.", f"{text} Predictions of these are worse: {errors}."
    else:
        yield "partly", "Unusual rows.", f"{text} Predictions of these are not much worse: {errors}."


def _errors_beyond(found: Applied, responses: list[str]) -> tuple[bool | None, str]:
    """Return whether errors of rows beyond a limit are much larger than those of others, None if that is not known."""
    beyond, within = found.score_beyond, found.score_within
    if beyond is None or within is None or min(beyond.n_rows, within.n_rows) < _COMPARABLE_ROWS:
        return None, ""
    if isinstance(beyond, ClassificationMetrics) and isinstance(within, ClassificationMetrics):
        larger = beyond.error() > _MUCH_LARGER * max(within.error(), 1 / within.n_rows)
        return larger, f"{1 - beyond.error():.1%} of their labels are right, and {1 - within.error():.1%} of the others"
    assert isinstance(beyond, RegressionMetrics)
    assert isinstance(within, RegressionMetrics)
    ratios = beyond.rmse / np.maximum(within.rmse, np.finfo(float).tiny)
    worst = int(np.argmax(ratios))
    name = f" of {responses[worst]}" if worst < len(responses) else ""
    errors = f"the RMSE{name} is {beyond.rmse[worst]:.3g}, and that of the others {within.rmse[worst]:.3g}"
    return bool(ratios[worst] > _MUCH_LARGER), errors


def _drift(traits: Traits, found: Applied) -> Iterator[Caution]:
    """Compare the means of features with those in the model."""
    model, n = traits.model, found.n_rows
    mean = getattr(model, "x_mean_", None)
    if mean is None or n < 2 or not traits.n_rows:
        return
    deviation = np.sqrt(found.features.x_squares / (n - 1))
    if getattr(model, "scale", False) and traits.scale is not None:
        # What they were, and not what they are. A feature without a part was constant.
        deviation = np.where(traits.weights.any(axis=1), traits.scale, 0.0) if traits.weights is not None else deviation
    varies = deviation > 0
    moves = np.zeros(len(mean))
    np.divide(found.features.x_mean - mean, deviation, out=moves, where=varies)
    beyond_chance = _BEYOND_CHANCE * np.sqrt(1 / n + 1 / traits.n_rows)
    limit = max(_MOVED, beyond_chance)
    moved = np.flatnonzero(np.abs(moves) > limit)
    if not len(moved):
        yield (
            "yes",
            "Drift.",
            (
                f"No feature's mean has moved by {limit:.2g} standard deviations or more from that in "
                "the rows the model was made from."
            ),
        )
        return
    most = moved[np.argsort(-np.abs(moves[moved]), kind="stable")[:_N_NAMED]]
    names = ", ".join(f"{traits.features.names[k]} ({moves[k]:+.2g})" for k in most)
    # Where the target is known, what it does to predictions is seen.
    unseen = found.score is None and len(moved) > 0.1 * len(mean)
    yield (
        "no" if unseen else "partly",
        "Drift.",
        (
            f"{len(moved):,} of {len(mean):,} features have a mean that is more than {limit:.2g} standard "
            f"deviations from that in the rows the model was made from; most of all {names}."
        ),
    )


def _constant(traits: Traits, found: Applied) -> Iterator[Caution]:
    if found.n_rows < 2:
        yield "partly", "One row.", "The data has a single row: neither R2 nor anything about its spread can be known."
        return
    if traits.weights is None:
        return
    constant = np.flatnonzero((found.features.x_squares == 0) & traits.weights.any(axis=1))
    if len(constant):
        names = ", ".join(traits.features.names[k] for k in constant[:_N_NAMED])
        yield (
            "partly",
            "Constant features.",
            (
                f"{counted(len(constant), 'feature')} that the model uses never changed in this data, as when a sensor "
                f"hangs: {names}{' and others' if len(constant) > _N_NAMED else ''}."
            ),
        )
