"""The claims of the paper, and whether results support them, by confidence intervals of paired differences.

A difference that is not significant does not show equality: methods count as equally good if the interval is within
one point. The paper has one CIPLS and does not state whether it is Algorithm 1 or the released code. Each claim is
therefore judged by these two, never by the normalized variant of this package, whose figures are only reported. Rivals
are those of the released code if they were run. Intervals are corrected for training rows shared by splits. No claim
holds for methods that were not run, or with fewer than five splits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..report.html import Verdict
from .inference import FEWEST, Difference, Values, paired_difference
from .methods import PAPER_VARIANTS, TITLES
from .results import TaskResults
from .tables import format_p

# Differences up to this many points are ignored.
_MARGIN = 1.0
_RIVALS = ("ccipca", "sgdpls", "ipls")
# Whether a claim holds, with the supporting numbers.
Assessment = tuple[Verdict, str]


def rivals_among(values: Mapping[str, Values], names: Sequence[str] = _RIVALS) -> list[str]:
    """Return the methods to compare CIPLS with: those of the authors' code if they were run."""
    return [f"{name}-released" if f"{name}-released" in values else name for name in names]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, the figures it reports, and a function that assesses the claim on a task.

    The assessment is None if CIPLS, or everything the claim compares it with, was not run.
    """

    text: str
    paper: str
    check: Callable[[TaskResults], Assessment | None]


class Finding(NamedTuple):
    """Whether a claim holds for a task, with the supporting numbers."""

    claim: Claim
    task: str
    verdict: Verdict
    text: str


def mean(values: Values) -> float:
    """Return the mean of values by split."""
    return float(np.mean([*values.values()]))


def with_mean(
    method: str, values: Mapping[str, Values], center: Callable[[Values], float] = mean, form: str = "{:.2f} %"
) -> str:
    """Return the title of a method with its mean, or another measure of location."""
    return f"{TITLES[method]} with {form.format(center(values[method]))}"


def all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """Combine the verdicts of several parts of a claim."""
    kinds = set(verdicts)
    return verdicts[0] if len(kinds) == 1 else "no" if "no" in kinds else "open"


def above(difference: Difference, margin: float = 0.0) -> Verdict:
    """Judge whether a difference is above a margin: open if the interval contains the margin."""
    return "yes" if difference.low > margin else "no" if difference.high < margin else "open"


def no_less(difference: Difference) -> Verdict:
    """Judge whether at most one point is lost."""
    return "yes" if difference.low >= -_MARGIN else "no" if difference.high < -_MARGIN else "open"


def alike(difference: Difference) -> Verdict:
    """Judge whether the difference is within one point; a non-significant difference does not show this."""
    if difference.low >= -_MARGIN and difference.high <= _MARGIN:
        return "yes"
    return "no" if difference.high < 0 or difference.low > 0 else "open"


def inferior(difference: Difference) -> Verdict:
    """Judge whether a difference is negative; it is not if less than one point is lost."""
    return "yes" if difference.high < 0 else "no" if difference.low >= -_MARGIN else "open"


def assess(
    looks: Sequence[Assessment], before: str = "", after: str = "", missing: Sequence[str] = ()
) -> Assessment | None:
    """Combine the assessments of the variants of CIPLS, only one of which is in the paper.

    No claim holds for methods that were not run; None if no variant was run.
    """
    if not looks:
        return None
    not_run = f"Not run: {join_names([TITLES[method] for method in missing])}." if missing else ""
    text = " ".join(filter(None, [before, *(text for _, text in looks), after, not_run]))
    kinds = {verdict for verdict, _ in looks}
    verdict: Verdict = looks[0][0] if len(kinds) == 1 else "partly" if "yes" in kinds else "open"
    return "open" if missing and verdict in {"yes", "partly"} else verdict, text


def compare_with_rivals(
    values: Mapping[str, Values],
    rivals: Sequence[str],
    judge: Callable[[Difference, str], Verdict] = lambda difference, _: above(difference),
    *,
    difference: Callable[[Values, Values], Difference] = paired_difference,
    center: Callable[[Values], float] = mean,
    variants: Sequence[str] = PAPER_VARIANTS,
    own: str = "cipls",
    words: tuple[str, str] = ("ahead of", "behind"),
    verb: str = "has",
    form: str = "{:.2f} %",
    before: str = "",
    after: str = "",
) -> Assessment | None:
    """Assess a claim about the differences of CIPLS from its rivals; None if no variant or no rival was run.

    Values are by method and split (or run). ``judge`` returns the verdict on the difference from a named rival.
    ``words`` describe higher and lower values; ``verb`` and ``form`` format means, or the results of ``center``. The
    values of ``own`` are reported, but do not count.
    """
    run = {method: values[method] for method in rivals if method in values}
    # One sentence for all variants with the same result.
    groups: dict[tuple[Verdict, str], list[str]] = {}
    for variant in variants if run else ():
        if variant in values:
            differences = {name: difference(values[variant], others) for name, others in run.items()}
            verdict = all_of([judge(each, name) for name, each in differences.items()])
            text = _sides(differences, words)
            groups.setdefault((verdict, text), []).append(with_mean(variant, values, center, form))
    looks = [
        (verdict, f"{join_names(who)} {'are' if len(who) > 1 else 'is'} {what}.")
        for (verdict, what), who in groups.items()
    ]
    if run:
        means = [form.format(center(others)) for others in run.values()]
        names = [TITLES[method] for method in run]
        names[0] += f" {verb}"
        before += f"{join_names([f'{name} {value}' for name, value in zip(names, means, strict=True)])}."
    if own in values:
        after = f"{after} {with_mean(own, values, center, form)} does not count: the paper has no such variant."
    return assess(looks, before, after.strip(), [method for method in rivals if method not in values])


def _sides(differences: Mapping[str, Difference], words: tuple[str, str]) -> str:
    """Return the methods with higher and with lower values."""
    parts = []
    for side, word in (("yes", words[0]), ("open", "not significantly different from"), ("no", words[1])):
        names = [TITLES[name] for name, difference in differences.items() if above(difference) == side]
        if names:
            parts.append(f"{word} {join_names(names)}")
    few = any(np.isnan(difference.p) for difference in differences.values())
    return join_names(parts) + (f", with fewer than {FEWEST} splits" if few else "")


def format_difference(difference: Difference) -> str:
    """Format a difference with its interval and p-value, if there are enough splits."""
    if np.isnan(difference.mean):
        return "no split in common"
    if np.isnan(difference.p):
        return f"{difference.mean:+.2f} points (fewer than {FEWEST} splits)"
    low, high = difference.low, difference.high
    return f"{difference.mean:+.2f} points ({low:+.2f} to {high:+.2f}, {p_sentence(difference.p)})"


def p_sentence(p: float) -> str:
    """Format a p-value."""
    text = format_p(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def join_names(texts: Sequence[str]) -> str:
    """Join strings with commas, and with "and" before the last."""
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))
