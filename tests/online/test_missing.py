"""Missing values in online methods are replaced by the means of the values up to their row."""

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plstream import CCIPCA, CIPLS, IPLS, OLPLS, SGDPLS, IncrementalLDA, load, save

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 6)) + 100
y = X[:, 0] - X[:, 1]
LABELS = (y > np.median(y)).astype(int)
GAPS = np.where(rng.random(X.shape) < 0.2, np.nan, X)
GAPS[0] = X[0]

METHODS = [CIPLS, CCIPCA, IPLS, OLPLS, lambda **how: SGDPLS(1, random_state=0, **how), IncrementalLDA]


def filled():
    """Return the rows as a plain loop fills them."""
    rows = GAPS.copy()
    for i, j in zip(*np.nonzero(np.isnan(rows)), strict=True):
        known = GAPS[: i + 1, j]
        rows[i, j] = known[~np.isnan(known)].mean()
    return rows


def scores(model):
    return model.transform(X)


@pytest.mark.parametrize("method", METHODS)
def test_rows_are_filled_by_means_so_far(method):
    found, expected = method(missing="mean").fit(GAPS, LABELS), method().fit(filled(), LABELS)
    np.testing.assert_allclose(scores(found), scores(expected), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_without_gaps_nothing_changes(method):
    found, expected = method(missing="mean").fit(X, LABELS), method().fit(X, LABELS)
    np.testing.assert_array_equal(scores(found), scores(expected))


@settings(deadline=None, max_examples=10)
@given(cuts=st.lists(st.integers(1, 59), max_size=5))
def test_chunks_do_not_matter(cuts):
    whole, parts = (CIPLS(missing="mean", target="values") for _ in range(2))
    whole.partial_fit(GAPS, y)
    for rows in np.split(np.arange(60), sorted(set(cuts))):
        parts.partial_fit(GAPS[rows], y[rows])
    np.testing.assert_array_equal(parts.x_weights_, whole.x_weights_)


def test_single_rows():
    rows = CIPLS(missing="mean").partial_fit(GAPS[:1], y[:1])
    ones = deepcopy(rows)
    for i in range(1, 60):
        rows.partial_fit(GAPS[i : i + 1], y[i : i + 1])
        ones.learn_one(GAPS[i], y[i])
    np.testing.assert_array_equal(ones.x_weights_, rows.x_weights_)
    np.testing.assert_array_equal(ones.transform_one(GAPS[7]), rows.transform(GAPS[7:8])[0])
    assert ones.predict_one(GAPS[7]) == rows.predict(GAPS[7:8])[0]


def test_a_feature_that_is_missing_at_first():
    late = GAPS.copy()
    late[:3, 2] = np.nan
    expected = late.copy()
    expected[:3, 2] = late[3:, 2][~np.isnan(late[3:, 2])][0]
    found, filled_before = (CIPLS(missing="mean").fit(rows, y) for rows in (late, expected))
    np.testing.assert_allclose(found.x_weights_, filled_before.x_weights_, rtol=0.1, atol=0.1)
    with pytest.raises(ValueError, match="Feature 2 has had no value so far"):
        CIPLS(missing="mean").partial_fit(late[:1], y[:1])


def test_in_use_missing_values_are_the_means_of_the_model():
    model = CIPLS(missing="mean").fit(GAPS, y)
    expected = model.transform(np.where(np.isnan(GAPS), model.x_mean_, GAPS))
    np.testing.assert_allclose(model.transform(GAPS), expected, rtol=1e-12)


def test_errors():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(GAPS, columns=list("abcdef"))
    row, column = np.argwhere(np.isnan(GAPS))[0]
    message = rf"NaN \(first in row {row}, column '{'abcdef'[column]}'\).*or set missing='mean'"
    with pytest.raises(ValueError, match=message):
        CIPLS().fit(frame, y)
    first = frame.copy()
    first["d"] = np.nan
    model = CIPLS(missing="mean").partial_fit(frame, y)
    before = model.x_weights_
    with pytest.raises(ValueError, match="Feature 'd' has had no value so far"):
        model.fit(first, y)
    frame.iloc[5, 2] = np.inf
    with pytest.raises(ValueError, match=r"infinity \(first in row 5, column 'c'\)"):
        model.partial_fit(frame, y)
    np.testing.assert_array_equal(model.x_weights_, before)


def test_models_in_files(tmp_path):
    model = CIPLS(missing="mean").partial_fit(GAPS[:40], y[:40])
    save(model, tmp_path / "model.plstream")
    again = load(tmp_path / "model.plstream").partial_fit(GAPS[40:], y[40:])
    np.testing.assert_array_equal(again.x_weights_, model.partial_fit(GAPS[40:], y[40:]).x_weights_)
