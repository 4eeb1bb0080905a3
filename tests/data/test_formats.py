"""The same data in every format gives the same blocks and the same models."""

import numpy as np
import pytest
from sklearn.base import clone

from plstream import CCIPCA, CIPLS, IncrementalLDA, IncrementalPLS, VIPSelector, open_source
from plstream._core.tiles import default_block_rows

from .formats import FORMATS, NAMES, opened

N_ROWS = 203
rng = np.random.default_rng(7)
X = rng.normal(size=(N_ROWS, 4)) * [1, 100, 1e-5, 1] + [0, 1e4, 0, 3]
VALUES = X @ [1.0, 0.01, 1e5, 0.0] + rng.normal(size=N_ROWS)
NUMBERS = np.digitize(VALUES, np.quantile(VALUES, [0.3, 0.6]))
LABELS = np.array(["low", "medium", "high"])[NUMBERS]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("y", [VALUES, NUMBERS, LABELS], ids=["values", "numbers", "labels"])
def test_blocks(name, y, tmp_path):
    source = opened(name, tmp_path, X, y, batch_size=50)
    assert source.n_columns == 4
    assert source.n_rows in {N_ROWS, None}
    assert source.dtype == np.float64
    assert source.feature_names in (None, NAMES)
    assert source.rereadable
    for _ in range(2):
        blocks = list(source.blocks())
        assert [len(rows) for rows, _ in blocks] == [50, 50, 50, 50, 3]
        np.testing.assert_array_equal(np.concatenate([rows for rows, _ in blocks]), X)
        read = np.concatenate([target for _, target in blocks])
        assert read.dtype.kind == y.dtype.kind
        np.testing.assert_array_equal(read, y)
    assert source.count() == N_ROWS
    np.testing.assert_array_equal(source.labels(), np.unique(y))
    np.testing.assert_array_equal(source.label_counts()[1], np.unique(y, return_counts=True)[1])


@pytest.mark.parametrize("name", FORMATS)
def test_from_any_row_on(name, tmp_path):
    source = opened(name, tmp_path, X, VALUES, batch_size=40)
    whole = list(source.blocks())
    for start in (1, 39, 40, 41, 99, 160, 202, 203, 300):
        tail = list(source.blocks(start))
        read = np.concatenate([rows for rows, _ in tail] or [X[:0]])
        np.testing.assert_array_equal(read, X[start:])
        np.testing.assert_array_equal(np.concatenate([y for _, y in tail] or [VALUES[:0]]), VALUES[start:])
        # All but the first end where they would.
        assert [len(rows) for rows, _ in tail[1:]] == [len(rows) for rows, _ in whole[len(whole) - len(tail) + 1 :]]


@pytest.mark.parametrize("name", FORMATS)
def test_models(name, tmp_path):
    source = opened(name, tmp_path, X, VALUES, batch_size=64)
    for model in (IncrementalPLS(3), IncrementalPLS(3, solver="gram"), IncrementalPLS(3, solver="sketch")):
        expected, actual = clone(model).fit(X, VALUES), clone(model).fit(source)
        if model.solver == "auto":
            np.testing.assert_array_equal(actual.coef_, expected.coef_)
        np.testing.assert_allclose(actual.coef_, expected.coef_, rtol=1e-9)
        assert actual.n_samples_seen_ == N_ROWS
        assert list(getattr(actual, "feature_names_in_", NAMES)) == NAMES
        np.testing.assert_allclose(actual.predict(source), expected.predict(X))
        np.testing.assert_allclose(actual.transform(source), expected.transform(X), atol=1e-12)
    twice = IncrementalPLS(3).partial_fit(source).partial_fit(source)
    np.testing.assert_allclose(twice.coef_, expected.coef_, rtol=1e-8)


@pytest.mark.parametrize("name", FORMATS)
def test_online_methods(name, tmp_path):
    source = opened(name, tmp_path, X, LABELS, batch_size=64)
    for model in (CIPLS(2), IncrementalLDA(), CCIPCA(2)):
        expected, actual = clone(model).fit(X, LABELS), clone(model).fit(source)
        np.testing.assert_allclose(actual.transform(source), expected.transform(X), rtol=1e-12)
        assert actual.n_samples_seen_ == N_ROWS
        if hasattr(model, "predict"):
            np.testing.assert_array_equal(actual.predict(source), expected.predict(X))
        if not isinstance(model, CCIPCA):
            assert list(actual.classes_) == ["high", "low", "medium"]


def test_reading_again_without_a_copy():
    rows = rng.normal(size=(9000, 500))
    y = rows[:, 0] + rng.normal(size=9000)
    source = open_source([(rows[start : start + 700], y[start : start + 700]) for start in range(0, 9000, 700)])
    source.block_rows = default_block_rows(rows)
    expected = IncrementalPLS(2).fit(rows, y)
    np.testing.assert_array_equal(IncrementalPLS(2).fit(source).coef_, expected.coef_)


def test_forgetting_and_unknown_number_of_rows(tmp_path):
    expected = IncrementalPLS(2, forgetting=0.98).fit(X, VALUES)
    for name in ("csv", "blocks"):
        source = opened(name, tmp_path, X, VALUES, batch_size=30)
        assert source.n_rows is None
        np.testing.assert_allclose(IncrementalPLS(2, forgetting=0.98).fit(source).coef_, expected.coef_, rtol=1e-9)


def test_selector(tmp_path):
    source = opened("csv", tmp_path, X, VALUES)
    expected = VIPSelector().fit(X, VALUES)
    for selector in (VIPSelector().fit(source), VIPSelector().partial_fit(source)):
        np.testing.assert_allclose(selector.scores_, expected.scores_, rtol=1e-9)
        assert selector.feature_names_in_.tolist() == NAMES
    from sklearn.cross_decomposition import PLSRegression

    with pytest.raises(TypeError, match="PLSRegression cannot learn from a source"):
        VIPSelector(PLSRegression()).fit(source)


def test_fit_transform_takes_a_source(tmp_path):
    source = opened("csv", tmp_path, X, VALUES)
    np.testing.assert_allclose(
        IncrementalPLS(2).fit_transform(source), IncrementalPLS(2).fit(X, VALUES).transform(X), atol=1e-12
    )


@pytest.mark.parametrize("name", ["csv", "npy", "parquet", "ndjson", "pandas"])
def test_choice_of_columns(name, tmp_path):
    data, how = FORMATS[name](tmp_path, X, VALUES)
    source = open_source(data, **how, columns=[3, range(2)], exclude=0)
    ((rows, y),) = source.blocks()
    np.testing.assert_array_equal(rows, X[:, [3, 1]])
    np.testing.assert_array_equal(y, VALUES)
    if source.feature_names is not None:
        assert source.feature_names == ["d", "b"]
        named = open_source(data, **how, columns=["d", "b"])
        assert named.fingerprint() == source.fingerprint()
    assert open_source(data, **how).fingerprint() != source.fingerprint()
    np.testing.assert_allclose(IncrementalPLS(1).fit(source).coef_, IncrementalPLS(1).fit(rows, y).coef_)


def test_several_targets(tmp_path):
    data, _ = FORMATS["csv"](tmp_path, X, VALUES)
    source = open_source(data, target=["y", "d"])
    assert (source.target_names, source.feature_names) == (["y", "d"], ["a", "b", "c"])
    Y = np.column_stack([VALUES, X[:, 3]])
    model = IncrementalPLS(2).fit(source)
    np.testing.assert_array_equal(model.coef_, IncrementalPLS(2).fit(X[:, :3], Y).coef_)
    assert model.predict(source).shape == (N_ROWS, 2)
    one = IncrementalPLS(2).fit(open_source(data, target=["y"]))
    assert one.predict(open_source(data, exclude="y")).shape == (N_ROWS, 1)


@pytest.mark.parametrize("name", FORMATS)
def test_fingerprint_is_kept(name, tmp_path):
    source = opened(name, tmp_path, X, VALUES)
    before = source.fingerprint()
    source.count()
    assert source.fingerprint() == before
    if name != "blocks":
        other = tmp_path / "other"
        other.mkdir()
        assert opened(name, other, X + 1, VALUES).fingerprint() != before


def test_fingerprint_changes_with_the_file(tmp_path):
    data, how = FORMATS["npy"](tmp_path, X, VALUES)
    before = open_source(data, **how).fingerprint()
    assert open_source(data, **how).fingerprint() == before
    np.save(data, X[:-1])
    np.save(how["target"], VALUES[:-1])
    assert open_source(data, **how).fingerprint() != before
    assert open_source(X, VALUES).fingerprint() != open_source(X + 1, VALUES).fingerprint()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ">f8", np.int16, bool, np.longdouble])
def test_dtypes(dtype, tmp_path):
    rows = np.asfortranarray(X - X.mean(axis=0) > 0 if dtype is bool else X).astype(dtype)
    np.save(tmp_path / "X.npy", rows)
    source = open_source(tmp_path / "X.npy", VALUES, batch_size=100)
    for block, _ in source.blocks():
        assert block.dtype.isnative
        assert block.dtype == source.dtype
    np.testing.assert_allclose(
        IncrementalPLS(1).fit(source).coef_, IncrementalPLS(1).fit(rows.astype(source.dtype), VALUES).coef_
    )


def test_inconsistent_calls(tmp_path):
    source = opened("csv", tmp_path, X, VALUES)
    with pytest.raises(ValueError, match="y cannot be passed with a source"):
        IncrementalPLS().fit(source, VALUES)
    with pytest.raises(ValueError, match="sample_weight cannot be passed with a source"):
        IncrementalPLS().fit(source, sample_weight=VALUES)
    with pytest.raises(ValueError, match="has no target: open it with target="):
        IncrementalPLS().fit(open_source(X))
    with pytest.raises(ValueError, match=r"upper bound is 4. Got 5 instead"):
        IncrementalPLS(5).fit(source)
    with pytest.raises(ValueError, match=r"upper bound is 2. Got 3 instead. .* the smaller of n_samples=2"):
        IncrementalPLS(3, solver="gram").fit(open_source(iter([(X[:2], VALUES[:2])])))
    with pytest.raises(ValueError, match="start=-1"):
        source.blocks(-1)
    model = IncrementalPLS().fit(source)
    with pytest.raises(ValueError, match="X has 5 features, but IncrementalPLS is expecting 4"):
        model.predict(open_source(tmp_path / "data.csv"))
    with pytest.raises(ValueError, match="feature 0 is 'b', but was 'a'"):
        model.predict(open_source(tmp_path / "data.csv", columns=["b", "a", "c", "d"]))
    with pytest.warns(UserWarning, match="no feature names"):
        model.predict(open_source(X))
    with pytest.raises(ValueError, match="only one class"):
        CIPLS().fit(open_source(X, np.ones(N_ROWS, int)))
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="has 5 column"):
        model.fit(open_source([(X, VALUES), (np.zeros((3, 5)), np.zeros(3))], batch_size=50))
    np.testing.assert_array_equal(model.coef_, before)


def test_text_as_values(tmp_path):
    for solver in ("auto", "gram"):
        with pytest.raises(ValueError, match=r"data.csv, from row 0 on: y must hold numbers, not strings such as"):
            IncrementalPLS(solver=solver).fit(opened("csv", tmp_path, X, LABELS))


def test_failed_call_leaves_the_stream():
    model = IncrementalPLS(solver="gram").partial_fit(X, VALUES)
    before = model.coef_.copy()
    bad = X.copy()
    bad[150, 2] = np.nan
    with pytest.raises(ValueError, match="row 150, column 2, there is NaN"):
        model.partial_fit(open_source(bad, VALUES, batch_size=50))
    assert model.n_samples_seen_ == N_ROWS
    np.testing.assert_array_equal(model.coef_, before)
