"""The infinite feature selection family against matrices and loops written from the formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hadamard
from scipy.stats import kendalltau, spearmanr
from sklearn import config_context
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.metrics import mutual_info_score

from plstream import InfFS, InfFSS, InfFSU
from plstream._core.progress import listening
from plstream.selection import graph, inffs
from plstream.selection.graph import SpearmanDissimilarity, energies, low_rank, pairwise_maximum, weighted_sum
from plstream.selection.statistics import deviations, fisher, mutual_information

from ..real_data import real_data

GRAPHS = [
    {"alpha": 0.3},
    {"alpha": 0.3, "variant": "released"},
    {"alpha": 0.3, "supervised": True},
    {"alpha": 0.3, "supervised": True, "variant": "released"},
    {"alpha": 0.0},
    {"alpha": 1.0},
]


def scaled(values):
    span = values.max() - values.min()
    return (values - values.min()) / span if span else np.zeros_like(values)


def two_class_data(n=80, m=12, seed=0):
    """Return rows in which the first features differ most between classes, with a tie, a copy and a constant."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, m)) * rng.uniform(0.5, 3, m) + np.outer(y, np.linspace(2, 0, m))
    X[:, 3] = np.round(X[:, 3])
    X[:, 5] = X[:, 4]
    X[:, 7] = -(X[:, 6] ** 3)
    X[:, 9] = 4.2
    return X, y


def edges_by_loops(X, y, *, alpha, variant="published", supervised=False):
    n, m = X.shape
    released = variant == "released"
    std = [np.sqrt(sum((x - sum(f) / n) ** 2 for x in f) / (n - 1)) if len(set(f)) > 1 else 0.0 for f in X.T]
    sigma, c = np.zeros((m, m)), np.zeros((m, m))
    for i in range(m):
        for j in range(m):
            sigma[i, j] = max(std[i], std[j])
            constant = std[i] == 0 or std[j] == 0
            rho = 0.0 if constant else 1.0 if i == j else spearmanr(X[:, i], X[:, j]).statistic
            c[i, j] = 1 - rho if released else 0.0 if constant else 1 - abs(rho)
    if supervised:
        first, second = X[y == 0], X[y == 1]
        f = (second.mean(0) - first.mean(0)) ** 2
        denominator = first.var(0, ddof=1) + second.var(0, ddof=1)
        f = np.where(denominator > 1e-20, f / np.where(denominator > 1e-20, denominator, 1), 0.0)
        c = scaled(np.outer(f, f))
    sigma = scaled(sigma)
    return alpha * c + (1 - alpha) * sigma if released else alpha * sigma + (1 - alpha) * c


def geometric_series(A, r):
    term, total = np.ones(len(A)), np.zeros(len(A))
    while True:
        term = r * A @ term
        total += term
        if term.max() < 1e-15 * total.max():
            return total


@pytest.mark.parametrize("solver", ["dense", "krylov"])
@pytest.mark.parametrize("graph", GRAPHS, ids=str)
def test_inffs_is_the_sum_of_all_walks(graph, solver):
    X, y = two_class_data()
    A = edges_by_loops(X, y, **graph)
    r = 0.9 / np.linalg.eigvalsh(A).max()
    scores = InfFS(solver=solver, **graph).fit(X, y).scores_
    inverse = np.linalg.inv(np.eye(len(A)) - r * A).sum(axis=1) - 1
    np.testing.assert_allclose(scores, geometric_series(A, r), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(scores, inverse, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("solver", ["dense", "krylov"])
@pytest.mark.parametrize("double_scaling", [False, True])
def test_inffsu(solver, double_scaling):
    X, y = two_class_data()
    A = edges_by_loops(X, y, alpha=0.3)
    m = len(A)
    slack, largest = 5e-6 * m, A.sum(axis=1).max()
    r = (1 - slack) / largest if double_scaling else 1 - slack
    inverse = np.linalg.inv(np.eye(m) - r * A / (largest + slack))
    selector = InfFSU(alpha=0.3, double_scaling=double_scaling, solver=solver).fit(X)
    np.testing.assert_allclose(selector.scores_, inverse.sum(axis=1) - 1, rtol=1e-10)
    if double_scaling:
        np.testing.assert_array_equal(np.argsort(-A.sum(axis=1), kind="stable")[:4], np.argsort(selector.ranking_)[:4])


def fisher_by_loops(X, y):
    """Return Fisher's criterion of data without a feature that separates without error."""
    criteria = []
    for f in X.T:
        first, second = ([x for x, label in zip(f, y, strict=True) if label == k] for k in (0, 1))
        means = [sum(part) / len(part) for part in (first, second)]
        parts = zip((first, second), means, strict=True)
        variance = sum(sum((x - mean) ** 2 for x in part) / (len(part) - 1) for part, mean in parts)
        criteria.append((means[1] - means[0]) ** 2 / variance if len({*f}) > 1 else 0.0)
    return np.array(criteria)


def edges_of_inffss(X, y, alpha, *, symmetrise):
    h = scaled(fisher_by_loops(X, y))
    g = scaled(np.array([histogram_information(f, y, 10) for f in X.T]))
    s = scaled(np.maximum.outer(X.std(axis=0, ddof=1), X.std(axis=0, ddof=1)))
    G = np.array(
        [
            [
                alpha[0] * (g[j] + h[i]) / 2 + alpha[1] * (g[j] + s[i, j]) / 2 + alpha[2] * (s[i, j] + h[i]) / 2
                for j in range(len(h))
            ]
            for i in range(len(h))
        ]
    )
    return (G + G.T) / 2 if symmetrise else G


@pytest.mark.parametrize("solver", ["dense", "krylov"])
@pytest.mark.parametrize("symmetrise", [False, True])
@pytest.mark.parametrize("double_scaling", [False, True])
def test_inffss(solver, symmetrise, double_scaling):
    X, y = two_class_data()
    alpha = (0.5, 0.2, 0.3)
    G = edges_of_inffss(X, y, alpha, symmetrise=symmetrise)
    m = len(G)
    slack, largest = 5e-6 * m, G.sum(axis=1).max()
    r = (1 - slack) / largest if double_scaling else 1 - slack
    expected = geometric_series(G / (largest + slack), r)
    selector = InfFSS(alpha=alpha, symmetrise=symmetrise, double_scaling=double_scaling, solver=solver).fit(X, y)
    np.testing.assert_allclose(selector.scores_, expected, rtol=1e-10)


def test_rate_has_a_floor(monkeypatch):
    """With slack for 50 features, 1 - 0.02 m is 0.4 for 30 of them, and would be -0.2 for 60."""
    monkeypatch.setattr(inffs, "_SLACK", 0.02)
    for m, share in ((30, 0.4), (60, 0.1)):
        X, y = two_class_data(m=m)
        G = edges_of_inffss(X, y, (0.2, 0.3, 0.5), symmetrise=False)
        expected = geometric_series(G / (G.sum(axis=1).max() + 0.02 * m), share)
        np.testing.assert_allclose(InfFSS(alpha=(0.2, 0.3, 0.5)).fit(X, y).scores_, expected, rtol=1e-10)


def test_inffss_ignores_mutual_information_unless_symmetrised(monkeypatch):
    X, y = load_breast_cancer(return_X_y=True)
    rankings = {}
    for seed in (0, 1):
        noise = np.random.default_rng(seed).random(X.shape[1])
        monkeypatch.setattr(inffs, "mutual_information", lambda *_, noise=noise: noise)
        for alpha in ((1, 0, 0), (1 / 3, 1 / 3, 1 / 3)):
            for symmetrise in (False, True):
                ranking = InfFSS(alpha=alpha, symmetrise=symmetrise).fit(X, y).ranking_
                rankings.setdefault((alpha, symmetrise), []).append(ranking)
    for (alpha, symmetrise), (first, second) in rankings.items():
        assert np.array_equal(first, second) != symmetrise
        if alpha == (1, 0, 0) and not symmetrise:
            np.testing.assert_array_equal(np.argsort(first), np.argsort(-fisher(X, y), kind="stable"))


def test_real_rankings_make_sense():
    X, y = load_breast_cancer(return_X_y=True)
    best = set(np.argsort(-fisher(X, y))[:10])
    for selector in (InfFSS(10), InfFS(10, supervised=True, alpha=0.1)):
        assert len(best & set(selector.fit(X, y).get_support(indices=True))) >= 7


REAL = {
    "gasoline": lambda: real_data("spectra/pls_gasoline.npz")["NIR"],
    "tecator": lambda: real_data("spectra/tecator.npz")["X"],
    "faces": lambda: real_data("lfw/facenet_embedding_512.npz")["F"][:1500],
    "face network": lambda: real_data("lfw/vgg16_conv5_64px.npz")["F"][:300, :1200],
    "digits": lambda: load_digits().data,
}


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("method", [InfFS, InfFSU])
def test_products_are_as_good_as_all_edges(name, method, monkeypatch):
    X = REAL[name]()
    dense, kept = method(solver="dense").fit(X), method(solver="krylov").fit(X)
    # With room for half of the tiles, the others are formed again for every product, and all are rounded.
    monkeypatch.setattr(graph, "_TILE", 60)
    monkeypatch.setattr(graph, "_room", lambda: X.shape[1] ** 2)
    some_kept = method(solver="krylov").fit(X)
    with config_context(working_memory=0):
        monkeypatch.undo()
        none_kept = method(solver="krylov").fit(X)
    for other in (kept, some_kept, none_kept):
        np.testing.assert_allclose(other.scores_, dense.scores_, rtol=1e-9)
        drops = -np.diff(dense.scores_[np.argsort(other.ranking_)])
        assert drops.min() >= -1e-9 * dense.scores_.max()


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_solvers_agree_on_any_rows(data):
    n, m = data.draw(st.integers(2, 9)), data.draw(st.integers(1, 9))
    numbers = st.one_of(st.integers(-3, 3), st.floats(-1e150, 1e150, width=64))
    X = np.array(data.draw(st.lists(st.lists(numbers, min_size=m, max_size=m), min_size=n, max_size=n)), dtype=float)
    for method in (InfFS(), InfFSU(), InfFS(variant="released", alpha=0.2)):
        dense = method.set_params(solver="dense").fit(X).scores_
        krylov = method.set_params(solver="krylov").fit(X).scores_
        assert (dense >= 0).all()
        np.testing.assert_allclose(krylov, dense, rtol=1e-9, atol=1e-12 * dense.max())


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.integers(0, 2**32 - 1))
def test_products_of_simple_edges(values, seed):
    values, rng = np.array(values), np.random.default_rng(seed)
    v, left, right = rng.normal(size=len(values)), rng.normal(size=(len(values), 2)), rng.normal(size=(len(values), 2))
    largest, products = pairwise_maximum(values), low_rank(left, right)
    brute = np.array([sum(max(a, b) * x for b, x in zip(values, v, strict=True)) for a in values])
    np.testing.assert_allclose(largest.product(v), brute, atol=1e-12)
    np.testing.assert_allclose(products.product(v), left @ right.T @ v, atol=1e-12)
    mixture = weighted_sum((0.3, largest), (0.7, products), (0.0, largest))
    np.testing.assert_allclose(mixture.product(v), mixture.dense() @ v, atol=1e-12)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("n", [40, 40_000])
def test_independence_is_spearmans(signed, n, monkeypatch):
    monkeypatch.setattr(graph, "_TILE", 3)
    monkeypatch.setattr(graph, "_TILE_ROWS", max(7, n // 3))
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(n, 8)) @ rng.normal(size=(8, 8)), 1)
    correlations = spearmanr(X).statistic
    expected = 1 - (correlations if signed else np.abs(correlations))
    edges = SpearmanDissimilarity(X, signed=signed)
    assert edges.ranks.dtype == (np.int16 if n == 40 else np.int32)
    np.testing.assert_allclose(edges.dense(), expected, atol=1e-14)
    v = rng.normal(size=8)
    for _ in range(2):
        np.testing.assert_allclose(edges.product(v), expected @ v, atol=1e-13)


def test_graph_in_two_separate_parts():
    """An eigenvector of the spectral radius may live in a part of the graph alone."""
    A = np.zeros((5, 5))
    A[:2, :2], A[2:4, 2:4] = 1.0, 3.0
    blocks = low_rank(A, np.eye(5))
    expected = np.linalg.inv(np.eye(5) - 0.9 / 6 * A).sum(axis=1) - 1
    for solver in ("dense", "krylov"):
        actual = energies(blocks, 5, 0.9, None, symmetric=True, solver=solver)
        np.testing.assert_allclose(actual, expected, atol=1e-13)


@pytest.mark.parametrize("link", [1e-2, 1e-5])
def test_graph_in_two_parts_that_are_hardly_joined(link):
    """The spectral radius is known only after the space has grown to tell the parts apart."""
    rng = np.random.default_rng(0)
    A = np.full((60, 60), link)
    for part in (slice(30), slice(30, None)):
        B = rng.random((30, 30))
        A[part, part] = B + B.T
    expected = np.linalg.inv(np.eye(60) - 0.9 / np.linalg.eigvalsh(A).max() * A).sum(axis=1) - 1
    actual = energies(low_rank(A, np.eye(60)), 60, 0.9, None, symmetric=True, solver="krylov")
    np.testing.assert_allclose(actual, expected, atol=1e-10 * expected.max())


@pytest.mark.parametrize("room", [0, 2000, 3000])
def test_copies_are_ties_though_weights_are_rounded(room, monkeypatch):
    monkeypatch.setattr(graph, "_TILE", 16)
    monkeypatch.setattr(graph, "_room", lambda: room)
    rng = np.random.default_rng(0)
    patterns = np.array([rng.permutation(5) for _ in range(6)])
    kinds = rng.integers(0, 6, 90)
    selector = InfFS(solver="krylov").fit(patterns[kinds].T)
    for kind in range(6):
        ranks = selector.ranking_[kinds == kind]
        np.testing.assert_array_equal(ranks, ranks.min() + np.arange(len(ranks)))
    exact = InfFS(solver="dense").fit(patterns[kinds].T)
    np.testing.assert_allclose(selector.scores_, exact.scores_, rtol=1e-9)


def test_blocks_are_kept_only_if_they_fit_in_memory(monkeypatch):
    monkeypatch.setattr(graph, "_TILE", 10)
    X = np.random.default_rng(0).normal(size=(20, 35))
    for room, number, dtype in ((4900, 6, np.float64), (4899, 10, np.uint32), (1999, 4, np.uint32), (399, 0, None)):
        monkeypatch.setattr(graph, "_room", lambda room=room: room)
        edges = SpearmanDissimilarity(X, signed=False)
        edges.product(np.ones(35))
        assert len(edges._kept) == min(number, 10)
        assert {tile.dtype for tile in edges._kept.values()} == ({np.dtype(dtype)} if dtype else set())


@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_walks_without_bound_are_refused(solver):
    """Features that are all alike have edges that sum to less than one: dividing twice makes them heavier."""
    X = load_breast_cancer().data[:, [0, 2, 3]]
    with pytest.raises(ValueError, match=r"diverges.*use double_scaling=False"):
        InfFSU(alpha=0.1, double_scaling=True, solver=solver).fit(X)
    assert (InfFSU(alpha=0.1, solver=solver).fit(X).scores_ > 0).all()


@pytest.mark.parametrize("n", range(2, 12))
def test_perfectly_correlated_features_have_no_edge(n):
    X = np.column_stack([np.arange(n), np.arange(n) ** 3, -np.arange(n)])
    for method in (InfFS(alpha=0), InfFSU(alpha=0), InfFSU(alpha=0, double_scaling=True)):
        np.testing.assert_array_equal(method.fit(X).scores_, 0)


def test_largest_numbers():
    X = np.array([[1.7e308, 1, 2], [-1.7e308, 2, 1], [0, 1, 1], [1e308, 2, 3]])
    y = np.array([0, 1, 0, 1])
    for method in (InfFS(), InfFSU(), InfFSS(), InfFS(supervised=True, variant="released")):
        assert np.isfinite(method.fit(X, y).scores_).all()
        assert method.fit(X, y).scores_.max() > 0


ALL = [InfFS(), InfFS(solver="krylov"), InfFS(supervised=True), InfFSU(), InfFSU(solver="krylov"), InfFSS()]


@pytest.mark.parametrize("selector", ALL, ids=str)
def test_copies_are_ties_and_constants_are_last(selector):
    X, y = two_class_data()
    X[:, 11] = X[:, 1]
    selector.fit(X, y)
    ranking = selector.ranking_
    assert ranking[11] == ranking[1] + 1
    assert ranking[5] == ranking[4] + 1
    assert ranking[9] == 12


@pytest.mark.parametrize("selector", ALL, ids=str)
def test_indistinguishable_features(selector):
    y = np.arange(6) % 2
    for X in (np.ones((6, 3)), np.zeros((6, 1)), np.arange(6.0)[:, None], np.tile(np.arange(6.0)[:, None], 4)):
        scores = selector.fit(X, y).scores_
        assert np.isfinite(scores).all()
        np.testing.assert_array_equal(selector.ranking_, np.arange(1, X.shape[1] + 1))


@pytest.mark.parametrize("selector", ALL, ids=str)
def test_units_do_not_matter(selector):
    X, y = two_class_data()
    scores = selector.fit(X, y).scores_
    for unit in (2.0**-500, 2.0**500):
        np.testing.assert_array_equal(selector.fit(X * unit, y).scores_, scores)
    with_offset = np.round(X, 3) + 1e8
    np.testing.assert_allclose(selector.fit(with_offset, y).scores_, selector.fit(np.round(X, 3), y).scores_, rtol=1e-5)


@pytest.mark.parametrize("selector", ALL, ids=str)
def test_layout_of_rows_does_not_matter(selector):
    X, y = two_class_data()
    X = X.astype(np.float32)
    scores = selector.fit(X.astype(np.float64), y).scores_
    read_only = X.copy()
    read_only.flags.writeable = False
    for other in (np.asfortranarray(X), read_only, X[::-1][::-1]):
        np.testing.assert_array_equal(selector.fit(other, y).scores_, scores)
    whole = np.clip(np.round(X * 10), -100, 100)
    np.testing.assert_array_equal(
        selector.fit(whole.astype(np.int8), y).scores_, selector.fit(whole.astype(np.float16), y).scores_
    )


def test_labels_never_switch_the_method():
    X, y = two_class_data()
    switched = InfFS(supervised=True).fit(X, y).set_params(supervised=False).fit(X, y)
    np.testing.assert_array_equal(switched.scores_, InfFS().fit(X).scores_)
    assert not hasattr(switched, "classes_")
    for method in (InfFS(), InfFSU()):
        np.testing.assert_array_equal(method.fit(X).scores_, method.fit(X, y).scores_)
        np.testing.assert_array_equal(method.fit(X).scores_, method.fit(X, np.array(["text"] * len(X))).scores_)


def test_released_code_likes_constants():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 1)) + rng.normal(size=(50, 6))
    X[:, 2] = 1.5
    assert InfFS(alpha=0.9, variant="released").fit(X).ranking_[2] == 1
    assert InfFS(alpha=0.1).fit(X).ranking_[2] == 6


def test_feature_constant_in_each_class():
    """By the released code, what tells classes apart without error is worth next to nothing."""
    X, y = two_class_data()
    X[:, 10] = 5 + y / 10
    others = fisher(np.delete(X, 10, axis=1), y)
    assert fisher(X, y)[10] == others.max()
    assert fisher(X, y, perfect=1e4)[10] == pytest.approx(1e-6)
    assert fisher(X[:, [10]], y)[0] == 1.0
    assert InfFSS().fit(X, y).ranking_[10] < InfFSS(double_scaling=True).fit(X, y).ranking_[10]
    published, released = (InfFS(supervised=True, alpha=0.5, variant=v).fit(X, y) for v in ("published", "released"))
    assert published.ranking_[10] < released.ranking_[10]
    # Constants that cannot be added up without rounding errors.
    X[:, 10] = np.where(y, 0.3, 0.1)
    assert fisher(X, y, perfect=1e4)[10] == pytest.approx(4e-6, rel=1e-12)
    X[:, 10] = 0.1
    assert fisher(X, y)[10] == 0


def test_class_of_one_row():
    X, y = two_class_data(n=9)
    y = (np.arange(9) == 4).astype(int)
    for method in (InfFS(supervised=True), InfFSS()):
        assert np.isfinite(method.fit(X, y).scores_).all()


def test_long_walks_count_by_the_factor():
    X, _ = two_class_data()
    A = edges_by_loops(X, None, alpha=0.5)
    by_sums = np.argsort(np.argsort(-A.sum(axis=1)))
    by_eigenvector = np.argsort(np.argsort(-np.abs(np.linalg.eigh(A)[1][:, -1])))
    assert kendalltau(InfFS(factor=1e-6).fit(X).ranking_, by_sums).statistic > 0.96
    assert kendalltau(InfFS(factor=0.999999).fit(X).ranking_, by_eigenvector).statistic > 0.96


def test_more_features_than_the_rate_allows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 210_000)).astype(np.float32), np.arange(6) % 2
    X[:, 7] += 100 * y
    selector = InfFSS(n_features_to_select=10).fit(X, y)
    assert (selector.scores_ > 0).all()
    assert selector.support_[7]
    assert selector.support_.sum() == 10


def histogram_information(x, y, bins):
    # A constant is in one bin, whichever that is.
    edges = np.linspace(x.min(), x.max() if len({*x}) > 1 else x.min() + 1, bins + 1)
    joint = np.array([np.histogram(x[y == label], edges)[0] for label in np.unique(y)], dtype=float)
    p_x, p_y = joint.sum(axis=0) / len(x), joint.sum(axis=1) / len(x)
    p_x[p_x == 0] = 1e-5
    joint[joint == 0] = 1e-5
    joint /= len(x)
    information = sum(p * np.log(p / p_x[b] / p_y[k]) for k, row in enumerate(joint) for b, p in enumerate(row))
    return 2 * information / (-np.sum(p_x * np.log(p_x)) - np.sum(p_y * np.log(p_y)))


@pytest.mark.parametrize(("n", "bins"), [(60, 10), (150, 15), (300, 20)])
def test_mutual_information(n, bins):
    X, y = two_class_data(n=n)
    X[:, 8] = np.arange(n) % (bins + 1)
    X[:, 10] = 0.1 * (np.arange(n) % (bins + 1))
    X[:, 11] = 1e-160 * X[:, 10]
    varying = [j for j in range(X.shape[1]) if j != 9]
    expected = [histogram_information(X[:, j], y, bins) for j in varying]
    np.testing.assert_allclose(mutual_information(X, y)[varying], expected, rtol=1e-10)


def test_mutual_information_without_empty_cells():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    x = np.round(19 * rng.beta(2 + y, 2))
    x[:40] = np.arange(40) % 20
    y[:40] = np.arange(40) // 20
    entropies = mutual_info_score(x, x) + mutual_info_score(y, y)
    assert mutual_information(x[:, None], y)[0] == pytest.approx(2 * mutual_info_score(x, y) / entropies, rel=1e-12)


def test_deviations():
    X, _ = two_class_data()
    std = X.std(axis=0, ddof=1)
    std[9] = 0
    for unit in (1.0, 1e300, 1e-290):
        actual = deviations(X * unit)
        np.testing.assert_allclose(actual / actual.max(), std / std.max(), rtol=1e-12)
    first, second = deviations(np.array([[1.7e308, 1e308], [-1.7e308, 0]]))
    assert first / second == pytest.approx(3.4)


def test_rule_of_bins():
    X, y = two_class_data()
    for method in (InfFSU("bins"), InfFSS("bins")):
        counts, _ = np.histogram(method.fit(X, y).scores_, 6)
        assert method.support_.sum() == np.sum(counts > 2)
    assert InfFSU("bins").fit(X[:, :1]).support_.sum() == 1
    # All scores are the same but for rounding errors.
    for solver in ("dense", "krylov"):
        assert InfFSU("bins", solver=solver).fit(hadamard(64)[:, 1:]).support_.sum() == 1


def test_invalid_calls_are_refused():
    X, y = two_class_data()
    for method in (InfFS(supervised=True), InfFSS()):
        name = type(method).__name__
        with pytest.raises(ValueError, match=rf"{name}\(.*\) requires two classes, but y has 3"):
            method.fit(*load_wine(return_X_y=True))
        with pytest.raises(ValueError, match=f"{name} requires y to be passed"):
            method.fit(X)
        with pytest.raises(ValueError, match="all rows have the label 'a'"):
            method.fit(X, ["a"] * len(X))
        with pytest.raises(ValueError, match="Unknown label type"):
            method.fit(X, X[:, 0])
        with pytest.raises(ValueError, match="cannot be sorted"):
            method.fit(X, np.array(["a", None] * (len(X) // 2), dtype=object))
    for alpha in ((1, 0), (0.5, 0.6, -0.1), (1, 1, 1), 0.5, ["a", "b", "c"], (1, 0, [0])):
        with pytest.raises(ValueError, match="alpha"):
            InfFSS(alpha=alpha).fit(X, y)
    X[3, 2] = np.nan
    for method in (InfFS(), InfFSU(), InfFSS()):
        with pytest.raises(ValueError, match="NaN"):
            method.fit(X, y)
        assert not hasattr(method, "n_features_in_")
        scores = method.fit(X[:, 3:], y).scores_
        with pytest.raises(ValueError, match="NaN"):
            method.fit(X, y)
        assert method.scores_ is scores
        assert method.n_features_in_ == 9
    with pytest.raises(ValueError, match=r"infinity .first in row 0, column 0"):
        InfFS().fit(np.array([[1, 2], [3, 4]], dtype=np.longdouble) * np.longdouble("1e4000"))


def test_mismatched_data_is_refused_at_once(monkeypatch):
    X, _ = two_class_data()
    needed = 80 * 12 * 2 + 4 * 12**2 + 8 * 12 * (2 * 80 + 3 * 12)
    steps = []
    with listening(steps.append):
        monkeypatch.setattr("plstream._core.memory.available_bytes", lambda: needed - 1)
        with pytest.raises(MemoryError, match="A graph of 12 features by ranks of 80 rows requires"):
            InfFS().fit(X)
        monkeypatch.setattr("plstream._core.memory.available_bytes", lambda: needed)
        with pytest.raises(MemoryError, match='solver="dense" with 30 features requires'):
            InfFS(supervised=True, solver="dense").fit(np.ones((2, 30)), [0, 1])
        assert {step.label for step in steps} <= {"deviations", "Fisher's criterion"}
        InfFS(solver="krylov").fit(X)


def test_progress_is_reported():
    X, _ = two_class_data()
    steps = []
    with listening(steps.append):
        InfFS(solver="krylov").fit(X)
    assert [step.label for step in steps][:3] == ["deviations", "ranks", "edges, pass 1"]
    assert (steps[1].done, steps[1].total, steps[1].unit) == (12, 12, "features")
