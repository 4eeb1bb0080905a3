"""What the paper claims, and whether it holds in results: by confidence intervals of paired differences.

That no difference was found is not yet that there is none: methods are as good as each other if the interval is within
a point. The paper has one CIPLS, and does not say whether by Algorithm 1 or by the released code. So each claim is
looked at for every variant that was run. No claim holds of methods that were not run, or of fewer than five splits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._core.types import Array
from ..report.html import Verdict
from . import paper
from .inference import FEWEST, interval, paired_t_test
from .tables import TITLES, Result, by_run, by_split, found_of, share_between

# Points that count as no difference, and as a great one.
_MARGIN = 1.0
_FAR = 5.0
_RIVALS = ("ccipca", "sgdpls", "ipls")
WORDS: dict[Verdict, str] = {
    "yes": "Holds.",
    "partly": "Holds in part.",
    "no": "Does not hold.",
    "open": "Not decided.",
}
Values = Mapping[int, float]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes
    ----------
    experiment : str
        That it is about.
    text : str
        In words.
    paper : str
        What the paper reports.
    """

    experiment: str
    text: str
    paper: str


@dataclass(frozen=True)
class Finding:
    """Whether a claim holds for a task, and the numbers that show it."""

    claim: Claim
    task: str
    verdict: Verdict
    text: str


_AHEAD = Claim(
    "accuracy",
    "CIPLS is more accurate than the other incremental methods.",
    "In the paper CIPLS has 91.78 % on LFW, SGDPLS 90.60 %, IPLS 90.30 % and CCIPCA 89.87 %; on YTF they have "
    "84.10 %, 83.22 %, 82.22 % and 81.48 %.",
)
_LIKE_PLS = Claim(
    "accuracy",
    "CIPLS is statistically equivalent to PLS, and IPLS and SGDPLS are inferior to it.",
    "In the paper PLS has 92.47 % on LFW and CIPLS 91.78 %; on YTF 85.96 % and 84.10 %.",
)
_WITHOUT_FIRST = Claim(
    "higher-order",
    "Without the first component CIPLS is far more accurate than the others, by five points and more.",
    "In the paper, on average over its tasks, CIPLS has 83.24 %, CCIPCA 63.48 %, SGDPLS 58.41 % and IPLS 50.76 %.",
)
_NOT_COPIES = Claim(
    "higher-order",
    "What CIPLS gets right without the first component is not due to copies of it.",
    "The paper concludes it from the accuracies alone. Here the other scores lose their regressions on the first ones: "
    "the claim holds if that costs no more than a point.",
)
_TIME = Claim("time", "CIPLS learns a row as fast as CCIPCA, and faster than IPLS and SGDPLS.", paper.TIME)
_STREAM = Claim("streaming", "On a stream CIPLS is ahead of the others from the sixth block on.", paper.STREAMING)
_SELECTION = Claim(
    "selection",
    "VIP of CIPLS selects features as well as methods made for it.",
    "In the paper CIPLS + VIP is, on LFW and on average over shares, 0.05 to 0.26 points below the others.",
)
_PROJECTION = Claim(
    "projection",
    "Classes are apart along both scores of CIPLS, and only along the first of IPLS.",
    paper.PROJECTION,
)


def findings_of(results: Result) -> list[Finding]:
    """Return what results say about the claims of the paper, claim by claim.

    Parameters
    ----------
    results : dict
        The content of results.json.

    Returns
    -------
    findings : list of Finding
        Of experiments that were run with CIPLS and with what the claim compares it to.
    """
    return [finding for claim, look in _CLAIMS for finding in look(claim, results)]


class Difference(NamedTuple):
    """A mean difference with its 95 % confidence interval, and its probability if there were none."""

    mean: float
    low: float
    high: float
    p: float


def compared(mine: Values, others: Values) -> Difference:
    """Return the difference for what both have; all but its mean is NaN if too few have.

    Examples
    --------
    >>> from plstream.experiments.claims import compared
    >>> compared({0: 0.5, 1: 0.75}, {0: 0.5, 2: 0.5})
    Difference(mean=0.0, low=nan, high=nan, p=nan)
    """
    both = [key for key in mine if key in others]
    first, second = [mine[key] for key in both], [others[key] for key in both]
    mean, half_width = interval([float(a - b) for a, b in zip(first, second, strict=True)])
    if len(both) < FEWEST:
        return Difference(mean, np.nan, np.nan, np.nan)
    return Difference(mean, mean - half_width, mean + half_width, paired_t_test(first, second))


def in_words(p: float) -> str:
    """Return a probability as it is told.

    Examples
    --------
    >>> from plstream.experiments.claims import in_words
    >>> in_words(0.0001), in_words(0.25)
    ('p < 0.001', 'p = 0.250')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict of several that are claimed together."""
    kinds = set(verdicts)
    return verdicts[0] if len(kinds) == 1 else "no" if "no" in kinds else "open"


def _any_of(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict of variants of which one is meant."""
    kinds = set(verdicts)
    return verdicts[0] if len(kinds) == 1 else "partly" if "yes" in kinds else "open"


def _above(difference: Difference, margin: float = 0.0) -> Verdict:
    """Return whether a difference is above a margin: open if the interval has it in it."""
    return "yes" if difference.low > margin else "no" if difference.high < margin else "open"


def _no_less(difference: Difference) -> Verdict:
    """Return whether no more than the margin is lost."""
    return "yes" if difference.low >= -_MARGIN else "no" if difference.high < -_MARGIN else "open"


def _alike(difference: Difference) -> Verdict:
    """Return whether the difference is within the margin; that none was found does not yet show it."""
    if difference.low >= -_MARGIN and difference.high <= _MARGIN:
        return "yes"
    return "no" if difference.high < 0 or difference.low > 0 else "open"


def _inferior(difference: Difference) -> Verdict:
    return "yes" if difference.high < 0 else "no" if difference.low >= -_MARGIN else "open"


def _finding(
    claim: Claim,
    task: str,
    looks: Sequence[tuple[Verdict, str]],
    before: str = "",
    after: str = "",
    missing: Sequence[str] = (),
) -> Finding:
    """Return one finding of what was seen of each variant of CIPLS; it cannot hold for methods that were not run."""
    not_run = f"Not run: {_and([TITLES[method] for method in missing])}." if missing else ""
    text = " ".join(filter(None, [before, *(text for _, text in looks), after, not_run]))
    verdict = _any_of([verdict for verdict, _ in looks])
    return Finding(claim, task, "open" if missing and verdict in {"yes", "partly"} else verdict, text)


def _grouped(looks: Sequence[tuple[Verdict, str, str]]) -> list[tuple[Verdict, str]]:
    """Return sentences of verdicts, who, and what: one for all of whom the same can be said."""
    groups: dict[tuple[Verdict, str], list[str]] = {}
    for verdict, who, what in looks:
        groups.setdefault((verdict, what), []).append(who)
    return [
        (verdict, f"{_and(who)} {'are' if len(who) > 1 else 'is'} {what}.") for (verdict, what), who in groups.items()
    ]


def _variants(methods: Iterable[str]) -> list[str]:
    return [variant for variant in paper.CIPLS_VARIANTS if variant in methods]


def _against(
    mine: Values, rivals: Mapping[str, Values], words: tuple[str, str], margin: float = 0.0
) -> tuple[list[Verdict], str]:
    """Return of each of several others whether values are higher than its, and which are which in words."""
    differences = {name: compared(mine, values) for name, values in rivals.items()}
    verdicts = {name: _above(difference, margin) for name, difference in differences.items()}
    sides = {name: _above(difference) for name, difference in differences.items()}
    parts = []
    for side, word in (("yes", words[0]), ("open", "not told apart from"), ("no", words[1])):
        names = [TITLES[name] for name in rivals if sides[name] == side]
        if names:
            parts.append(f"{word} {_and(names)}")
    few = any(np.isnan(difference.p) for difference in differences.values())
    return [*verdicts.values()], f"{_and(parts)}" + (f", with fewer than {FEWEST} splits" if few else "")


def _missing(by_method: Mapping[str, Values], expected: Sequence[str]) -> list[str]:
    return [method for method in expected if method not in by_method]


def _ahead(claim: Claim, results: Result) -> Iterator[Finding]:
    margin = _FAR if claim is _WITHOUT_FIRST else 0.0
    for task, about, found in found_of(results, claim.experiment):
        by_method = _percents(found)
        # With two classes SGDPLS has a single component, and nothing is left without it.
        expected = [m for m in _RIVALS if not (margin and m == "sgdpls" and about["n_classes"] == 2)]
        rivals = _some(by_method, expected)
        looks = []
        for variant in _variants(by_method) if rivals else []:
            verdicts, text = _against(by_method[variant], rivals, ("ahead of", "behind"), margin)
            looks.append((_all_of(verdicts), _named(variant, by_method), text))
        if looks:
            yield _finding(claim, task, _grouped(looks), _have(rivals), missing=_missing(by_method, expected))


def _like_pls(claim: Claim, results: Result) -> Iterator[Finding]:
    for task, _, found in found_of(results, claim.experiment):
        by_method = _percents(found)
        if "pls" not in by_method:
            continue
        beside = {method: compared(values, by_method["pls"]) for method, values in by_method.items()}
        told = {method: f"{_named(method, by_method)}: {_difference(beside[method])}." for method in by_method}
        rivals = [*_some(by_method, ("sgdpls", "ipls"))]
        inferior = [_inferior(beside[method]) for method in rivals]
        looks = [(_all_of([_alike(beside[name]), *inferior]), told[name]) for name in _variants(by_method)]
        if looks:
            before = f"PLS has {_mean(by_method['pls']):.2f} %."
            after = " ".join(told[method] for method in rivals)
            yield _finding(claim, task, looks, before, after, _missing(by_method, ("sgdpls", "ipls")))


def _not_copies(claim: Claim, results: Result) -> Iterator[Finding]:
    for task, about, found in found_of(results, claim.experiment):
        before, after = _percents(found), _percents(found, "accuracy_residual")
        chance = 100 / about["n_classes"]
        looks = []
        for variant in _variants(before):
            difference = compared(after[variant], before[variant])
            is_right = _above(compared(before[variant], dict.fromkeys(before[variant], chance))) == "yes"
            cells = [cell for cell in found["cells"] if cell["method"] == variant]
            correlation = np.mean([cell["largest_correlation"] for cell in cells])
            text = (
                f"{_named(variant, before)} comes to {_mean(after[variant]):.2f} %, {_difference(difference)}, with "
                f"correlations of up to {correlation:.3f}{'' if is_right else '; the first is no better than chance'}."
            )
            looks.append((_no_less(difference) if is_right else "open", text))
        if looks:
            yield _finding(claim, task, looks)


def _times(claim: Claim, results: Result) -> Iterator[Finding]:
    for task, about, found in found_of(results, claim.experiment):
        # With more classes some methods have a model for each, and others one for all.
        if about["n_classes"] != 2:
            continue
        methods = dict.fromkeys(cell["method"] for cell in found["cells"])
        by_method: dict[str, Values] = {
            method: {run: 1e6 * seconds for run, seconds in by_run(found, method).items()} for method in methods
        }
        # The paper's SGDPLS makes T steps with each row.
        expected = ("ccipca", "ipls", "sgdpls-steps")
        others = _some(by_method, expected)
        looks = []
        for variant in _variants(by_method) if others else []:
            _, text = _against(by_method[variant], others, ("slower than", "faster than"))
            claimed = [_is_fast_beside(by_method[variant], values, other) for other, values in others.items()]
            looks.append((_all_of(claimed), f"{TITLES[variant]} with {_mean(by_method[variant]):,.0f} µs", text))
        if looks:
            before, after = _have(others, "takes", "{:,.0f} µs"), "SGDPLS has one component, and the others four."
            after = after if "sgdpls-steps" in others else ""
            yield _finding(claim, task, _grouped(looks), before, after, _missing(by_method, expected))


def _is_fast_beside(mine: Values, others: Values, other: str) -> Verdict:
    """Return whether times are no longer than CCIPCA's, but for a tenth, or shorter than those of another."""
    difference = compared(mine, others)
    if other == "ccipca":
        return "yes" if difference.high <= 0.1 * _mean(others) else "no" if difference.low > 0 else "open"
    is_longer = _above(difference)
    # It has fewer components: that it is faster says nothing.
    return "yes" if is_longer == "no" else "open" if other == "sgdpls-steps" or is_longer == "open" else "no"


_FIRST_BLOCKS = 5


def _stream(claim: Claim, results: Result) -> Iterator[Finding]:
    for task, _, found in found_of(results, claim.experiment):
        by_method: dict[str, Values] = {}
        for cell in found["cells"]:
            later = [value for value in cell["accuracy"][_FIRST_BLOCKS:] if value is not None]
            if later:
                values = dict(by_method.get(cell["method"], {}))
                by_method[cell["method"]] = {**values, cell["split"]: 100 * float(np.mean(later))}
        rivals = _some(by_method, _RIVALS)
        looks = []
        for variant in _variants(by_method) if rivals else []:
            verdicts, text = _against(by_method[variant], rivals, ("ahead of", "behind"))
            looks.append((_all_of(verdicts), _named(variant, by_method), text))
        if looks:
            before = f"On average over blocks from the sixth on, {_have(rivals)}"
            yield _finding(claim, task, _grouped(looks), before, missing=_missing(by_method, _RIVALS))


def _selection(claim: Claim, results: Result) -> Iterator[Finding]:
    mine = "cipls-vip"
    for task, _, found in found_of(results, claim.experiment):
        by_method: dict[str, Values] = {}
        for method in dict.fromkeys(cell["method"] for cell in found["cells"]):
            cells = [cell for cell in found["cells"] if cell["method"] == method]
            by_method[method] = {
                split: 100 * float(np.mean([cell["accuracy"] for cell in cells if cell["split"] == split]))
                for split in dict.fromkeys(cell["split"] for cell in cells)
            }
        expected = [*paper.SELECTION["LFW"]]
        rivals = _some(by_method, expected)
        if not rivals.pop(mine, None) or not rivals:
            continue
        kinds = [_no_less(compared(by_method[mine], values)) for values in rivals.values()]
        text = _against(by_method[mine], rivals, ("ahead of", "behind"))[1]
        look = (_all_of(kinds), f"{_named(mine, by_method)} is {text}.")
        before = f"On average over shares {_have(rivals)}"
        yield _finding(claim, task, [look], before, missing=_missing(by_method, expected))


# A share of the variance that is between classes, below which colours can hardly be told apart.
_APART = 0.1


def _projection(claim: Claim, results: Result) -> Iterator[Finding]:
    for name, task, found in found_of(results, claim.experiment):
        # With more classes, axes of some methods are models of single classes.
        if task["n_classes"] != 2:
            continue
        shares, told = {}, {}
        for cell in found["cells"]:
            method, scores, labels = cell["method"], np.array(cell["scores"]), np.array(cell["labels"])
            first, second = shares[method] = [share_between(column, labels) for column in scores.T]
            told[method] = f"{TITLES[method]}: {100 * first:.0f} % and {100 * second:.0f} %"
        # SGDPLS has one component for two classes: of a second one nothing can be said.
        if "ipls" not in shares:
            continue
        only_first = shares["ipls"][1] < _APART <= shares["ipls"][0]
        looks: list[tuple[Verdict, str]] = []
        for variant in _variants(shares):
            (scores,) = (np.array(cell["scores"]) for cell in found["cells"] if cell["method"] == variant)
            text = f"{told[variant]}; the two scores have a correlation of {_correlation(*scores.T):.3f}."
            looks.append(("yes" if only_first and min(shares[variant]) >= _APART else "no", text))
        if looks:
            before = "Of the variance of the first and of the second score, in one split, so much is between classes."
            yield _finding(claim, name, looks, before, f"{told['ipls']}. SGDPLS has one component for two classes.")


_CLAIMS: tuple[tuple[Claim, Callable[[Claim, Result], Iterator[Finding]]], ...] = (
    (_AHEAD, _ahead),
    (_LIKE_PLS, _like_pls),
    (_WITHOUT_FIRST, _ahead),
    (_NOT_COPIES, _not_copies),
    (_TIME, _times),
    (_STREAM, _stream),
    (_SELECTION, _selection),
    (_PROJECTION, _projection),
)


def _percents(found: Result, kind: str = "accuracy") -> dict[str, Values]:
    methods = dict.fromkeys(cell["method"] for cell in found["cells"])
    return {m: {split: 100 * share for split, share in by_split(found, m, kind).items()} for m in methods}


def _some(by_method: dict[str, Values], methods: Sequence[str]) -> dict[str, Values]:
    return {method: by_method[method] for method in methods if method in by_method}


def _mean(values: Values) -> float:
    return float(np.mean([*values.values()]))


def _named(method: str, by_method: Mapping[str, Values]) -> str:
    return f"{TITLES[method]} with {_mean(by_method[method]):.2f} %"


def _have(by_method: Mapping[str, Values], verb: str = "has", form: str = "{:.2f} %") -> str:
    (first, value), *others = [(TITLES[method], form.format(_mean(values))) for method, values in by_method.items()]
    return _and([f"{first} {verb} {value}", *(f"{name} {value}" for name, value in others)]) + "."


def _difference(difference: Difference) -> str:
    if np.isnan(difference.mean):
        return "no split in common"
    if np.isnan(difference.p):
        return f"{difference.mean:+.2f} points (fewer than {FEWEST} splits)"
    low, high = difference.low, difference.high
    return f"{difference.mean:+.2f} points ({low:+.2f} to {high:+.2f}, {in_words(difference.p)})"


def _correlation(first: Array, second: Array) -> float:
    first, second = first - first.mean(), second - second.mean()
    size = float(np.sqrt((first @ first) * (second @ second)))
    return abs(float(first @ second)) / size if size else 0.0


def _and(texts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))
