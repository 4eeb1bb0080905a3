"""Statistics against SciPy, and against numbers worked out by hand."""

import numpy as np
import pytest
from scipy import stats

from plstream.experiments.inference import exponent, interval, paired_t_test


def test_interval_by_hand():
    # Ten values of mean 5.5 and deviation sqrt(82.5/9); t with 9 degrees of freedom is 2.262.
    mean, half_width = interval(list(range(1, 11)))
    assert mean == 5.5
    assert half_width == pytest.approx(2.262 * (82.5 / 9) ** 0.5 / 10**0.5, rel=2e-4)


@pytest.mark.parametrize("n", [2, 10, 30])
def test_against_scipy(n):
    first, second = np.random.default_rng(n).normal(size=(2, n))
    mean, half_width = interval(first, 0.9)
    low, high = stats.t.interval(0.9, n - 1, loc=first.mean(), scale=stats.sem(first))
    assert (mean - half_width, mean + half_width) == pytest.approx((low, high))
    assert paired_t_test(first, second) == pytest.approx(stats.ttest_rel(first, second).pvalue)


def test_few_values_and_equal_ones():
    assert np.isnan(interval([3.0]).half_width)
    assert np.isnan(paired_t_test([1.0], [2.0]))
    assert paired_t_test([1.0, 2.0], [1.0, 2.0]) == 1.0
    assert paired_t_test([1.0, 2.0], [2.0, 3.0]) == 0.0


def test_exponent():
    sizes = [10, 100, 1000]
    assert exponent(sizes, [7 * size**1.5 for size in sizes]) == pytest.approx(1.5)
    assert exponent(sizes, [3, 3, 3]) == pytest.approx(0)
