"""StreamingPipeline, against scikit-learn's Pipeline in memory."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import SGDRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from plstream import (
    CIPLS,
    IncrementalPLS,
    IncrementalPLSClassifier,
    IncrementalPLSCV,
    StreamingPipeline,
    VIPSelector,
    open_source,
)
from plstream.data import Source

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 12)).cumsum(axis=1) + 5
Y = np.column_stack([X[:, 3] - X[:, 7], X[:, 1] + X[:, 2]]) + 0.1 * RNG.normal(size=(150, 2))
LABELS = np.where(X[:, 3] > X[:, 7], "high", "low")

# What scikit-learn's own Pipeline is excused from, and for the same reason: the steps are fitted in place.
SAME_AS_SKLEARN = {"check_dont_overwrite_attributes", "check_estimators_overwrite_params"}


@parametrize_with_checks(
    [
        StreamingPipeline([("pls", IncrementalPLS())]),
        StreamingPipeline([("scale", StandardScaler()), ("pls", IncrementalPLS(solver="gram"))]),
        StreamingPipeline([("norm", Normalizer()), ("pls", IncrementalPLSClassifier())]),
    ]
)
@pytest.mark.filterwarnings("ignore:X and y have only:UserWarning")
def test_sklearn_checks(estimator, check):
    if check.func.__name__ in SAME_AS_SKLEARN:
        pytest.skip("Steps are fitted in place, as in scikit-learn's Pipeline.")
    check(estimator)


def row_by_row(last=None):
    """Steps that learn nothing from rows."""
    own = FunctionTransformer(lambda rows: np.diff(rows, axis=1))
    return [("norm", Normalizer()), ("own", own), ("last", last or IncrementalPLS(n_components=3))]


def learning(last=None):
    """Steps that do."""
    scalers = [("scale", StandardScaler()), ("norm", Normalizer()), ("range", MinMaxScaler())]
    return [*scalers, ("last", last or IncrementalPLS(n_components=3))]


STEPS = pytest.mark.parametrize("steps", [row_by_row, learning])


@STEPS
@pytest.mark.parametrize("solver", ["auto", "multipass", "gram", "sketch"])
@pytest.mark.parametrize("batch_size", [1, 40, 1000])
def test_fit_of_a_source_is_the_fit_in_memory(steps, solver, batch_size):
    expected = Pipeline(steps(IncrementalPLS(3, solver=solver))).fit(X, Y)
    source = open_source(X, target=Y, batch_size=batch_size)
    model = StreamingPipeline(steps(IncrementalPLS(3, solver=solver))).fit(source)
    assert_allclose(model.predict(X), expected.predict(X), atol=1e-8)
    assert_allclose(model.predict(open_source(X, batch_size=33)), expected.predict(X), atol=1e-8)
    assert_allclose(model.transform(open_source(X)), expected.transform(X), atol=1e-8)
    for (_, step), (_, other) in zip(model.steps[:-1], expected.steps[:-1], strict=True):
        assert step.n_features_in_ == other.n_features_in_


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 149), max_size=6, unique=True))
def test_row_by_row_steps_do_not_depend_on_the_blocks(ends):
    model = StreamingPipeline(row_by_row())
    for rows in np.split(np.arange(150), sorted(ends)):
        model.partial_fit(X[rows], Y[rows])
    assert_allclose(model.predict(X), Pipeline(row_by_row(IncrementalPLS(3, solver="gram"))).fit(X, Y).predict(X))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 149), max_size=5, unique=True))
def test_steps_that_learn_know_all_rows(ends):
    model = StreamingPipeline([("scale", StandardScaler()), ("last", IncrementalPLS())])
    for rows in np.split(np.arange(150), sorted(ends)):
        model.partial_fit(X[rows], Y[rows])
    assert_allclose(model[0].mean_, X.mean(axis=0))
    assert_allclose(model[0].var_, X.var(axis=0))


def test_large_arrays_and_memory_maps_pass_in_blocks(monkeypatch, tmp_path):
    monkeypatch.setattr("plstream.estimators.pipeline.SMALL_BYTES", 1000)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    expected = Pipeline(learning()).fit(X, Y)
    seen = []
    monkeypatch.setattr(Source, "treated", _spied(seen, Source.treated))
    for rows in (X, mapped):
        model = StreamingPipeline(learning()).fit(rows, Y)
        assert_allclose(model.predict(rows), expected.predict(X), atol=1e-8)
    assert seen
    # With parameters for each row, all rows are treated at once.
    weight = RNG.uniform(size=150)
    weighted = StreamingPipeline(learning()).fit(mapped, Y, sample_weight=weight)
    assert_allclose(weighted.predict(X), Pipeline(learning()).fit(X, Y, last__sample_weight=weight).predict(X))


def _spied(seen, method):
    def spy(self, *arguments):
        seen.append(self)
        return method(self, *arguments)

    return spy


@STEPS
def test_dask(steps):
    da = pytest.importorskip("dask.array")
    rows, target = da.from_array(X, chunks=(40, 12)), da.from_array(Y, chunks=(40, 2))
    expected = Pipeline(steps()).fit(X, Y).predict(X)
    model = StreamingPipeline(steps()).fit(rows, target)
    assert_allclose(model.predict(X), expected, atol=1e-8)
    assert_allclose(model.predict(rows).compute(), expected, atol=1e-8)
    streamed = StreamingPipeline(steps()).partial_fit(rows, target)
    assert_allclose(streamed.predict(X), expected, atol=1e-8)


def test_dask_dataframe_and_delayed_blocks():
    dd, dask = pytest.importorskip("dask.dataframe"), pytest.importorskip("dask")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(12)])
    target = pd.Series(Y[:, 0], name="y")
    expected = Pipeline(learning()).fit(X, Y[:, 0]).predict(X)
    rows = dd.from_pandas(frame, npartitions=3)
    model = StreamingPipeline(learning()).fit(rows, dd.from_pandas(target, npartitions=3))
    assert_allclose(model.predict(frame), expected, atol=1e-8)
    assert list(model.feature_names_in_) == list(frame)
    parts = np.array_split(np.arange(150), 4)
    blocks = [dask.delayed(X[part]) for part in parts]
    model = StreamingPipeline(learning()).fit(blocks, [dask.delayed(Y[part, 0]) for part in parts])
    assert_allclose(model.predict(X), expected, atol=1e-8)


def test_files_on_workers(tmp_path):
    pytest.importorskip("dask")
    from plstream.distributed import OnWorkers

    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "Y.npy", Y)
    source = open_source(tmp_path / "X.npy", target=tmp_path / "Y.npy", batch_size=20)
    model = StreamingPipeline(learning()).fit(OnWorkers(source))
    assert_allclose(model.predict(X), Pipeline(learning()).fit(X, Y).predict(X), atol=1e-8)


def test_a_treated_source_can_be_sent(tmp_path):
    np.save(tmp_path / "X.npy", X)
    treated = open_source(tmp_path / "X.npy", batch_size=20).treated(np.exp, np.ones((1, 12)))
    for source in (treated, treated.between(30, 70)):
        twin = pickle.loads(pickle.dumps(source))  # noqa: S301
        for (mine, _), (theirs, _) in zip(source.blocks(), twin.blocks(), strict=True):
            assert_array_equal(mine, theirs)


def test_nested_pipelines(tmp_path):
    """Of files, and of their blocks that are in memory."""
    np.save(tmp_path / "x.npy", X)
    inner = StreamingPipeline([("double", FunctionTransformer(_doubled)), ("pls", IncrementalPLS(2, scale=False))])
    model = StreamingPipeline([("square", FunctionTransformer(np.square)), ("inner", inner)])
    source = open_source(tmp_path / "x.npy", target=Y, batch_size=50)
    expected = clone(model).fit(X, Y).predict(X)
    for learn in (clone(model).fit, clone(model).partial_fit):
        assert_allclose(learn(source).predict(source), expected, rtol=1e-8)
    by_parts, row = clone(model), 0
    for record in source.records():
        by_parts.partial_fit(source.part(record, row))
        row += len(record[0])
    assert_allclose(by_parts.predict(X), expected, rtol=1e-8)


def _doubled(rows):
    return 2 * rows - 1


@pytest.mark.parametrize("solver", ["auto", "gram"])
def test_steps_that_return_other_types_of_numbers(solver):
    """Objects are converted; others must not vary, as rows are copied to a file."""
    source = open_source(X, target=Y, batch_size=50)
    last = IncrementalPLS(2, solver=solver)
    of_objects = StreamingPipeline([("own", FunctionTransformer(_as_objects)), ("pls", last)])
    assert_allclose(of_objects.fit(source).predict(source), clone(last).fit(X, Y).predict(X), rtol=1e-8)
    at_times_integers = StreamingPipeline([("own", FunctionTransformer(_integers_if_one)), ("pls", clone(last))])
    assert_allclose(at_times_integers.fit(source).predict(source), clone(last).fit(X, Y).predict(X), rtol=1e-8)
    for function, problem in [
        (lambda rows: rows[:, 0], "has 1 dimension"),
        (lambda rows: rows + 1j, "holds complex numbers"),
        (lambda rows: rows.astype(str), "holds values of type .*, not numbers"),
        (lambda rows: rows.astype(np.float32 if len(rows) < 50 else np.float64), "values of type float64 instead of"),
    ]:
        with pytest.raises(ValueError, match=problem):
            StreamingPipeline([("own", FunctionTransformer(function)), ("pls", clone(last))]).fit(source)


def _as_objects(rows):
    return rows.astype(object)


def _integers_if_one(rows):
    return rows.astype(np.int64) if len(rows) == 1 else rows


@pytest.mark.parametrize("dtypes", [("f4", "f8"), ("f8", "f4"), ("f4", "i8")])
def test_blocks_of_different_types_of_numbers(dtypes):
    y = Y[:60]
    blocks = [np.round(4 * X[i : i + 30]).astype(dtype) for i, dtype in zip((0, 30), dtypes, strict=True)]
    steps = [("scale", StandardScaler()), ("pls", IncrementalPLS(2))]
    expected = StreamingPipeline(steps).fit(np.concatenate([block.astype(float) for block in blocks]), y)
    model = clone(expected).fit(open_source([(blocks[0], y[:30]), (blocks[1], y[30:])]))
    assert_allclose(model[-1].coef_, expected[-1].coef_, rtol=1e-12)


def test_a_pipe_is_learnt_from_as_it_arrives():
    blocks = [(X[start : start + 50], Y[start : start + 50]) for start in range(0, 150, 50)]
    model = StreamingPipeline(learning()).partial_fit(open_source(iter(blocks), batch_size=50))
    same = StreamingPipeline(learning())
    for block in blocks:
        same.partial_fit(*block)
    assert_allclose(model.predict(X), same.predict(X))
    gram = StreamingPipeline(row_by_row(IncrementalPLS(3, solver="gram"))).fit(open_source(iter(blocks)))
    assert_allclose(gram.predict(X), Pipeline(row_by_row()).fit(X, Y).predict(X), atol=1e-8)
    with pytest.raises(ValueError, match=r"Step 'scale' has to be fitted before the model.*only once: use partial_fit"):
        StreamingPipeline(learning()).fit(open_source(iter(blocks)))


def test_merge():
    half = slice(0, 75), slice(75, 150)
    first, second = (StreamingPipeline(row_by_row()).partial_fit(X[rows], Y[rows]) for rows in half)
    # A function is the same only if it is the same object.
    second.set_params(own=first[1])
    assert_allclose(first.merge(second).predict(X), Pipeline(row_by_row()).fit(X, Y).predict(X), atol=1e-8)
    assert first[-1].n_samples_seen_ == 150

    scaler = FrozenEstimator(StandardScaler().fit(X))
    first, second = (
        StreamingPipeline([("scale", scaler), ("pls", IncrementalPLS(2))]).partial_fit(X[rows], Y[rows])
        for rows in half
    )
    expected = IncrementalPLS(2).fit(StandardScaler().fit_transform(X), Y)
    assert_allclose(first.merge(second)[-1].coef_, expected.coef_, atol=1e-8)


def test_merge_of_pipelines_that_differ():
    half = slice(0, 75), slice(75, 150)
    first, second = (StreamingPipeline(learning()).partial_fit(X[rows], Y[rows]) for rows in half)
    before = first.predict(X)
    with pytest.raises(ValueError, match="'scale' differs: fit it once"):
        first.merge(second)
    with pytest.raises(TypeError, match="Only another StreamingPipeline"):
        first.merge(IncrementalPLS())
    with pytest.raises(ValueError, match="same steps"):
        first.merge(StreamingPipeline([("pls", IncrementalPLS())]))
    assert_array_equal(first.predict(X), before)
    assert not hasattr(StreamingPipeline([("pls", PLSRegression())]), "merge")
    assert not hasattr(StreamingPipeline([("pls", PLSRegression())]), "partial_fit")


@pytest.mark.parametrize("last", [IncrementalPLSCV(3, cv=3), VIPSelector(), CIPLS()])
def test_other_last_steps(last):
    target = Y[:, 0]
    expected = Pipeline(row_by_row(clone(last))).fit(X, target)
    model = StreamingPipeline(row_by_row(clone(last))).fit(open_source(X, target=target, batch_size=30))
    assert_allclose(model.transform(X), expected.transform(X), atol=1e-8)
    stream = StreamingPipeline(row_by_row(clone(last)))
    for start in range(0, 150, 30):
        stream.partial_fit(X[start : start + 30], target[start : start + 30])
    assert_allclose(stream.transform(X), expected.transform(X), atol=1e-6)


def test_labels():
    expected = Pipeline(learning(IncrementalPLSClassifier(2))).fit(X, LABELS)
    model = StreamingPipeline(learning(IncrementalPLSClassifier(2))).fit(open_source(X, target=LABELS, batch_size=30))
    assert_array_equal(model.predict(open_source(X)), expected.predict(X))
    assert_allclose(model.predict_proba(open_source(X)), expected.predict_proba(X), atol=1e-8)
    assert_array_equal(model.classes_, ["high", "low"])
    stream = StreamingPipeline(row_by_row(IncrementalPLSClassifier(2)))
    stream.partial_fit(X[:1], LABELS[:1], classes=["high", "low"])
    assert_array_equal(stream.partial_fit(X[1:], LABELS[1:]).classes_, ["high", "low"])


def test_last_steps_of_scikit_learn():
    model = StreamingPipeline([("scale", StandardScaler()), ("sgd", SGDRegressor(random_state=0))])
    same = SGDRegressor(random_state=0)
    scaler = StandardScaler()
    for start in range(0, 150, 30):
        rows, target = X[start : start + 30], Y[start : start + 30, 0]
        model.partial_fit(rows, target)
        same.partial_fit(scaler.partial_fit(rows).transform(rows), target)
    assert_allclose(model.predict(X), same.predict(scaler.transform(X)))


def test_frames_keep_their_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"{1000 + k} nm" for k in range(12)])
    steps = [("scale", StandardScaler()), ("pls", IncrementalPLS())]
    model = StreamingPipeline(steps).set_output(transform="pandas").fit(frame, Y)
    expected = model.predict(frame)
    assert list(model.feature_names_in_) == list(model[-1].feature_names_in_) == list(frame)
    assert_allclose(model.predict(open_source(frame)), expected)
    from_source = clone(model).fit(open_source(frame, target=Y))
    assert_allclose(from_source.predict(frame), expected)
    assert list(from_source.feature_names_in_) == list(from_source[-1].feature_names_in_) == list(frame)
    with pytest.raises(ValueError, match="feature names should match"):
        from_source.predict(open_source(frame.rename(columns={"1003 nm": "3 nm"})))


def test_grid_search_and_parameters():
    search = GridSearchCV(StreamingPipeline(learning()), {"last__n_components": [1, 3], "norm": ["passthrough"]}, cv=3)
    same = GridSearchCV(Pipeline(learning()), {"last__n_components": [1, 3], "norm": ["passthrough"]}, cv=3)
    search.fit(X, Y)
    assert_allclose(search.cv_results_["mean_test_score"], same.fit(X, Y).cv_results_["mean_test_score"])
    assert "StreamingPipeline(steps=[('scale'" in repr(StreamingPipeline(learning()))
    passing = StreamingPipeline([("none", "passthrough"), ("pls", IncrementalPLS())])
    expected = IncrementalPLS().fit(X, Y).predict(X)
    assert_allclose(passing.fit(open_source(X, target=Y)).predict(open_source(X)), expected)
    assert_allclose(clone(passing).partial_fit(X, Y).predict(X), expected)


def test_cached_steps(tmp_path):
    model = StreamingPipeline(learning(), memory=str(tmp_path)).fit(X, Y)
    assert_allclose(model.predict(X), Pipeline(learning()).fit(X, Y).predict(X))


class Fails(TransformerMixin, BaseEstimator):
    """Learns from rows, then fails."""

    def partial_fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        if X[0, 0] < 0:
            raise ValueError("no")
        return self

    fit = partial_fit

    def transform(self, X):
        return X


def _learnt(model):
    return pickle.dumps([vars(step) for _, step in model.steps])


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_call_that_fails_changes_no_step(method):
    steps = [("scale", StandardScaler()), ("range", MinMaxScaler()), ("fails", Fails()), ("pls", IncrementalPLS(2))]
    model = StreamingPipeline(steps).fit(X, Y)
    before, own = _learnt(model), [step for _, step in model.steps]
    model.set_params(range__feature_range=(-2, -1))
    with pytest.raises(ValueError, match="no"):
        getattr(model, method)(X[:50], Y[:50])
    model.set_params(range__feature_range=(0, 1))
    with pytest.raises(ValueError, match="y has 1 target"):
        model.partial_fit(X[:50], Y[:50, 0])
    with pytest.raises(ValueError, match="no"):
        getattr(model.set_params(range__feature_range=(-2, -1)), method)(open_source(X, target=Y))
    model.set_params(range__feature_range=(0, 1))
    assert _learnt(model) == before
    assert all(step is same for (_, step), same in zip(model.steps, own, strict=True))


def test_a_step_that_changes_its_width():
    def wider_later(rows):
        return rows if rows[0, 0] != X[40, 0] else np.hstack([rows, rows])

    model = StreamingPipeline([("own", FunctionTransformer(wider_later)), ("pls", IncrementalPLS())])
    with pytest.raises(ValueError, match=r"from row 40 on, the steps before the model return 20 rows of 24 columns"):
        model.fit(open_source(X, target=Y, batch_size=20))
    model.partial_fit(X[:40], Y[:40])
    before = _learnt(StreamingPipeline(model.steps[1:]))
    with pytest.raises(ValueError, match="X has 24 features"):
        model.partial_fit(X[40:], Y[40:])
    assert _learnt(StreamingPipeline(model.steps[1:])) == before


def test_steps_that_need_all_rows():
    model = StreamingPipeline([("pca", PCA(3)), ("pls", IncrementalPLS())])
    with pytest.raises(ValueError, match=r"Step 'pca' .PCA. has no partial_fit"):
        model.fit(open_source(X, target=Y))
    with pytest.raises(ValueError, match=r"Step 'pca' .PCA. has no partial_fit"):
        model.partial_fit(X, Y)
    model.fit(X[:100], Y[:100])
    axes = model[0].components_
    model.partial_fit(X[100:], Y[100:])
    assert_array_equal(model[0].components_, axes)
    frozen = StreamingPipeline([("pca", FrozenEstimator(PCA(3).fit(X))), ("pls", IncrementalPLS())])
    expected = IncrementalPLS().fit(PCA(3).fit_transform(X), Y).coef_
    assert_allclose(frozen.fit(open_source(X, target=Y))[-1].coef_, expected, atol=1e-8)


def test_rows_that_a_step_makes_nan():
    bad = X.copy()
    bad[70] = 0.0

    @np.errstate(invalid="ignore")
    def ratio(rows):
        return rows / rows.sum(axis=1, keepdims=True)

    model = StreamingPipeline([("ratio", FunctionTransformer(ratio)), ("pls", IncrementalPLS())])
    with pytest.raises(ValueError, match=r"row 70, the steps before the model return NaN"):
        model.fit(open_source(bad, target=Y, batch_size=20))


def test_parameters_for_steps_that_learn_in_blocks():
    with pytest.raises(ValueError, match="scale__sample_weight is for a step"):
        StreamingPipeline(learning()).partial_fit(X, Y, scale__sample_weight=np.ones(150))
