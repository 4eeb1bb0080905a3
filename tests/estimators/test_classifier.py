"""IncrementalPLSClassifier against batch PLS with discriminants and argmax computed from all rows."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import subspace_angles
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from plstream import IncrementalPLS, IncrementalPLSClassifier, VIPSelector, open_source
from plstream.files import fit_source
from tests.oracles import dense_pls, relative_error
from tests.real_data import real_data


def spectra(n=240, m=30, n_classes=4, seed=0, *, apart=1.0):
    """Return smooth rows of classes that overlap, of unequal size, and their numbers."""
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, n, p=np.arange(1, n_classes + 1) / (n_classes * (n_classes + 1) / 2))
    y[:n_classes] = np.arange(n_classes)
    basis = np.cumsum(rng.normal(size=(8, m)), axis=1)
    means = apart * rng.normal(size=(n_classes, 8))
    return (means[y] + rng.normal(size=(n, 8))) @ basis + 0.5 * rng.normal(size=(n, m)) + 50, y


def one_hot(y):
    return np.eye(y.max() + 1)[y]


def batch_scores(X, y, c, *, scale=True, weight=None):
    """Return the scores of a PLS of ones and zeros, from all rows."""
    return dense_pls(X, one_hot(y), c, scale=scale, weight=weight)[4]


def posteriors(scores, y, rows, priors=None, weight=None):
    """Return the probabilities of normal distributions with one covariance, from their densities."""
    weight = np.ones(len(y)) if weight is None else weight
    classes = np.unique(y)
    counts = np.array([weight[y == k].sum() for k in classes])
    means = np.array([weight[y == k] @ scores[y == k] / counts[k] for k in classes])
    within = (scores - means[y]) * np.sqrt(weight / weight.sum())[:, None]
    priors = counts / counts.sum() if priors is None else priors
    densities = [
        prior * multivariate_normal(mean, within.T @ within).pdf(rows)
        for mean, prior in zip(means, priors, strict=True)
    ]
    return np.array(densities).T / np.sum(densities, axis=0)[:, None]


def assert_same_model(actual, expected, X, *, rtol=1e-9):
    np.testing.assert_array_equal(actual.classes_, expected.classes_)
    assert relative_error(actual.coef_, expected.coef_) < rtol
    np.testing.assert_allclose(actual.predict_proba(X), expected.predict_proba(X), rtol=0, atol=1e3 * rtol)
    np.testing.assert_allclose(actual.class_count_, expected.class_count_, rtol=1e-12)


# What it computes.


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("c", [1, 3, 6])
def test_probabilities_are_those_of_normal_distributions(solver, scale, c):
    X, y = spectra()
    model = IncrementalPLSClassifier(c, scale=scale, solver="multipass" if solver == "multipass" else "gram").fit(X, y)
    scores = batch_scores(X, y, c, scale=scale)
    expected = posteriors(scores, y, scores)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), expected.argmax(axis=1))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), expected, atol=1e-9)
    values = model.decision_function(X)
    likely = np.exp(values - values.max(axis=1, keepdims=True))
    np.testing.assert_allclose(likely / likely.sum(axis=1, keepdims=True), expected, atol=1e-9)


def test_sketch_that_loses_nothing_or_little():
    X, y = spectra(m=40)
    exact = IncrementalPLSClassifier(3).fit(X, y)
    assert_same_model(IncrementalPLSClassifier(3, solver="sketch").fit(X, y), exact, X)
    rough = IncrementalPLSClassifier(3, solver="sketch", sketch_size=6).fit(X, y)
    assert rough.retained_variance_ < 1
    assert np.mean(rough.predict(X) == exact.predict(X)) > 0.95


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore:sketch_size=")
def test_sketch_of_classes_far_apart(seed):
    """What is left within classes is a small difference of large numbers, and one of them is known about."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 5, 2000)
    X = rng.normal(size=(2000, 300)) + 3 * rng.normal(size=(5, 300))[y]
    for size in (12, 32):
        model = IncrementalPLSClassifier(10, scale=False, solver="sketch", sketch_size=size).fit(X[:1500], y[:1500])
        assert model.score(X[1500:], y[1500:]) > 0.99


def test_sketch_of_many_classes():
    """Compressions look at the leading directions of so many responses alone, and lose nothing by it."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 200, 3000)
    X = rng.normal(size=(3000, 60)) @ rng.normal(size=(60, 250)) + 3 * rng.normal(size=(200, 250))[y]
    exact, sketch = (IncrementalPLSClassifier(4, solver=solver).fit(X, y) for solver in ("gram", "sketch"))
    assert sketch.retained_variance_ < 0.99
    assert np.sin(subspace_angles(sketch.x_rotations_, exact.x_rotations_)).max() < 0.05
    assert np.mean(sketch.predict(X) == exact.predict(X)) > 0.97


@pytest.mark.parametrize(("c", "scale"), [(5, True), (9, False)])
def test_digits_as_scikit_learn(c, scale):
    X, y = load_digits(return_X_y=True)
    train = np.arange(len(y)) % 3 > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batch = PLSRegression(c, scale=scale, max_iter=10_000, tol=1e-14).fit(X[train], one_hot(y)[train])
    model = IncrementalPLSClassifier(c, scale=scale).fit(X[train], y[train])
    scores = batch.transform(X)
    discriminants = LinearDiscriminantAnalysis(solver="lsqr").fit(scores[train], y[train])
    expected = discriminants.predict_proba(scores[~train])
    probabilities = model.predict_proba(X[~train])
    np.testing.assert_allclose(probabilities, expected, atol=1e-5)
    assert log_loss(y[~train], probabilities) == pytest.approx(log_loss(y[~train], expected), abs=1e-6)
    np.testing.assert_array_equal(model.predict(X[~train]), discriminants.predict(scores[~train]))
    by_response = model.set_params(decision="regression")
    np.testing.assert_array_equal(by_response.predict(X[~train]), batch.predict(X[~train]).argmax(axis=1))


@pytest.mark.parametrize("n_classes", [3, 6])
def test_tecator(n_classes):
    """Fat in meat, in bands: discriminants of the scores are better than the largest response, the more the bands."""
    data = real_data("spectra/tecator.npz")
    X, fat = data["X"], data["Y_water_fat_protein"][:, 1]
    y = np.digitize(fat, np.quantile(fat, np.arange(1, n_classes) / n_classes))
    model = IncrementalPLSClassifier(10)
    scores = batch_scores(X, y, 10)
    batch = LinearDiscriminantAnalysis(solver="lsqr").fit(scores, y)
    np.testing.assert_allclose(clone(model).fit(X, y).predict_proba(X), batch.predict_proba(scores), atol=1e-6)
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    lda = np.mean(cross_val_predict(model, X, y, cv=folds) == y)
    argmax = np.mean(cross_val_predict(clone(model).set_params(decision="regression"), X, y, cv=folds) == y)
    assert lda > argmax + (0.03 if n_classes == 3 else 0.1)


def test_regression(solver):
    X, y = spectra()
    chosen = "multipass" if solver == "multipass" else "gram"
    model = IncrementalPLSClassifier(3, decision="regression", solver=chosen).fit(X, y)
    responses = IncrementalPLS(3).fit(X, one_hot(y)).predict(X)
    np.testing.assert_allclose(model.decision_function(X), responses, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), responses.argmax(axis=1))
    shares = np.maximum(responses, 0)
    np.testing.assert_allclose(model.predict_proba(X), shares / shares.sum(axis=1, keepdims=True), atol=1e-9)
    with pytest.raises(ValueError, match="priors require decision='lda'"):
        model.set_params(priors=[0.25] * 4).predict(X)


def test_two_classes_are_one_response():
    X, y = spectra(n_classes=2)
    model = IncrementalPLSClassifier(4).fit(X, y)
    single = IncrementalPLS(4).fit(X, 2.0 * y - 1)
    assert relative_error(model.x_weights_, single.x_weights_) < 1e-9
    np.testing.assert_allclose(model.vip_, single.vip_, rtol=1e-9)
    values = model.decision_function(X)
    assert values.shape == (240,)
    np.testing.assert_array_equal(values > 0, model.predict(X) == 1)
    odds = model.predict_log_proba(X)
    np.testing.assert_allclose(values, odds[:, 1] - odds[:, 0], atol=1e-9)
    by_response = model.set_params(decision="regression").decision_function(X)
    np.testing.assert_allclose(by_response, single.predict(X), atol=1e-9)


@pytest.mark.parametrize("decision", ["lda", "regression"])
def test_first_components(decision):
    X, y = spectra()
    model = IncrementalPLSClassifier(5, decision=decision).fit(X, y)
    for k in (1, 3):
        fewer = IncrementalPLSClassifier(k, decision=decision).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X, n_components=k), fewer.predict_proba(X), atol=1e-9)
        np.testing.assert_array_equal(model.predict(X, n_components=k), fewer.predict(X))
    with pytest.raises(ValueError, match="from 1 to the model's 5, not 6"):
        model.predict(X, n_components=6)


def test_priors():
    X, y = spectra()
    scores = batch_scores(X, y, 3)
    priors = [0.4, 0.3, 0.2, 0.1]
    model = IncrementalPLSClassifier(3, priors=priors).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), posteriors(scores, y, scores, priors), atol=1e-9)
    np.testing.assert_array_equal(model.class_prior_, priors)
    model.set_params(priors=None)
    np.testing.assert_allclose(model.class_prior_, np.bincount(y) / len(y))
    for bad, message in (
        ([0.5, 0.5], "4 number"),
        ([0.5, 0.5, 0.5, -0.5], "probabilities"),
        ([1, 1, 1, 1], "probabilities"),
        ([np.nan] * 4, "probabilities"),
    ):
        with pytest.raises(ValueError, match=message):
            model.set_params(priors=bad).predict(X)


def test_same_attributes_as_of_ones_and_zeros(solver):
    """The cross-covariance from sums of classes, in every kind of state, is that of the matrix that is not made."""
    X, y = spectra()
    weight = np.linspace(0, 2, len(y))
    solver = {"sketch": "gram"}.get(solver, solver)
    for rows in (X, sparse.csr_array(np.where(X > 50, X, 0)), np.asfortranarray(X), X.astype(np.float32)):
        model = IncrementalPLSClassifier(3, solver=solver, batch_size=50).fit(rows, y, sample_weight=weight)
        expected = IncrementalPLS(3, solver=solver).fit(rows, one_hot(y), sample_weight=weight)
        for name in ("coef_", "x_weights_", "y_loadings_", "x_loadings_", "y_mean_", "y_scale_", "vip_"):
            assert relative_error(getattr(model, name), getattr(expected, name)) < 1e-8, name
        np.testing.assert_allclose(model.y_explained_variance_ratio_, expected.y_explained_variance_ratio_, rtol=1e-8)


# Weights.


def test_weights_are_repeated_rows():
    X, y = spectra(100)
    times = np.arange(100) % 3
    weighted = IncrementalPLSClassifier(3).fit(X, y, sample_weight=times)
    repeated = IncrementalPLSClassifier(3).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_same_model(weighted, repeated, X)
    scores = batch_scores(X, y, 3, weight=times)
    root = np.sqrt(np.maximum(times, 1e-300))[:, None]
    np.testing.assert_allclose(
        weighted.predict_proba(X)[times > 0],
        posteriors((scores / root)[times > 0], y[times > 0], (scores / root)[times > 0], weight=times[times > 0]),
        atol=1e-9,
    )


def test_class_weight(solver):
    X, y = spectra()
    names = np.array(["a", "b", "c", "d"])[y]
    chosen = "gram" if solver != "multipass" else solver
    weights = {"a": 3.0, "c": 0.5}
    rows = np.linspace(0.5, 2, len(y))
    model = IncrementalPLSClassifier(3, class_weight=weights, solver=chosen).fit(X, names, sample_weight=rows)
    by_row = rows * np.array([3.0, 1.0, 0.5, 1.0])[y]
    expected = IncrementalPLSClassifier(3, solver=chosen).fit(X, names, sample_weight=by_row)
    assert_same_model(model, expected, X)
    stream = IncrementalPLSClassifier(3, class_weight=weights)
    for part in np.array_split(np.arange(len(y)), 7):
        stream.partial_fit(X[part], names[part], classes=["a", "b", "c", "d"], sample_weight=rows[part])
    assert_same_model(stream, expected, X)


def test_balanced():
    X, y = spectra()
    rows = np.linspace(0.5, 2, len(y))
    counts = np.bincount(y, rows)
    model = IncrementalPLSClassifier(3, class_weight="balanced").fit(X, y, sample_weight=rows)
    expected = IncrementalPLSClassifier(3).fit(X, y, sample_weight=rows * (counts.sum() / 4 / counts)[y])
    assert_same_model(model, expected, X)
    np.testing.assert_allclose(model.class_prior_, 0.25)
    of_source = IncrementalPLSClassifier(3, class_weight="balanced").fit(open_source(X, target=y, batch_size=50))
    expected = IncrementalPLSClassifier(3, class_weight="balanced").fit(X, y)
    assert_same_model(of_source, expected, X)
    with pytest.raises(ValueError, match="which are unknown in a stream"):
        IncrementalPLSClassifier(class_weight="balanced").partial_fit(X, y)
    with pytest.raises(ValueError, match="which are unknown in a stream"):
        IncrementalPLSClassifier(class_weight="balanced", solver="gram").fit(read_once(X, y))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({5: 1.0}, "class_weight has 5, which is not one of the classes"),
        ({0: 0.0}, "must be positive"),
        ({0: np.nan}, "must be positive"),
        ("even", "class_weight"),
    ],
)
def test_bad_class_weight(weights, message):
    X, y = spectra()
    model = IncrementalPLSClassifier(class_weight=weights)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "classes_")


# Streams.


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_chunks_order_and_merges_do_not_matter(data):
    X, y = spectra(60, 12, n_classes=3)
    whole = IncrementalPLSClassifier(3).fit(X, y)
    order = data.draw(st.permutations(range(60)))
    cuts = sorted(data.draw(st.sets(st.integers(1, 59), max_size=6)))
    parts = np.split(np.array(order), cuts)
    classes = data.draw(st.sampled_from([[0, 1, 2], None]))
    models = []
    for part in parts:
        # A part may have a single class if another one is declared.
        told = classes or sorted({*y[part].tolist(), 0, 1})
        model = IncrementalPLSClassifier(3)
        for rows in np.array_split(part, data.draw(st.integers(1, 3))):
            if len(rows):
                model.partial_fit(X[rows], y[rows], classes=told)
        models.append(model)
    while len(models) > 1:
        i = data.draw(st.integers(0, len(models) - 2))
        models[i].merge(models.pop(i + 1))
    assert_same_model(models[0], whole, X, rtol=1e-8)
    assert models[0].n_samples_seen_ == 60


LABELS = {
    "text": ["left", "right", "up"],
    "integers": [-7, 3, 2**60 + 1],
    "floats": [-1.0, 0.0, 5.0],
    "bytes": [b"a", b"b", b"c"],
    "small": np.array([1, 2, 200], dtype=np.uint8),
    "objects": np.array(["x", "y", "z"], dtype=object),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels(kind):
    X, y = spectra(90, n_classes=3)
    labels = np.asarray(LABELS[kind])[y]
    model = IncrementalPLSClassifier(3).fit(X, labels)
    assert list(model.classes_) == list(LABELS[kind])
    numbers = IncrementalPLSClassifier(3).fit(X, y)
    assert list(model.predict(X)) == list(np.asarray(LABELS[kind])[numbers.predict(X)])
    stream = IncrementalPLSClassifier(3).partial_fit(X[:5], labels[:5], classes=np.asarray(LABELS[kind]))
    stream.partial_fit(X[5:], labels[5:])
    assert list(stream.predict(X)) == list(model.predict(X))


def test_labels_may_be_booleans():
    X, y = spectra(n_classes=2)
    model = IncrementalPLSClassifier(2).fit(X, y == 1)
    assert model.predict(X).dtype == bool
    np.testing.assert_array_equal(model.predict(X), IncrementalPLSClassifier(2).fit(X, y).predict(X) == 1)


@pytest.mark.parametrize("solver", ["gram", "sketch"])
@pytest.mark.parametrize("at_first", [20, 1500])
def test_added_class(solver, at_first):
    """As if it had been told at once, with rows that wait and without."""
    X, y = spectra(2000, n_classes=4)
    names = np.array(["b", "a", "d", "c"])[y]
    early = np.flatnonzero(y < 2)[:at_first]
    late = np.setdiff1d(np.arange(2000), early)
    told = IncrementalPLSClassifier(3, solver=solver).partial_fit(X[early], names[early], classes=list("abcd"))
    model = IncrementalPLSClassifier(3, solver=solver).partial_fit(X[early], names[early])
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match=r"Label [cd] is not among .* or call add_class"):
        model.partial_fit(X[late], names[late])
    assert model.add_class("d").add_class("c") is model
    np.testing.assert_allclose(model.predict_proba(X), np.column_stack([before, np.zeros((2000, 2))]), atol=1e-9)
    model.partial_fit(X[late], names[late])
    assert_same_model(model, told.partial_fit(X[late], names[late]), X)
    # The first list is still right, and one with more is not.
    model.partial_fit(X[:1], names[:1], classes=["a", "b"])
    with pytest.raises(ValueError, match="e is not among the classes of the first call: call add_class"):
        model.partial_fit(X[:1], names[:1], classes=["a", "e"])


def test_classes_that_cannot_be_added():
    X, y = spectra(n_classes=2)
    model = IncrementalPLSClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="1 is a class already"):
        model.add_class(1)
    with pytest.raises(ValueError, match="Labels are integers, but 'two' is not"):
        model.add_class("two")
    with pytest.raises(NotFittedError):
        IncrementalPLSClassifier().add_class(2)
    assert list(model.classes_) == [0, 1]


def test_integers_stay_integers():
    """Those with and without a sign have no common type but floats, in which large ones are the same."""
    X, y = spectra(n_classes=3)
    large = y.astype(np.uint64) + np.uint64(2**63)
    model = IncrementalPLSClassifier(2).partial_fit(X, large).add_class(7)
    assert model.classes_.tolist() == [7, 2**63, 2**63 + 1, 2**63 + 2]
    np.testing.assert_array_equal(model.predict(X), IncrementalPLSClassifier(2).fit(X, large).predict(X))
    model = IncrementalPLSClassifier(2).partial_fit(X, y)
    model.merge(IncrementalPLSClassifier(2).partial_fit(X, y.astype(np.uint64)))
    assert model.classes_.dtype.kind == "i"
    with pytest.raises(ValueError, match="No integer type holds both -1 and"):
        IncrementalPLSClassifier(2).partial_fit(X, large).add_class(-1)


@pytest.mark.parametrize("solver", ["gram", "sketch"])
def test_forgetting_is_explicit_weights(solver):
    X, y = spectra(120, 12)
    explicit = IncrementalPLSClassifier(3, solver=solver).fit(X, y, sample_weight=0.98 ** np.arange(119, -1, -1))
    model = IncrementalPLSClassifier(3, solver=solver, forgetting=0.98).fit(X, y)
    stream = IncrementalPLSClassifier(3, forgetting=0.98)
    for start in range(0, 120, 17):
        stream.partial_fit(X[start : start + 17], y[start : start + 17], classes=range(4))
    parts = [
        IncrementalPLSClassifier(3, solver="gram", forgetting=0.98).partial_fit(X[i], y[i], classes=range(4))
        for i in (slice(70), slice(70, 120))
    ]
    for other in (model, stream, parts[0].merge(parts[1], later=True)):
        np.testing.assert_allclose(other.class_count_, explicit.class_count_, rtol=1e-9)
        np.testing.assert_allclose(other.predict_proba(X), explicit.predict_proba(X), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("solver", ["gram", "sketch"])
def test_merge_of_models_with_other_classes(solver):
    X, y = spectra(300, n_classes=5)
    parts = [np.flatnonzero(np.isin(y, classes)) for classes in ([0, 3], [1, 2, 4])]
    one, other = (IncrementalPLSClassifier(3, solver=solver).partial_fit(X[rows], y[rows]) for rows in parts)
    theirs = other.predict_proba(X)
    one.merge(other)
    order = np.concatenate(parts)
    assert_same_model(one, IncrementalPLSClassifier(3, solver=solver).partial_fit(X[order], y[order]), X)
    np.testing.assert_array_equal(other.predict_proba(X), theirs)
    assert list(other.classes_) == [1, 2, 4]


def test_merge_of_unlike_models_is_refused():
    X, y = spectra()
    model = IncrementalPLSClassifier(2).partial_fit(X, y)
    before = model.predict_proba(X)
    for word, other in {
        "n_components": IncrementalPLSClassifier(3).partial_fit(X, y),
        "type of labels": IncrementalPLSClassifier(2).partial_fit(X, y.astype(str)),
        "n_features_in_": IncrementalPLSClassifier(2).partial_fit(X[:, 1:], y),
    }.items():
        with pytest.raises(ValueError, match=word):
            model.merge(other)
    with pytest.raises(TypeError, match="IncrementalPLSClassifier can be merged, not IncrementalPLS"):
        model.merge(IncrementalPLS().partial_fit(X, y))
    with pytest.raises(NotFittedError):
        model.merge(IncrementalPLSClassifier(2))
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_class_without_rows_is_never_predicted():
    X, y = spectra(n_classes=2)
    for decision in ("lda", "regression"):
        model = IncrementalPLSClassifier(decision=decision).partial_fit(X, y, classes=[0, 1, 2])
        assert {*model.predict(X)} <= {0, 1}
        np.testing.assert_array_equal(model.predict_proba(X)[:, 2] > 0, False)
    model = IncrementalPLSClassifier(priors=[0.1, 0.1, 0.8]).partial_fit(X, y, classes=[0, 1, 2])
    assert {*model.predict(X)} <= {0, 1}
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    with pytest.raises(ValueError, match="priors are zero for all classes that have rows"):
        model.set_params(priors=[0, 0, 1]).predict_proba(X)


def test_one_class_so_far():
    X, y = spectra(n_classes=2)
    model = IncrementalPLSClassifier().partial_fit(X[y == 0], y[y == 0], classes=[0, 1])
    with pytest.warns(UserWarning, match="only 0 component"):
        np.testing.assert_array_equal(model.predict(X), 0)
    np.testing.assert_array_equal(model.predict_proba(X), [[1, 0]] * len(X))
    model.partial_fit(X[y == 1], y[y == 1])
    assert_same_model(model, IncrementalPLSClassifier().fit(X, y), X)
    with pytest.raises(ValueError, match=r"only one class, 0: .* or all labels as classes="):
        IncrementalPLSClassifier().partial_fit(X[y == 0], y[y == 0])


def test_pickle_during_a_stream():
    X, y = spectra()
    model = IncrementalPLSClassifier().partial_fit(X[:50], y[:50])
    twin = pickle.loads(pickle.dumps(model))  # noqa: S301
    for each in (model, twin):
        each.add_class(9).partial_fit(X[50:], y[50:])
    np.testing.assert_array_equal(twin.predict_proba(X), model.predict_proba(X))


# Sources.


def read_once(X, y):
    """Return a source that can be read only once, of text and numbers."""
    return open_source((X[i : i + 20], y[i : i + 20]) for i in range(0, len(X), 20))


def test_sources_with_text(tmp_path):
    X, y = spectra()
    names = np.array(["rye", "oat", "barley", "wheat"])[y]
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", names)
    columns = [f"x{j}" for j in range(X.shape[1])]
    lines = [",".join([*map(repr, row), name]) for row, name in zip(X.tolist(), names, strict=True)]
    (tmp_path / "data.csv").write_text("\n".join([",".join([*columns, "kind"]), *lines]))
    expected = IncrementalPLSClassifier(3).fit(X, names)
    sources = {
        "mapped": lambda: open_source(tmp_path / "X.npy", target=tmp_path / "y.npy", batch_size=50),
        "text": lambda: open_source(tmp_path / "data.csv", target="kind", batch_size=50),
    }
    for name, source in sources.items():
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* names of features")
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            for model in (
                IncrementalPLSClassifier(3).fit(source()),
                IncrementalPLSClassifier(3, solver="gram").fit(source()),
                IncrementalPLSClassifier(3, solver="sketch").fit(source()),
                IncrementalPLSClassifier(3).partial_fit(source()),
                fit_source(IncrementalPLSClassifier(3), source(), one_pass=True),
                fit_source(IncrementalPLSClassifier(3), source(), checkpoint=tmp_path / f"{name}-checkpoints"),
            ):
                assert_same_model(model, expected, X)
                np.testing.assert_array_equal(model.predict(source()), expected.predict(X))
                np.testing.assert_allclose(model.predict_proba(source()), expected.predict_proba(X), atol=1e-8)


def test_classes_missing_from_a_source():
    X, y = spectra(n_classes=3)
    source = open_source(X, target=y, batch_size=50)
    for one_pass in (False, True):
        model = fit_source(IncrementalPLSClassifier(), source, classes=[0, 1, 2, 3], one_pass=one_pass)
        assert list(model.classes_) == [0, 1, 2, 3]
        assert model.class_count_[3] == 0
    with pytest.raises(ValueError, match="Label 2 is not among the classes"):
        fit_source(IncrementalPLSClassifier(), source, classes=[0, 1])


def test_source_that_can_be_read_only_once():
    X, y = spectra(n_classes=2)
    with pytest.raises(ValueError, match="can be read only once"):
        IncrementalPLSClassifier(solver="multipass").fit(read_once(X, y))
    for solver in ("auto", "gram"):
        model = IncrementalPLSClassifier(solver=solver).fit(read_once(X, y))
        assert_same_model(model, IncrementalPLSClassifier().fit(X, y), X)


# Hostile data.


@pytest.mark.parametrize("unit", [1e-150, 1e150])
@pytest.mark.parametrize("solver", ["multipass", "gram", "sketch"])
def test_any_unit(unit, solver):
    X, y = spectra()
    scaled = IncrementalPLSClassifier(3, solver=solver).fit(X * unit, y)
    np.testing.assert_allclose(
        scaled.predict_proba(X * unit), IncrementalPLSClassifier(3).fit(X, y).predict_proba(X), atol=1e-6
    )


@pytest.mark.parametrize("large", [False, True])
def test_data_far_from_zero(large, monkeypatch):
    if large:
        monkeypatch.setattr("plstream.rows.blocks.SMALL_BYTES", 0)
    X, y = spectra()
    X = np.round(X * 64) / 64
    near = IncrementalPLSClassifier(3).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(IncrementalPLSClassifier(3).fit(X + 1e8, y).predict_proba(X + 1e8), near, atol=1e-5)
    stream = IncrementalPLSClassifier(3)
    for i in range(len(X)):
        stream.partial_fit(X[i : i + 1] + 1e8, y[i : i + 1], classes=range(4))
    np.testing.assert_allclose(stream.predict_proba(X + 1e8), near, atol=1e-5)


def test_first_row_far_off(monkeypatch):
    """Sums of classes are taken about a row, and that one may be an outlier."""
    monkeypatch.setattr("plstream.rows.blocks.SMALL_BYTES", 0)
    X, y = spectra()
    X[0] += 1e6
    model = IncrementalPLSClassifier(3).fit(X, y)
    coefficients = dense_pls(X, one_hot(y), 3)[0].T
    assert relative_error(model.coef_, coefficients) < 1e-9


def test_constant_and_repeated_columns():
    X, y = spectra()
    wide = np.column_stack([np.full(len(X), 7.0), X, X[:, :3]])
    model = IncrementalPLSClassifier(3).fit(wide, y)
    scores = batch_scores(wide[:, 1:], y, 3)
    np.testing.assert_allclose(model.predict_proba(wide), posteriors(scores, y, scores), atol=1e-9)
    assert not model.coef_[:, 0].any()


def test_rows_that_classes_determine():
    """Nothing varies within classes, and all is of rank two."""
    y = np.arange(30) % 3
    X = np.array([[1.0, 0, 0, 2], [0, 1, 0, 2], [0, 0, 1, 2]])[y]
    with pytest.warns(UserWarning, match="only 2 component"):
        model = IncrementalPLSClassifier(3).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_more_features_than_rows():
    X, y = spectra(20, 50, n_classes=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for solver in ("multipass", "gram", "sketch"):
            model = IncrementalPLSClassifier(10, solver=solver).fit(X, y)
            assert model.score(X, y) == 1
            assert np.isfinite(model.predict_proba(X)).all()


def test_bad_data():
    X, y = spectra()
    bad = X.copy()
    bad[3, 2] = np.nan
    model = IncrementalPLSClassifier(2).partial_fit(X, y)
    before = model.predict_proba(X)
    for rows, labels, message in (
        (bad, y, r"X contains NaN \(first in row 3, column 2\)"),
        (X, y[1:], "inconsistent numbers of samples"),
        (X, np.where(y == 1, np.nan, y), "y contains NaN|use one type"),
        (X, y.astype(str), "Labels were integers in the first call, but are strings now"),
        (X, y + 0.5, "use one type"),
        (X, np.column_stack([y, y]), "1d array"),
        (X, None, "requires y"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(rows, labels)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    for labels, message in (
        (y + 0.5, "Unknown label type"),
        (np.where(y == 1, np.inf, y), "infinity"),
        (np.zeros(len(y)), "one class"),
    ):
        with pytest.raises(ValueError, match=message):
            IncrementalPLSClassifier().fit(X, labels)


# What goes with it.


def test_selector():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 12))
    y = np.digitize(X[:, 3] - X[:, 8] + 0.1 * rng.normal(size=600), [-0.5, 0.5])
    labels = np.array(["low", "middle", "high"])[y]
    selector = VIPSelector(IncrementalPLSClassifier())
    np.testing.assert_array_equal(selector.fit(X, labels).get_support(indices=True), [3, 8])
    stream = VIPSelector(IncrementalPLSClassifier(), n_features_to_select=2)
    for start in range(0, 600, 60):
        rows = slice(start, start + 60)
        stream.partial_fit(X[rows], labels[rows], classes=["low", "middle", "high"])
    np.testing.assert_array_equal(stream.get_support(indices=True), [3, 8])


def test_names_and_output():
    pandas = pytest.importorskip("pandas")
    X, y = spectra(m=5)
    frame = pandas.DataFrame(X, columns=list("abcde"))
    model = IncrementalPLSClassifier(2).set_output(transform="pandas").fit(frame, y)
    scores = model.transform(frame)
    assert list(scores.columns) == ["incrementalplsclassifier0", "incrementalplsclassifier1"]
    assert list(model.feature_names_in_) == list("abcde")


@pytest.mark.parametrize("solver", ["gram", "sketch"])
def test_memory_usage_is_a_bound(solver):
    X, y = spectra(3000, 60, n_classes=50)
    model = IncrementalPLSClassifier(3, solver=solver).fit(X, y)
    assert model._fitted.stream.nbytes < model.memory_usage(60, 50)


def test_many_classes_are_no_matrix():
    """Labels of 5,000 classes as ones and zeros would take 240 MB."""
    import tracemalloc

    rng = np.random.default_rng(0)
    y = np.arange(6000) % 5000
    X = rng.normal(size=(6000, 4))
    IncrementalPLSClassifier(2).fit(X[:20], y[:20] % 3)
    tracemalloc.start()
    IncrementalPLSClassifier(2).fit(X, y)
    stream = IncrementalPLSClassifier(2)
    for start in range(0, 6000, 500):
        stream.partial_fit(X[start : start + 500], y[start : start + 500], classes=range(5000))
    assert tracemalloc.get_traced_memory()[1] < 60e6
    tracemalloc.stop()
