"""Statistics against SciPy, and against numbers worked out by hand."""

import numpy as np
import pytest
from scipy import stats

from plstream.experiments.inference import (
    column_means,
    exponent,
    holm,
    interval,
    paired_difference,
    robust_difference,
)


def test_interval_by_hand():
    # Ten values of mean 5.5 and deviation sqrt(82.5/9); t with 9 degrees of freedom is 2.262.
    mean, half_width = interval(list(range(1, 11)))
    assert mean == 5.5
    assert half_width == pytest.approx(2.262 * (82.5 / 9) ** 0.5 / 10**0.5, rel=2e-4)


def by_split(values):
    return {split: float(value) for split, value in enumerate(values)}


@pytest.mark.parametrize("n", [5, 10, 30])
def test_against_scipy(n):
    first, second = np.random.default_rng(n).normal(size=(2, n))
    mean, half_width = interval(first)
    low, high = stats.t.interval(0.95, n - 1, loc=first.mean(), scale=stats.sem(first))
    assert (mean - half_width, mean + half_width) == pytest.approx((low, high))
    found, test = paired_difference(by_split(first), by_split(second)), stats.ttest_rel(first, second)
    assert found.p == pytest.approx(test.pvalue)
    assert (found.low, found.high) == pytest.approx((test.confidence_interval().low, test.confidence_interval().high))


def test_few_values_and_equal_ones():
    assert np.isnan(interval([3.0])[1])
    values = by_split(range(6))
    assert paired_difference(values, values).p == 1.0
    assert paired_difference(values, by_split(range(1, 7))).p == 0.0
    # Without a test if there are few splits in common.
    assert paired_difference({0: 0.5, 1: 0.75}, {0: 0.5, 2: 0.5})[:2] == (0.0, pytest.approx(np.nan, nan_ok=True))


def test_column_means():
    cells = [{"accuracy": [0.5, None, None]}, {"accuracy": [0.75, 0.25, None]}]
    assert column_means(cells) == pytest.approx([62.5, 25.0, np.nan], nan_ok=True)


def test_exponent():
    sizes = [10, 100, 1000]
    assert exponent(sizes, [7 * size**1.5 for size in sizes]) == pytest.approx(1.5)
    assert exponent(sizes, [3, 3, 3]) == pytest.approx(0)


def test_correction_for_shared_training_rows_by_hand():
    # Nadeau and Bengio, with ten folds: t is smaller by sqrt((1/10) / (1/10 + 1/9)).
    first, second = np.random.default_rng(0).normal(size=(2, 10))
    plain = stats.ttest_rel(first, second)
    shrunk = plain.statistic * (0.1 / (0.1 + 1 / 9)) ** 0.5
    expected = 2 * stats.t.sf(abs(shrunk), 9)
    found = paired_difference(dict(enumerate(first)), dict(enumerate(second)), overlap=1 / 9)
    assert found.p == pytest.approx(expected)
    assert found.p > plain.pvalue
    wide, narrow = found, paired_difference(dict(enumerate(first)), dict(enumerate(second)))
    assert (wide.high - wide.low) / (narrow.high - narrow.low) == pytest.approx((1 + 10 / 9) ** 0.5)


def test_holm_by_a_plain_loop():
    p_values = [0.01, 0.5, 0.011, 0.04, 0.2]
    found, largest = {}, 0.0
    for i, p in enumerate(sorted(p_values)):
        largest = max(largest, min(1.0, (len(p_values) - i) * p))
        found[p] = largest
    assert holm(p_values) == pytest.approx([found[p] for p in p_values])
    assert holm([]) == []
    assert np.isnan(holm([np.nan])).all()


@pytest.mark.parametrize("n", [10, 30])
def test_signed_ranks_against_scipy(n):
    first, second = np.random.default_rng(n).normal(size=(2, n))
    first += 0.4
    found = robust_difference(dict(enumerate(first)), dict(enumerate(second)))
    # The name that every supported release of SciPy knows.
    test = stats.wilcoxon(first, second, method="approx", correction=True)
    assert found.p == pytest.approx(test.pvalue)
    # The interval has zero inside where the test finds nothing.
    assert (found.low <= 0 <= found.high) == (found.p > 0.05)
    pairs = [(a + b) / 2 for i, a in enumerate(first - second) for b in (first - second)[i:]]
    assert found.mean == pytest.approx(np.median(pairs))
    assert np.isnan(robust_difference({0: 1.0}, {0: 2.0}).p)
