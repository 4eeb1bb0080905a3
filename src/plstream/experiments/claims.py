"""What the paper claims, and whether it holds in results: by the paper's own criterion, paired t-tests.

The paper has one CIPLS, and does not say whether by Algorithm 1 or by the released code. So each claim is looked at for
every variant that was run. Nothing is claimed of methods that were not run, or of fewer than five splits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .._types import Array
from ..inspection.report import Verdict
from . import paper
from .inference import paired_t_test
from .tables import TITLES, Result, by_run, by_split, found_of, share_between

SIGNIFICANT = 0.05
FEWEST = 5
# Points that may be lost with the parts that are shared with the first score.
_MARGIN = 1.0
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
    "Without the first component CIPLS is far more accurate than the others.",
    "In the paper, on average over its tasks, CIPLS has 83.24 %, CCIPCA 63.48 %, SGDPLS 58.41 % and IPLS 50.76 %.",
)
_NOT_COPIES = Claim(
    "higher-order",
    "What CIPLS gets right without the first component is not due to copies of it.",
    "The paper concludes it from the accuracies alone. Here the other scores lose their regressions on the first: the "
    "claim holds if that costs no more than a point.",
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
    "Classes are apart along both scores of CIPLS, and only along the first of IPLS and SGDPLS.",
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


def compared(mine: Values, others: Values) -> tuple[float, float]:
    """Return the mean difference for what both have, and its probability if there were none; NaN if too few have.

    Examples
    --------
    >>> from plstream.experiments.claims import compared
    >>> compared({0: 0.5, 1: 0.75}, {0: 0.5, 2: 0.5})
    (0.0, nan)
    """
    both = [key for key in mine if key in others]
    if not both:
        return np.nan, np.nan
    first, second = [mine[key] for key in both], [others[key] for key in both]
    p = paired_t_test(first, second) if len(both) >= FEWEST else np.nan
    return float(np.mean(np.subtract(first, second))), p


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


def _is_below(difference: float, p: float) -> bool | None:
    """Return whether a difference is negative and not by chance; None if there are too few to tell."""
    return None if np.isnan(p) else p < SIGNIFICANT and difference < 0


def _unless(is_so: bool | None, so: Verdict, otherwise: Verdict) -> Verdict:  # noqa: FBT001
    """Return one of two verdicts, or that it is open."""
    return "open" if is_so is None else so if is_so else otherwise


def _higher(difference: float, p: float) -> Verdict:
    if not p < SIGNIFICANT:
        return "open"
    return "yes" if difference > 0 else "no"


def _finding(
    claim: Claim, task: str, looks: Sequence[tuple[Verdict, str]], before: str = "", after: str = ""
) -> Finding:
    """Return one finding of what was seen of each variant of CIPLS."""
    text = " ".join(filter(None, [before, *(text for _, text in looks), after]))
    return Finding(claim, task, _any_of([verdict for verdict, _ in looks]), text)


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


def _against(mine: Values, rivals: Mapping[str, Values], words: tuple[str, str]) -> tuple[list[Verdict], str]:
    """Return of each of several others whether values are higher than its, and which are which in words."""
    verdicts = {name: _higher(*compared(mine, values)) for name, values in rivals.items()}
    few = any(np.isnan(compared(mine, values)[1]) for values in rivals.values())
    parts = []
    for verdict, word in (("yes", words[0]), ("open", "not told apart from"), ("no", words[1])):
        names = [TITLES[name] for name in rivals if verdicts[name] == verdict]
        if names:
            parts.append(f"{word} {_and(names)}")
    return [*verdicts.values()], f"{_and(parts)}" + (f", with fewer than {FEWEST} splits" if few else "")


def _ahead(claim: Claim, results: Result) -> Iterator[Finding]:
    for task, _, found in found_of(results, claim.experiment):
        by_method = _percents(found)
        rivals = _some(by_method, _RIVALS)
        looks = []
        for variant in _variants(by_method) if rivals else []:
            verdicts, text = _against(by_method[variant], rivals, ("ahead of", "behind"))
            looks.append((_all_of(verdicts), _named(variant, by_method), text))
        if looks:
            yield _finding(claim, task, _grouped(looks), _have(rivals))


def _like_pls(claim: Claim, results: Result) -> Iterator[Finding]:
    for task, _, found in found_of(results, claim.experiment):
        by_method = _percents(found)
        if "pls" not in by_method:
            continue
        beside = {method: compared(values, by_method["pls"]) for method, values in by_method.items()}
        told = {method: f"{_named(method, by_method)}: {_difference(*beside[method])}." for method in by_method}
        rivals = [*_some(by_method, ("sgdpls", "ipls"))]
        inferior: list[Verdict] = [_unless(_is_below(*beside[method]), "yes", "no") for method in rivals]
        looks = []
        for variant in _variants(by_method):
            p = beside[variant][1]
            equivalent = _unless(None if np.isnan(p) else p < SIGNIFICANT, "no", "yes")
            looks.append((_all_of([equivalent, *inferior]), told[variant]))
        if looks:
            before = f"PLS has {_mean(by_method['pls']):.2f} %."
            yield _finding(claim, task, looks, before, " ".join(told[method] for method in rivals))


def _not_copies(claim: Claim, results: Result) -> Iterator[Finding]:
    for task, _, found in found_of(results, claim.experiment):
        before, after = _percents(found), _percents(found, "accuracy_residual")
        looks = []
        for variant in _variants(before):
            difference, p = compared(after[variant], before[variant])
            cells = [cell for cell in found["cells"] if cell["method"] == variant]
            correlation = np.mean([cell["largest_correlation"] for cell in cells])
            text = (
                f"{_named(variant, before)} comes to {_mean(after[variant]):.2f} %, {_difference(difference, p)}, with "
                f"correlations of up to {correlation:.3f}."
            )
            looks.append((_unless(_is_below(difference + _MARGIN, p), "no", "yes"), text))
        if looks:
            yield _finding(claim, task, looks)


def _times(claim: Claim, results: Result) -> Iterator[Finding]:
    for task, _, found in found_of(results, claim.experiment):
        methods = dict.fromkeys(cell["method"] for cell in found["cells"])
        by_method: dict[str, Values] = {
            method: {run: 1e6 * seconds for run, seconds in by_run(found, method).items()} for method in methods
        }
        # The paper's SGDPLS makes T steps with each row.
        others = _some(by_method, ("ccipca", "ipls", "sgdpls-steps"))
        if len(others) < 2:
            continue
        looks = []
        for variant in _variants(by_method):
            verdicts, text = _against(by_method[variant], others, ("slower than", "faster than"))
            # Slower than none, and faster than all but CCIPCA.
            claimed: list[Verdict] = [
                _unless(verdict == "yes", "no", "yes") if other == "ccipca" else _OPPOSITE[verdict]
                for other, verdict in zip(others, verdicts, strict=True)
            ]
            looks.append((_all_of(claimed), f"{TITLES[variant]} with {_mean(by_method[variant]):,.0f} µs", text))
        if looks:
            yield _finding(claim, task, _grouped(looks), _have(others, "takes", "{:,.0f} µs"))


_OPPOSITE: dict[Verdict, Verdict] = {"yes": "no", "no": "yes", "open": "open", "partly": "partly"}
_FIRST_BLOCKS = 5


def _stream(claim: Claim, results: Result) -> Iterator[Finding]:
    for task, _, found in found_of(results, claim.experiment):
        means, n_splits = {}, len({cell["split"] for cell in found["cells"]})
        for method in dict.fromkeys(cell["method"] for cell in found["cells"]):
            rows = [cell["accuracy"] for cell in found["cells"] if cell["method"] == method]
            means[method] = np.mean(np.array(rows, dtype=float), axis=0)[_FIRST_BLOCKS:]
        rivals = [method for method in _RIVALS if method in means and len(means[method])]
        if not rivals:
            continue
        best, names = np.max([means[method] for method in rivals], axis=0), _and([TITLES[method] for method in rivals])
        looks = []
        for variant in _variants(means):
            differences = 100 * (means[variant] - best)
            n_ahead = int(np.count_nonzero(differences > 0))
            text = f"{TITLES[variant]}: {n_ahead}, {np.nanmean(differences):+.2f} points."
            looks.append((_unless(None if n_splits < FEWEST else n_ahead == len(best), "yes", "no"), text))
        if looks:
            before = (
                f"After so many of these {len(best)} blocks the mean is above the best of {names}, and by so much on "
                "average."
            )
            yield _finding(claim, task, looks, before, f"With fewer than {FEWEST} splits." * (n_splits < FEWEST))


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
        rivals = _some(by_method, [*paper.SELECTION["LFW"]])
        if not rivals.pop(mine, None) or not rivals:
            continue
        kinds = [_unless(_is_below(*compared(by_method[mine], values)), "no", "yes") for values in rivals.values()]
        text = _against(by_method[mine], rivals, ("ahead of", "behind"))[1]
        look = (_all_of(kinds), f"{_named(mine, by_method)} is {text}.")
        yield _finding(claim, task, [look], f"On average over shares {_have(rivals)}")


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
        rivals = [method for method in ("ipls", "sgdpls") if method in shares]
        only_first = all(shares[method][1] < _APART <= shares[method][0] for method in rivals)
        looks = []
        for variant in _variants(shares):
            (scores,) = (np.array(cell["scores"]) for cell in found["cells"] if cell["method"] == variant)
            text = f"{told[variant]}; the two scores have a correlation of {_correlation(*scores.T):.3f}."
            looks.append((_unless(only_first and min(shares[variant]) >= _APART, "yes", "no"), text))
        if looks and rivals:
            before = "Of the variance of the first and of the second score so much is between classes."
            yield _finding(claim, name, looks, before, " ".join(f"{told[method]}." for method in rivals))


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


def _difference(difference: float, p: float) -> str:
    few = f"fewer than {FEWEST} splits" if np.isnan(p) else in_words(p)
    return f"{difference:+.2f} points ({few})"


def _correlation(first: Array, second: Array) -> float:
    first, second = first - first.mean(), second - second.mean()
    size = float(np.sqrt((first @ first) * (second @ second)))
    return abs(float(first @ second)) / size if size else 0.0


def _and(texts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))
