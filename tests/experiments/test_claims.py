"""Claims of the paper: verdicts follow from the numbers alone."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from plstream.experiments.inference import paired_difference
from plstream.experiments.outputs import findings_of

NOISE = np.random.default_rng(0).normal(scale=0.002, size=(8, 10))


def results_with(experiment, cells, n_classes=2):
    task = {"title": "Made up", "paper": None, "n_classes": n_classes, "n_splits": 10}
    task["experiments"] = {experiment: {"cells": cells}}
    return {"tasks": {"one": task}}


def accuracies(means, n_splits=10, **others):
    return [
        {"method": method, "split": split, "accuracy": mean + NOISE[i, split], **others}
        for i, (method, mean) in enumerate(means.items())
        for split in range(n_splits)
    ]


def verdicts(results):
    return [finding.verdict for finding in findings_of(results)]


RIVALS = {"ccipca": 0.7, "sgdpls": 0.7, "ipls": 0.7}


@pytest.mark.parametrize(
    ("cipls", "verdict"),
    [
        ({"cipls-paper": 0.8}, "yes"),
        ({"cipls-released": 0.6}, "no"),
        ({"cipls-paper": 0.7}, "open"),
        ({"cipls-paper": 0.8, "cipls-released": 0.8, "cipls": 0.8}, "yes"),
        # What is our own decides nothing.
        ({"cipls-paper": 0.8, "cipls": 0.6}, "yes"),
        ({"cipls-paper": 0.6, "cipls-released": 0.6, "cipls": 0.9}, "no"),
        ({"cipls-paper": 0.6, "cipls-released": 0.8}, "partly"),
        ({"cipls-paper": 0.6, "cipls-released": 0.7}, "open"),
    ],
)
def test_ahead_of_the_others(cipls, verdict):
    (finding,) = findings_of(results_with("accuracy", accuracies(RIVALS | cipls)))
    assert finding.verdict == verdict
    for method in RIVALS | cipls:
        values = [cell["accuracy"] for cell in accuracies(RIVALS | cipls) if cell["method"] == method]
        assert f"{100 * np.mean(values):.2f} %" in finding.text


def test_one_that_is_ahead_of_cipls_is_enough():
    (finding,) = findings_of(results_with("accuracy", accuracies(RIVALS | {"cipls-paper": 0.8, "ipls": 0.9})))
    assert finding.verdict == "no"
    assert "is ahead of CCIPCA and SGDPLS and behind IPLS." in finding.text


def test_our_own_variant_alone_is_no_cipls_of_the_paper():
    assert findings_of(results_with("accuracy", accuracies(RIVALS | {"cipls": 0.9, "pls": 0.9}))) == []
    (finding,) = findings_of(results_with("accuracy", accuracies(RIVALS | {"cipls-paper": 0.6, "cipls": 0.9})))
    assert (finding.verdict, "CIPLS (normalized) with 90." in finding.text) == ("no", True)
    assert "does not count: the paper has no such variant." in finding.text


def test_rivals_are_those_of_the_released_code_if_they_were_run():
    means = {"ccipca": 0.7, "sgdpls": 0.7, "ipls": 0.9, "ipls-released": 0.6, "cipls-paper": 0.8}
    (finding,) = findings_of(results_with("accuracy", accuracies(means)))
    assert finding.verdict == "yes"
    assert "IPLS (released code) 60." in finding.text


def test_a_difference_may_be_due_to_training_rows_that_splits_share():
    # A plain t-test tells them apart, and the corrected one does not.
    gaps = NOISE[7] - NOISE[7].mean()
    cells = accuracies(dict.fromkeys(["cipls-paper", *RIVALS], 0.7))
    for cell in cells:
        ahead = 0.9 * 2.262 * gaps.std(ddof=1) * (1 / 10 + 1 / 9) ** 0.5
        cell["accuracy"] = 0.7 + (ahead + gaps[cell["split"]] if cell["method"] == "cipls-paper" else 0)
    (finding,) = findings_of(results_with("accuracy", cells))
    assert finding.verdict == "open"
    values = [cell["accuracy"] for cell in cells if cell["method"] == "cipls-paper"]
    assert ttest_rel(values, [0.7] * 10).pvalue < 0.05


def test_few_splits_decide_nothing():
    cells = accuracies({"cipls-paper": 0.9, "pls": 0.9, **RIVALS}, n_splits=4)
    assert verdicts(results_with("accuracy", cells)) == ["open", "open"]
    assert all("fewer than 5 splits" in finding.text for finding in findings_of(results_with("accuracy", cells)))


def test_claims_about_methods_not_run_are_omitted():
    assert findings_of(results_with("accuracy", accuracies({"cipls-paper": 0.9}))) == []
    assert findings_of(results_with("accuracy", accuracies(RIVALS | {"pls": 0.9}))) == []
    assert findings_of(results_with("accuracy", [])) == []
    assert findings_of({"tasks": {}}) == []


def test_comparisons_are_paired_t_tests():
    first, second = dict(enumerate(NOISE[0])), dict(enumerate(NOISE[1] + 0.003))
    difference, low, high, p = paired_difference(first, second)
    assert difference == pytest.approx(np.mean(NOISE[0] - NOISE[1]) - 0.003)
    assert p == pytest.approx(ttest_rel(NOISE[0], NOISE[1] + 0.003).pvalue)
    interval = ttest_rel(NOISE[0], NOISE[1] + 0.003).confidence_interval()
    assert (low, high) == pytest.approx((interval.low, interval.high))
    assert np.isnan(paired_difference(first, {})).all()


@pytest.mark.parametrize(
    ("means", "verdict"),
    [
        ({"cipls-paper": 0.8, "pls": 0.8, "sgdpls": 0.7, "ipls": 0.7}, "yes"),
        ({"cipls-paper": 0.7, "pls": 0.8, "sgdpls": 0.7, "ipls": 0.7}, "no"),
        ({"cipls-paper": 0.8, "pls": 0.8, "sgdpls": 0.7, "ipls": 0.8}, "no"),
        ({"cipls-paper": 0.8, "pls": 0.8, "sgdpls": 0.7}, "open"),
    ],
)
def test_like_pls(means, verdict):
    assert verdicts(results_with("accuracy", accuracies(means)))[1] == verdict


@pytest.mark.parametrize(("residual", "verdict"), [(0.5, "no"), (0.8, "yes")])
def test_copies_of_the_first_component(residual, verdict):
    cells = accuracies({"cipls-paper": 0.8, "ipls": 0.5}, largest_correlation=0.98765)
    for cell, noise in zip(cells, np.tile(NOISE[7], 2), strict=True):
        cell["accuracy_residual"] = residual + noise
    ahead, copies = findings_of(results_with("higher-order", cells))
    # Nothing holds of a method that was not run.
    assert (ahead.verdict, copies.verdict) == ("open", verdict)
    assert "Not run: CCIPCA." in ahead.text
    assert "up to 0.988" in copies.text


def test_chance_results_are_neither_copies_nor_originals():
    cells = accuracies({"cipls-paper": 0.5, "ipls": 0.5, "ccipca": 0.5}, largest_correlation=0.1)
    for cell in cells:
        cell["accuracy_residual"] = 0.5
    assert verdicts(results_with("higher-order", cells)) == ["no", "open"]


def test_a_nonsignificant_difference_is_not_equality():
    noise = 25 * NOISE
    cells = accuracies({"cipls-paper": 0.79, "pls": 0.8, "sgdpls": 0.5, "ipls": 0.5})
    for cell in cells:
        if cell["method"] == "cipls-paper":
            cell["accuracy"] += noise[6, cell["split"]] - noise[6].mean()
    (_, like) = findings_of(results_with("accuracy", cells))
    assert like.verdict == "open"


def test_far_ahead_is_more_than_ahead():
    cells = accuracies({"cipls-paper": 0.72, "ipls": 0.7, "ccipca": 0.7}, largest_correlation=0.1)
    for cell in cells:
        cell["accuracy_residual"] = cell["accuracy"]
    assert verdicts(results_with("higher-order", cells)) == ["no", "yes"]


@pytest.mark.parametrize(
    ("cipls", "ccipca", "verdict"), [(1e-4, 1e-4, "yes"), (1e-4, 1e-5, "no"), (9e-4, 9e-4, "open"), (3e-3, 3e-3, "no")]
)
def test_times(cipls, ccipca, verdict):
    times = {"cipls-paper": cipls, "ccipca": ccipca, "ipls": 9e-4, "sgdpls-steps": 2e-3}
    cells = [
        {"method": method, "run": run, "seconds": mean * (1 + NOISE[i, run])}
        for i, (method, mean) in enumerate(times.items())
        for run in range(10)
    ]
    (finding,) = findings_of(results_with("time", cells))
    assert finding.verdict == verdict


def test_one_outlier_does_not_decide_about_times():
    times = {"cipls-paper": 1e-4, "ccipca": 1e-4, "ipls": 9e-4, "sgdpls-steps": 2e-3}
    cells = [
        {"method": method, "run": run, "seconds": mean * (1 + NOISE[i, run % 10])}
        for i, (method, mean) in enumerate(times.items())
        for run in range(30)
    ]
    cells[3]["seconds"] = 0.0218
    (finding,) = findings_of(results_with("time", cells))
    assert finding.verdict == "yes"
    assert "CIPLS (Algorithm 1) with 100 µs" in finding.text


@pytest.mark.parametrize(("last", "verdict"), [(0.9, "yes"), (0.75, "no")])
def test_streams(last, verdict):
    lines = {"cipls-paper": [0.1] * 5 + [last] * 15} | dict.fromkeys(RIVALS, [0.95] * 5 + [0.8] * 15)
    cells = [{"method": m, "split": s, "accuracy": line} for m, line in lines.items() for s in range(5)]
    (finding,) = findings_of(results_with("streaming", cells))
    assert finding.verdict == verdict
    assert verdicts(results_with("streaming", [cell for cell in cells if cell["split"] == 0])) == ["open"]
    # Only splits that both have are compared.
    few = [cell for cell in cells if cell["method"] != "cipls-paper" or cell["split"] == 0]
    assert verdicts(results_with("streaming", few)) == ["open"]
    for cell in cells:
        cell["accuracy"] = cell["accuracy"][:5]
    assert verdicts(results_with("streaming", cells)) == []


@pytest.mark.parametrize(("ilfs", "verdict"), [(0.6, "yes"), (0.7, "yes"), (0.8, "no")])
def test_selection(ilfs, verdict):
    means = {"cipls-paper-vip": 0.7, "pls-vip": 0.7, "ilfs-a": ilfs, "inffs": 0.7, "inffs-u": 0.7, "inffs-s": 0.7}
    # Neither our own VIP nor all features count.
    means |= {"cipls-vip": 0.5, "none": 0.99}
    cells = [cell | {"share": share} for cell in accuracies(means) for share in (0.1, 0.5)]
    assert verdicts(results_with("selection", cells)) == [verdict]
    (finding,) = findings_of(results_with("selection", [*cells, *_random_ranking(0.65)]))
    assert "A random ranking has 65.00 %." in finding.text


def _random_ranking(accuracy):
    return [{"method": "random", "split": split, "share": 0.1, "accuracy": accuracy} for split in range(10)]


def test_projections():
    random = np.random.default_rng(0)
    labels = np.repeat([0, 1], 50)
    first, noise = labels * 5.0 + random.normal(size=100), random.normal(size=100)
    scores = {
        "ipls": (first, noise),
        "sgdpls": (first, 0 * noise),
        "cipls-paper": (first, first),
        "cipls": (first, noise),
    }
    cells = [
        {"method": m, "split": 0, "scores": np.transpose(pair).tolist(), "labels": labels.tolist()}
        for m, pair in scores.items()
    ]
    (finding,) = findings_of(results_with("projection", cells))
    assert finding.verdict == "yes"
    assert "CIPLS (Algorithm 1): 8" in finding.text
    assert "a correlation of 1.000." in finding.text
    assert findings_of(results_with("projection", cells, n_classes=3)) == []
