"""The cumulative sum against one written from its definition, with SciPy's distributions."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from plstream.monitoring.cusum import Cusum


def steps(values):
    """Return how far each value after the tenth is above those before, of at most 30, in normal deviations.

    In deviations of sums, which for a first-order autoregression vary by (1 + r) / (1 - r) times as much as for
    independent values; r is that of the values before, less a standard error.
    """
    found, usual = [], []
    for value in values:
        z = step = 0.0
        if len(usual) >= 10:
            before = np.array(usual[-30:])
            n = len(before)
            t = (value - before.mean()) / (before.std(ddof=1) * np.sqrt(1 + 1 / n))
            z = stats.norm.isf(stats.t.sf(t, n - 1))
            pairs = sum((a - before.mean()) * (b - before.mean()) for a, b in pairwise(before))
            r = min(max(pairs / (n * before.var()) - n**-0.5, 0.0), 0.95)
            step = stats.norm.isf(stats.t.sf(t * np.sqrt((1 - r) / (1 + r)), n - 1))
        if z < 3:
            usual.append(value)
        found.append(step)
    return found


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_the_sum_is_that_of_its_definition(correlation):
    values = np.random.default_rng(0).normal(size=200)
    for i in range(1, 200):
        values[i] += correlation * values[i - 1]
    cusum, total = Cusum(30), 0.0
    for value, step in zip(values, steps(values), strict=True):
        cusum.add(value, 1.0, threshold=np.inf)
        total = max(0.0, total + step - 0.5)
        assert cusum.total == pytest.approx(total, abs=1e-9)


def test_values_that_are_like_those_before_them_raise_few_alarms():
    """Twice as high as they vary, and for some time, without any change: as a process that wanders."""
    rng = np.random.default_rng(1)
    n_alarms = 0
    for _ in range(20):
        cusum, value = Cusum(300, fixed=True), 0.0
        for _ in range(200):
            value = 0.9 * value + rng.normal()
            n_alarms += cusum.add(value, 1.0, threshold=10.0)
    assert n_alarms <= 12


def test_a_sum_that_grows_and_a_jump_both_raise_an_alarm():
    values = 0.1 * np.random.default_rng(0).normal(size=60)
    slow, sudden = Cusum(30), Cusum(30)
    assert not any(cusum.add(value, 1.0, threshold=10.0) for cusum in (slow, sudden) for value in values)
    raised = [slow.add(value, 1.0, threshold=10.0) for value in values[:10] + 0.3]
    assert 2 <= raised.index(True) <= 9
    assert sudden.add(1.0, 1.0, threshold=10.0)
    assert sudden.n_rising == 1
    assert Cusum(30).add(3.0, 1.0, threshold=10.0) is False


def test_a_fixed_sum_knows_the_first_values_and_is_silent_until_it_is_back():
    values = list(0.1 * np.random.default_rng(0).normal(size=100))
    cusum = Cusum(20, fixed=True)
    for value in values:
        assert not cusum.add(value, 1.0, threshold=10.0)
    assert [value for value, _ in cusum.usual] == values[:20]
    assert cusum.mean == pytest.approx(np.mean(values[:20]))
    changed = [cusum.add(value + 1, 1.0, threshold=10.0) for value in values]
    assert changed == [True] + [False] * 99
    assert cusum.raised
    back = 0
    while cusum.raised:
        assert not cusum.add(values[back], 1.0, threshold=10.0)
        back += 1
    # Half a deviation for each, and what they are off by chance.
    assert 5 < back < 60
    assert cusum.add(1.0, 1.0, threshold=10.0)


def test_values_of_any_size_are_counted():
    cusum = Cusum(30)
    for value in [1.0] * 10 + [-28.0, 700.0, -28.0]:
        cusum.add(value, 1.0, threshold=np.inf)
        assert np.isfinite(cusum.total)
