"""Limits of T2 and Q against closed forms, quantiles of simulated sums, and moments of Wishart matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from plstream.monitoring.limits import Q_LIMITS, Traces, box_limit, jackson_mudholkar_limit, pearson_limit, t2_limit


def traces_of(eigenvalues, unit=1.0):
    shares = np.asarray(eigenvalues) / unit
    return Traces(*(float(np.sum(shares**k)) for k in (1, 2, 3)), unit)


@pytest.mark.parametrize("level", [0.9, 0.99])
@pytest.mark.parametrize("h", [1, 7, 300])
def test_equal_variances_are_chi_squared(level, h):
    exact = 2.5 * stats.chi2.ppf(level, h)
    traces = traces_of(np.full(h, 2.5), unit=40.0)
    assert box_limit(level, traces) == pytest.approx(exact)
    assert pearson_limit(level, traces) == pytest.approx(exact)
    assert jackson_mudholkar_limit(level, traces) == pytest.approx(exact, rel=0.03)


@pytest.mark.parametrize("level", [0.95, 0.99])
@pytest.mark.parametrize(
    "eigenvalues",
    [np.geomspace(1, 0.1, 20), np.r_[3.0, np.full(50, 0.1)], np.r_[1.0, 0.5]],
    ids=["falling", "one large", "two"],
)
def test_unequal_variances_are_simulated(level, eigenvalues):
    draws = stats.chi2.rvs(1, size=(200_000, len(eigenvalues)), random_state=0) @ eigenvalues
    exceeded = {name: (draws > limit(level, traces_of(eigenvalues))).mean() for name, limit in Q_LIMITS.items()}
    assert exceeded["pearson"] == pytest.approx(1 - level, rel=0.1)
    # Far too wide if one residual is larger than all others: it is exceeded by 7 in 10,000 at level 0.99.
    assert exceeded["jackson-mudholkar"] < 1.4 * (1 - level)
    assert exceeded["box"] == pytest.approx(1 - level, rel=1.1)


@given(
    st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30),
    st.floats(0.5, 0.999),
    st.sampled_from([1e-300, 1e-7, 1.0, 1e290]),
)
def test_limits_are_above_the_mean_and_have_units(eigenvalues, level, unit):
    traces = traces_of(np.array(eigenvalues) / max(eigenvalues))
    for limit in Q_LIMITS.values():
        value = limit(level, traces)
        assert 0 <= value < np.inf
        assert limit(level, traces._replace(unit=unit)) == pytest.approx(value * unit)
        assert limit(0.9995, traces) >= value


def test_wishart_moments():
    eigenvalues, dof = np.r_[2.0, 1.0, np.full(28, 0.1)], 15
    true = traces_of(eigenvalues)
    rng = np.random.default_rng(0)
    samples = []
    for _ in range(6000):
        rows = rng.normal(size=(dof, 30)) * np.sqrt(eigenvalues)
        samples.append(traces_of(np.linalg.eigvalsh(rows @ rows.T / dof)))
    found = np.mean([sample.unbiased(dof)[:3] for sample in samples], axis=0)
    assert found == pytest.approx(true[:3], rel=0.02)
    # Without the correction it is far off.
    assert np.mean([sample.second for sample in samples]) > 1.3 * true.second


def test_traces_that_no_covariance_has():
    assert box_limit(0.99, Traces(0.0, 0.0, 0.0)) == pytest.approx(0, abs=1e-300)
    assert box_limit(0.99, Traces(1.0, -0.1, 0.0)) == 1.0
    assert pearson_limit(0.99, Traces(1.0, -0.1, 0.0)) == 1.0
    assert jackson_mudholkar_limit(0.99, Traces(1.0, -0.1, 0.0)) == 1.0
    assert pearson_limit(0.99, Traces(1.0, 0.1, -5.0)) == pytest.approx(pearson_limit(0.99, Traces(1.0, 0.1, 0.01)))


def test_t2():
    # For many rows it is chi-squared; for one component the square of Student's t, wider by one more row.
    assert t2_limit(0.99, 4, 1e9) == pytest.approx(stats.chi2.ppf(0.99, 4), rel=1e-6)
    assert t2_limit(0.99, 1, 10) == pytest.approx(stats.t.ppf(0.995, 9) ** 2 * 11 / 10)
    assert t2_limit(0.99, 0, 10) == 0
    with pytest.raises(ValueError, match="requires more than 3 rows"):
        t2_limit(0.99, 3, 3)
