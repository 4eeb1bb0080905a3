"""IncrementalLDA against scikit-learn's, against plain loops, and its regression against exact LDA."""

import numpy as np
import pytest
from scipy import linalg, sparse
from scipy.special import log_expit, log_softmax
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict

from plstream import IncrementalLDA, open_source, save

SOLVERS = ["scatter", "covariance-free"]


def gaussian_classes(seed, n, m=8, n_classes=4, *, spread=5.0):
    """Classes of unequal sizes whose noise is far from spherical."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(m, m)))[0]
    means = 2 * rng.normal(size=(n_classes, m))
    shares = np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum()
    y = rng.choice(n_classes, size=n, p=shares)
    return means[y] + rng.normal(size=(n, m)) * np.geomspace(spread, 1, m) @ axes, y


def fed(model, X, y, sizes):
    start, sizes = 0, list(sizes)
    while start < len(y):
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        model.partial_fit(X[start : start + size], y[start : start + size], classes=np.unique(y))
        start += size
    return model


def largest_angle(A, B):
    return np.degrees(linalg.subspace_angles(A, B).max())


def scatter_loop(X, y, n_classes):
    """Return the means of the classes and the scatter within them, one row at a time (Welford)."""
    counts, means, scatter = np.zeros(n_classes), np.zeros((n_classes, X.shape[1])), np.zeros((X.shape[1],) * 2)
    for x, k in zip(X, y, strict=True):
        counts[k] += 1
        before = x - means[k]
        means[k] += before / counts[k]
        scatter += np.outer(before, x - means[k])
    return counts, means, scatter


def fisher(counts, means, scatter, *, shrinkage=0.0):
    """Return discriminants and ratios by a dense generalised eigenproblem."""
    n, m = counts.sum(), len(scatter)
    within = (1 - shrinkage) * scatter / n + shrinkage * np.trace(scatter) / n / m * np.eye(m)
    centred = means - counts @ means / n
    between = (centred.T * counts / n) @ centred
    ratios, vectors = linalg.eigh(between, within)
    c = min(m, len(counts) - 1)
    return vectors[:, ::-1][:, :c], ratios[::-1][:c]


def regression_loop(X, y, *, eta):
    """Averaged least mean squares of y of -1 and +1 on features in units of their deviations so far."""
    coefficients, averages, lengths = np.zeros(X.shape[1]), [], []
    for n in range(2, len(X) + 1):
        z = (X[n - 1] - X[:n].mean(axis=0)) / X[:n].std(axis=0)
        lengths.append(z @ z)
        error = y[n - 1] - y[:n].mean() - z @ coefficients
        coefficients = coefficients + eta * error * z / max(np.mean(lengths), eta * lengths[-1])
        averages.append(coefficients)
    weights = np.arange(1, len(averages) + 1)
    return weights @ np.array(averages) / weights.sum() / X.std(axis=0)


# ------------------------------------------------------------------------------------------------- exact


@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
@pytest.mark.parametrize("sizes", [[1000], [13]])
def test_equals_sklearn(load, sizes):
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order][:1000], y[order][:1000]
    X = X[:, X.std(axis=0) > 0.5] if load is load_digits else X
    model, expected = fed(IncrementalLDA(), X, y, sizes), LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    c = len(np.unique(y)) - 1
    assert model.scalings_.shape == (X.shape[1], min(c, X.shape[1]))
    assert largest_angle(model.scalings_, expected.scalings_[:, :c]) < 1e-8
    np.testing.assert_allclose(np.abs(model.scalings_), np.abs(expected.scalings_[:, :c]), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.explained_variance_ratio_, expected.explained_variance_ratio_, rtol=1e-8)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    np.testing.assert_allclose(model.means_, expected.means_, rtol=1e-12)
    np.testing.assert_allclose(model.priors_, expected.priors_, rtol=1e-12)
    np.testing.assert_allclose(model.xbar_, X.mean(axis=0), rtol=1e-12)
    by_svd = LinearDiscriminantAnalysis(solver="svd").fit(X, y)
    assert largest_angle(model.scalings_, by_svd.scalings_) < 1e-8
    assert model.score(X, y) == pytest.approx(by_svd.score(X, y), abs=0.002)


@pytest.mark.parametrize("sizes", [[1], [7], [1, 299, 1], [600]])
def test_scatter_equals_a_plain_loop(sizes):
    X, y = gaussian_classes(0, 600)
    model = fed(IncrementalLDA(), X, y, sizes)
    vectors, ratios = fisher(*scatter_loop(X, y, 4))
    vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), range(3)])
    np.testing.assert_allclose(model.scalings_, vectors, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.explained_variance_ratio_, ratios / ratios.sum(), rtol=1e-10)
    np.testing.assert_allclose(model.transform(X), (X - X.mean(axis=0)) @ vectors, rtol=0, atol=1e-9)
    assert model.n_components_ == 3
    assert model.solver_ == "scatter"


def test_scores_are_white_within_classes():
    X, y = gaussian_classes(1, 400)
    scores = IncrementalLDA().fit_transform(X, y)
    residuals = scores - np.array([scores[y == k].mean(axis=0) for k in range(4)])[y]
    np.testing.assert_allclose(residuals.T @ residuals / 400, np.eye(3), atol=1e-10)


@pytest.mark.parametrize("shrinkage", [0.0, 1e-3, 0.3, 1.0])
def test_shrinkage(shrinkage):
    X, y = gaussian_classes(2, 300)
    model = IncrementalLDA(shrinkage=shrinkage).fit(X, y)
    vectors, _ = fisher(*scatter_loop(X, y, 4), shrinkage=shrinkage)
    assert largest_angle(model.scalings_, vectors) < 1e-8
    new, _ = gaussian_classes(3, 2000)
    for solver in ("eigen", "lsqr"):
        expected = LinearDiscriminantAnalysis(solver=solver, shrinkage=shrinkage).fit(X, y)
        np.testing.assert_array_equal(model.predict(new), expected.predict(new))


def test_shrinkage_with_fewer_rows_than_features_equals_sklearn():
    X, y = gaussian_classes(4, 60, 100)
    new, _ = gaussian_classes(5, 500, 100)
    model = IncrementalLDA(shrinkage=0.1).fit(X, y)
    expected = LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.1).fit(X, y)
    np.testing.assert_array_equal(model.predict(new), expected.predict(new))


@pytest.mark.parametrize("solver", ["eigen", "lsqr"])
@pytest.mark.parametrize("shrinkage", [None, 1e-3, 0.3, 1.0])
@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_probabilities_and_decision_scores_equal_sklearn(n_classes, shrinkage, solver):
    X, y = gaussian_classes(19, 400, n_classes=n_classes)
    names = np.array(list("gfedcba"))[y]
    new, _ = gaussian_classes(20, 300, n_classes=n_classes, spread=20)
    model = fed(IncrementalLDA(shrinkage=shrinkage), X, names, [1, 130, 40])
    expected = LinearDiscriminantAnalysis(solver=solver, shrinkage=shrinkage).fit(X, names)
    np.testing.assert_array_equal(model.classes_, expected.classes_)
    np.testing.assert_array_equal(model.predict(new), expected.predict(new))
    np.testing.assert_allclose(model.predict_proba(new), expected.predict_proba(new), rtol=0, atol=1e-10)
    values, theirs = model.decision_function(new), expected.decision_function(new)
    # Those of scikit-learn's predict_log_proba are logarithms of what has been rounded before.
    logarithms = np.stack([log_expit(-theirs), log_expit(theirs)], 1) if n_classes == 2 else log_softmax(theirs, axis=1)
    np.testing.assert_allclose(model.predict_log_proba(new), logarithms, rtol=1e-8, atol=1e-8)
    assert values.shape == theirs.shape
    if n_classes > 2:
        # Scores may differ by a constant per row, as they do between scikit-learn's solvers.
        values, theirs = (scores - scores.mean(axis=1, keepdims=True) for scores in (values, theirs))
    np.testing.assert_allclose(values, theirs, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("solver", ["eigen", "lsqr"])
def test_priors_equal_sklearn_where_all_classes_have_one_covariance(n_classes, solver):
    """scikit-learn weighs the covariances of the classes by priors, which changes nothing if they are equal."""
    rng = np.random.default_rng(21)
    deviations, means = rng.normal(size=(30, 5)) @ rng.normal(size=(5, 5)), 2 * rng.normal(size=(n_classes, 5))
    X = np.concatenate([np.tile(deviations - deviations.mean(axis=0), (k + 1, 1)) + means[k] for k in range(n_classes)])
    y = np.repeat(np.arange(n_classes), 30 * np.arange(1, n_classes + 1))
    priors = np.arange(n_classes, 0, -1) / np.arange(n_classes + 1).sum()
    new = 3 * rng.normal(size=(200, 5))
    model = IncrementalLDA(priors=priors).fit(X, y)
    expected = LinearDiscriminantAnalysis(solver=solver, priors=priors).fit(X, y)
    np.testing.assert_array_equal(model.priors_, priors)
    np.testing.assert_allclose(model.predict_proba(new), expected.predict_proba(new), rtol=0, atol=1e-10)
    np.testing.assert_array_equal(model.predict(new), expected.predict(new))
    if n_classes == 2:
        np.testing.assert_allclose(model.decision_function(new), expected.decision_function(new), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_priors_change_the_decision_alone(solver):
    X, y = gaussian_classes(22, 500)
    new, _ = gaussian_classes(23, 200)
    priors = [0.1, 0.2, 0.4, 0.3]
    model, plain = IncrementalLDA(solver=solver, priors=priors).fit(X, y), IncrementalLDA(solver=solver).fit(X, y)
    np.testing.assert_array_equal(model.transform(new), plain.transform(new))
    np.testing.assert_array_equal(plain.priors_, np.bincount(y) / 500)
    weighted = plain.predict_proba(new) * priors / plain.priors_
    expected = weighted / weighted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(new), expected, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(new), expected.argmax(axis=1))
    # They can be changed at any time, also to an array, and training continues.
    later = plain.set_params(priors=np.array(priors)).partial_fit(new, np.zeros(200, dtype=int))
    model.partial_fit(new, np.zeros(200, dtype=int))
    np.testing.assert_array_equal(later.predict_proba(X), model.predict_proba(X))
    np.testing.assert_allclose(later.set_params(priors=None).priors_, (np.bincount(y) + np.array([200, 0, 0, 0])) / 700)


BAD_PRIORS = [
    ([0.5, 0.5], r"priors must be 4 numbers, one per class, not of shape \(2,\)"),
    ([[0.25] * 4], "not of shape"),
    ([0.5, 0.5, 0.5, -0.5], "probabilities: zero or more, with a sum of one"),
    ([1, 1, 1, 1], "with a sum of one"),
    ([np.nan] * 4, "probabilities"),
    ("even", "'priors' parameter"),
]


@pytest.mark.parametrize(("priors", "message"), BAD_PRIORS)
def test_bad_priors(priors, message):
    X, y = gaussian_classes(24, 100)
    for method in ("fit", "partial_fit"):
        model = IncrementalLDA(priors=priors)
        with pytest.raises(ValueError, match=message):
            getattr(model, method)(X, y)
        with pytest.raises(NotFittedError):
            model.predict(X)
    fitted = IncrementalLDA().fit(X, y).set_params(priors=priors)
    with pytest.raises(ValueError, match=message if priors != "even" else "convert"):
        fitted.predict_proba(X)
    fitted.set_params(priors=None).predict_proba(X)


def test_fewer_components():
    X, y = gaussian_classes(0, 300)
    all_of_them, first = IncrementalLDA().fit(X, y), IncrementalLDA(1).fit(X, y)
    np.testing.assert_array_equal(first.scalings_, all_of_them.scalings_[:, :1])
    np.testing.assert_array_equal(first.explained_variance_ratio_, all_of_them.explained_variance_ratio_[:1])
    assert first.transform(X).shape == (300, 1)


def test_singular_scatter_puts_rows_of_a_class_on_one_point():
    X, y = gaussian_classes(6, 40, 100)
    model = fed(IncrementalLDA(), X, y, [7])
    scores = model.transform(X)
    means = np.array([scores[y == k].mean(axis=0) for k in range(4)])
    assert np.abs(scores - means[y]).max() < 1e-3 * np.abs(means[:, None] - means).max(axis=(0, 1)).min()
    assert model.score(X, y) == 1.0
    assert model.n_components_ == 3
    whole = IncrementalLDA().fit(X, y)
    np.testing.assert_allclose(scores, whole.transform(X), rtol=0, atol=1e-6 * np.abs(scores).max())


def test_feature_that_is_constant_within_classes_comes_first():
    X, y = gaussian_classes(7, 300)
    X[:, 3] = np.array([0.1, 0.7, -0.4, 0.3])[y] + 1e3
    model = fed(IncrementalLDA(), X, y, [11])
    assert np.abs(model.transform(X)[:, 0] / np.abs(model.scalings_[3, 0]) - (X[:, 3] - X[:, 3].mean())).max() < 1e-3
    assert model.score(X, y) == 1.0


def test_collinear_and_constant_columns_change_nothing():
    X, y = gaussian_classes(8, 400)
    expected = IncrementalLDA().fit(X, y).transform(X)
    hostile = np.column_stack([X, X[:, 0], X[:, 1] + X[:, 2], np.full(400, 1e8), np.zeros(400)])
    model = fed(IncrementalLDA(), hostile, y, [23])
    assert largest_angle(model.transform(hostile), expected) < 1e-5
    assert model.n_components_ == 3


# --------------------------------------------------------------------------------------- covariance-free


@pytest.mark.parametrize("sizes", [[1], [7], [1, 99, 1], [200]])
def test_regression_equals_a_plain_loop(sizes):
    X, y = gaussian_classes(9, 200, n_classes=3)
    two = (y > 1).astype(int)
    model = fed(IncrementalLDA(solver="covariance-free", eta=0.4), X, two, sizes)
    direction = regression_loop(X, 2.0 * two - 1, eta=0.4)
    cosine = direction @ model.scalings_[:, 0] / np.linalg.norm(direction) / np.linalg.norm(model.scalings_)
    assert abs(abs(cosine) - 1) < 1e-10
    # The scale is that of r = D'G for D and G of the indicators, see the derivation in the code.
    priors = np.bincount(two) / 200
    D = np.sqrt(priors) * (np.array([X[two == k].mean(axis=0) for k in (0, 1)]) - X.mean(axis=0)).T
    G = np.outer(direction / 2, np.array([-1, 1]) / np.sqrt(priors))
    r = np.linalg.norm(D.T @ G, 2)
    scale = np.linalg.norm(G, 2) / np.sqrt(r * (1 - r))
    np.testing.assert_allclose(np.linalg.norm(model.scalings_), scale, rtol=1e-10)

    model = fed(IncrementalLDA(solver="covariance-free", eta=0.4), X, y, sizes)
    directions = np.array([regression_loop(X, np.where(y == k, 1.0, -1.0), eta=0.4) for k in range(3)]).T
    assert largest_angle(model.scalings_, linalg.orth(directions, rcond=1e-8)) < 1e-6


@pytest.mark.parametrize("n_classes", [2, 4])
def test_regression_approaches_exact_lda(n_classes):
    X, y = gaussian_classes(10, 60_000, n_classes=n_classes)
    exact = IncrementalLDA(solver="scatter").fit(X, y)
    angles, model = [], IncrementalLDA(solver="covariance-free")
    for start, end in [(0, 200), (200, 3_000), (3_000, 60_000)]:
        model.partial_fit(X[start:end], y[start:end], classes=range(n_classes))
        angles.append(largest_angle(model.scalings_, exact.scalings_))
    assert angles[0] > angles[1] > angles[2]
    assert angles[2] < 1.5
    new, labels = gaussian_classes(10, 65_000, n_classes=n_classes)
    assert model.score(new[60_000:], labels[60_000:]) > exact.score(new[60_000:], labels[60_000:]) - 0.01
    np.testing.assert_allclose(model.explained_variance_ratio_, exact.explained_variance_ratio_, atol=0.02)
    np.testing.assert_allclose(model.means_, exact.means_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(model.priors_, exact.priors_, rtol=1e-12)
    np.testing.assert_allclose(
        np.linalg.norm(model.scalings_, axis=0), np.linalg.norm(exact.scalings_, axis=0), rtol=0.1
    )


def test_auto_decides_by_the_number_of_features():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2049)), np.arange(20) % 2
    assert IncrementalLDA().fit(X, y).solver_ == "covariance-free"
    assert IncrementalLDA().fit(X[:, :2048], y).solver_ == "scatter"
    with pytest.raises(ValueError, match="shrinkage requires the scatter"):
        IncrementalLDA(shrinkage=0.1).fit(X, y)


# ------------------------------------------------------------------------------------------------- both


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("factor", [1e150, 1e-150, -3.0])
def test_units_do_not_matter(solver, factor):
    X, y = gaussian_classes(11, 300)
    expected = IncrementalLDA(solver=solver).fit(X, y)
    model = fed(IncrementalLDA(solver=solver), factor * X, y, [17])
    np.testing.assert_allclose(np.abs(model.transform(factor * X)), np.abs(expected.transform(X)), rtol=0, atol=1e-8)
    np.testing.assert_array_equal(model.predict(factor * X), expected.predict(X))


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_large_mean_does_not_matter(solver):
    X, y = gaussian_classes(12, 300)
    X = np.round(X * 2**10) / 2**10
    expected = IncrementalLDA(solver=solver).fit(X, y)
    model = fed(IncrementalLDA(solver=solver), X + 2.0**27, y, [17])
    np.testing.assert_allclose(model.transform(X + 2.0**27), expected.transform(X), rtol=0, atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_class_prefix(solver):
    X, y = gaussian_classes(13, 300)
    order = np.argsort(y, kind="stable")
    X, names = X[order], np.array(["a", "b", "c", "d"])[y[order]]
    model = IncrementalLDA(solver=solver)
    with pytest.raises(ValueError, match="only one class"):
        model.partial_fit(X[:20], names[:20])
    model.partial_fit(X[:20], names[:20], classes=["a", "b", "c", "d"])
    with pytest.warns(UserWarning, match="only 0 of 3"):
        assert not model.transform(X).any()
    assert set(model.predict(X)) == {"a"}
    np.testing.assert_array_equal(model.priors_, [1, 0, 0, 0])
    np.testing.assert_array_equal(model.means_, [model.xbar_] * 4)
    n_two = (y < 2).sum()
    model.partial_fit(X[20:n_two], names[20:n_two])
    with pytest.warns(UserWarning, match="only 1 of 3"):
        assert np.isfinite(model.transform(X)).all()
    assert set(model.predict(X)) <= {"a", "b"}
    model.partial_fit(X[n_two:], names[n_two:])
    assert np.isfinite(model.transform(X)).all()
    assert model.n_components_ == 3


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_components", [1, 3])
def test_probabilities_are_those_of_normal_distributions_of_all_scores(solver, n_components):
    X, y = gaussian_classes(25, 300)
    model = IncrementalLDA(n_components, solver=solver).fit(X, y)
    of_all = IncrementalLDA(solver=solver).fit(X, y)
    scores, centres = of_all.transform(X), (of_all.means_ - of_all.xbar_) @ of_all.scalings_
    densities = [p * multivariate_normal(c).pdf(scores) for p, c in zip(of_all.priors_, centres, strict=True)]
    expected = np.array(densities).T / np.sum(densities, axis=0)[:, None]
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(model.predict(X), expected.argmax(axis=1))
    values = model.decision_function(X)
    np.testing.assert_allclose(np.diff(values, axis=1), np.diff(model.predict_log_proba(X), axis=1), atol=1e-10)


def test_probabilities_without_a_covariance_approach_the_exact_ones():
    X, y = gaussian_classes(26, 40_000)
    new, labels = X[30_000:], y[30_000:]
    exact = log_loss(labels, IncrementalLDA(solver="scatter").fit(X[:30_000], y[:30_000]).predict_proba(new))
    losses, model = [], IncrementalLDA(solver="covariance-free")
    for rows in (slice(300), slice(300, 3_000), slice(3_000, 30_000)):
        probabilities = model.partial_fit(X[rows], y[rows], classes=range(4)).predict_proba(new)
        losses.append(log_loss(labels, probabilities))
    assert losses[0] > losses[1] > losses[2]
    assert losses[2] < exact + 0.01


@pytest.mark.parametrize("solver", SOLVERS)
def test_class_without_rows_has_no_probability(solver):
    X, y = gaussian_classes(27, 200, n_classes=3)
    model = IncrementalLDA(solver=solver).partial_fit(X, y, classes=[0, 1, 2, 3])
    with pytest.warns(UserWarning, match="only 2 of 3"):
        probabilities = model.predict_proba(X)
    plain = IncrementalLDA(solver=solver).fit(X, y)
    np.testing.assert_allclose(probabilities[:, :3], plain.predict_proba(X), rtol=0, atol=1e-10)
    np.testing.assert_array_equal(probabilities[:, 3], 0.0)
    np.testing.assert_array_equal(model.predict_log_proba(X)[:, 3], -np.inf)
    model.set_params(priors=[0.1, 0.1, 0.1, 0.7])
    np.testing.assert_allclose(
        model.predict_proba(X)[:, :3], plain.set_params(priors=[1 / 3] * 3).predict_proba(X), atol=1e-10
    )
    with pytest.raises(ValueError, match="priors are zero for all classes that have rows"):
        model.set_params(priors=[0, 0, 0, 1]).predict(X)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba", "decision_function"])
def test_decisions_for_sources_sparse_rows_and_float32(method):
    X, y = gaussian_classes(28, 200)
    X = np.round(X)
    model = IncrementalLDA().fit(X, y)
    expected = getattr(model, method)(X)
    for rows in (open_source(X, batch_size=30), sparse.csr_array(X), X.astype(np.float32)):
        np.testing.assert_allclose(getattr(model, method)(rows), expected, rtol=1e-9, atol=1e-9)


def test_cross_validated_probabilities_equal_sklearn():
    X, y = load_iris(return_X_y=True)
    ours = cross_val_predict(IncrementalLDA(), X, y, method="predict_proba")
    theirs = cross_val_predict(LinearDiscriminantAnalysis(solver="lsqr"), X, y, method="predict_proba")
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("solver", SOLVERS)
def test_unseen_label_leaves_the_model_unchanged(solver):
    X, y = gaussian_classes(14, 100)
    model = IncrementalLDA(solver=solver).fit(X, y)
    before = model.transform(X)
    with pytest.raises(ValueError, match="Label 4 is not among the classes"):
        model.partial_fit(X, y + 1)
    with pytest.raises(ValueError, match="no longer finite"):
        model.partial_fit(X * 1e200, y)
    np.testing.assert_array_equal(model.transform(X), before)
    assert model.n_samples_seen_ == 100


@pytest.mark.parametrize("solver", SOLVERS)
def test_sparse_and_narrow_types(solver):
    X, y = gaussian_classes(15, 200)
    X = np.round(X)
    expected = IncrementalLDA(solver=solver).fit(X, y)
    for variant in (sparse.csr_matrix(X), sparse.csc_matrix(X), X.astype(np.float32), X.astype(np.int64)):
        model = IncrementalLDA(solver=solver).fit(variant, y)
        np.testing.assert_allclose(model.scalings_, expected.scalings_, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(model.predict(variant), expected.predict(X))


@pytest.mark.filterwarnings("ignore:The rows so far have only")
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ["constant", "duplicates", "one row per class", "wide", "rank one", "one feature"])
def test_hostile_data(solver, kind):
    X, y = gaussian_classes(16, 60)
    rank = {"constant": 0, "rank one": 1, "one feature": 1}.get(kind, 3)
    if kind == "constant":
        X = np.full_like(X, 1e8)
    elif kind == "duplicates":
        X, y = np.repeat(X[:8], 5, axis=0), np.repeat(np.arange(8) % 4, 5)
    elif kind == "one row per class":
        X, y = X[:4], np.arange(4)
    elif kind == "wide":
        X, y = gaussian_classes(16, 30, 200)
    elif kind == "rank one":
        X = np.outer(np.round(64 * X[:, 0]), np.arange(1.0, 9)) + 1e8
    else:
        X = X[:, :1]
    model = IncrementalLDA(solver=solver).fit(X, y)
    assert model.n_components_ == rank
    for values in (model.transform(X), model.scalings_, model.explained_variance_ratio_, model.means_):
        assert np.isfinite(values).all()
    assert set(model.predict(X)) <= set(y)


def test_labels_only():
    X, y = gaussian_classes(17, 100)
    expected = IncrementalLDA().fit(X, y).scalings_
    np.testing.assert_array_equal(IncrementalLDA().fit(X, y.astype(float)).scalings_, expected)
    with pytest.raises(ValueError, match="Unknown label type"):
        IncrementalLDA().fit(X, y + 0.5)
    halves = IncrementalLDA().partial_fit(X, y + 0.5, classes=np.unique(y + 0.5))
    np.testing.assert_array_equal(halves.scalings_, expected)
    assert set(halves.predict(X)) <= set(y + 0.5)
    with pytest.warns(DataConversionWarning):
        np.testing.assert_array_equal(IncrementalLDA().fit(X, y[:, None]).scalings_, expected)
    with pytest.raises(ValueError, match="1d array"):
        IncrementalLDA().fit(X, np.column_stack([y, y]))


def test_too_many_components():
    X, y = gaussian_classes(18, 100)
    with pytest.raises(ValueError, match=r"n_components=4 is too large: .* at most 3"):
        IncrementalLDA(4).fit(X, y)


@pytest.mark.parametrize("n_components", [1, 2])
def test_predictions_use_all_discriminants(n_components):
    X, y = load_digits(return_X_y=True)
    X = X[:, X.std(axis=0) > 0.5]
    model, reference = IncrementalLDA(n_components).fit(X, y), LinearDiscriminantAnalysis(n_components=n_components)
    assert np.mean(model.predict(X) == reference.fit(X, y).predict(X)) > 0.99
    assert model.transform(X).shape == (len(X), n_components)


def test_order_of_memory_makes_no_difference(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    models = [IncrementalLDA().partial_fit(rows, y) for rows in (X, np.asfortranarray(X))]
    np.testing.assert_array_equal(models[0].scalings_, models[1].scalings_)
    save(models[1], tmp_path / "model.plstream")
