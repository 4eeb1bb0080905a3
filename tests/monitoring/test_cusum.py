"""The cumulative sum beside one that is written down from its definition, with SciPy's distributions."""

import numpy as np
import pytest
from scipy import stats

from plstream.monitoring.cusum import Cusum


def deviations(values):
    """Return how far each value after the tenth is above those before, of at most 30, in normal deviations."""
    found, usual = [], []
    for value in values:
        z = 0.0
        if len(usual) >= 10:
            before = np.array(usual[-30:])
            t = (value - before.mean()) / (before.std(ddof=1) * np.sqrt(1 + 1 / len(before)))
            z = stats.norm.isf(stats.t.sf(t, len(before) - 1))
        if z < 3:
            usual.append(value)
        found.append(z)
    return found


def test_the_sum_is_that_of_its_definition():
    values = np.random.default_rng(0).normal(size=200)
    cusum, total = Cusum(30), 0.0
    for value, z in zip(values, deviations(values), strict=True):
        cusum.add(value, 1.0, threshold=np.inf)
        total = max(0.0, total + z - 0.5)
        assert cusum.total == pytest.approx(total, abs=1e-9)


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
