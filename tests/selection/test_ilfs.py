"""ILFS against plain loops, its closed form against a dense solver, and degenerate data."""

from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit
from sklearn.datasets import load_breast_cancer

from plstream import ILFS
from plstream.selection import statistics
from plstream.selection.ilfs import count_tokens, distances_to_own_class, fit_factors, rank_one_energies

VARIANTS = pytest.mark.parametrize("variant", ["A", "B"])


def data(n=90, m=12, n_classes=2, seed=0):
    """Features whose first half separates the classes, earlier features better than later ones."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    X = rng.normal(size=(n, m))
    X[:, : m // 2] += np.linspace(4.0, 0.5, m // 2) * y[:, None]
    return X, y


def distances_by_loops(x, y):
    means = {label: np.mean([v for v, own in zip(x, y, strict=True) if own == label]) for label in set(y)}
    return [
        (v - means[own]) ** 2 / sum((v - mean) ** 2 for mean in means.values()) for v, own in zip(x, y, strict=True)
    ]


def histogram_by_loops(values, edges):
    counts = [sum(low <= v < high for v in values) for low, high in pairwise(edges)]
    return [*counts, sum(v == edges[-1] for v in values)]


def counts_by_loops(X, y, variant, n_tokens):
    counts, prior = [], []
    for x in X.T:
        pi = distances_by_loops(x, y)
        first, last = (0, 1) if variant == "A" else (min(pi), max(pi))
        N = histogram_by_loops(pi, np.linspace(first, last, n_tokens))
        counts.append(N)
        prior.append(sum(N[-3:] if variant == "A" else N[: round(0.2 * n_tokens)]) / len(x))
    return np.array(counts), np.array(prior)


def em_by_loops(counts, prior, n_iter, *, update):
    """Return P(z|f) after the last round, and the log-likelihood after each."""
    T = counts.shape[1]
    tokens = np.array([np.linspace(5000, 1, T), np.linspace(1, 5000, T)])
    tokens /= tokens.sum(axis=1, keepdims=True)
    P, likelihoods = np.array([prior, 1 - prior]), []
    for _ in range(n_iter):
        joint = P[:, :, None] * tokens[:, None]
        total = joint.sum(axis=0)
        expected = counts * joint / np.where(total > 0, total, 1)
        P = expected.sum(axis=2) / expected.sum(axis=(0, 2))
        if update:
            tokens = expected.sum(axis=1) / expected.sum(axis=(1, 2))[:, None]
        mixture = P.T @ tokens
        likelihoods.append((counts[counts > 0] * np.log(mixture[counts > 0])).sum())
    return P, likelihoods


@pytest.mark.parametrize("update", [False, True])
@pytest.mark.parametrize(
    ("variant", "n_classes", "n_tokens"), [("B", 2, 6), ("B", 3, 6), ("B", 5, 9), ("B", 2, 3), ("A", 2, 4), ("A", 2, 8)]
)
@pytest.mark.filterwarnings("ignore:The two factors have swapped")
def test_equals_loops(variant, n_classes, n_tokens, update):
    X, y = data(n_classes=n_classes)
    parameters = {"variant": variant, "n_tokens": n_tokens, "update_tokens": update}
    selector = ILFS(**parameters, n_iter=15).fit(X, y)
    counts, prior = counts_by_loops(X, y, variant, n_tokens)
    P, likelihoods = em_by_loops(counts, prior, 15, update=update)
    assert (np.diff(likelihoods) > -1e-9).all()
    np.testing.assert_allclose(selector.probabilities_, P[0], rtol=1e-9, atol=1e-200)
    interior = (P[0] > 1e-6) & (P[0] < 1 - 1e-6)
    assert interior.any()
    np.testing.assert_array_equal(np.argsort(-P[0, interior]), np.argsort(selector.ranking_[interior]))
    np.testing.assert_array_equal(np.argsort(-selector.log_odds_, kind="stable"), np.argsort(selector.ranking_))


@VARIANTS
def test_defaults_are_those_of_the_variant(variant):
    X, y = data()
    n_tokens, n_iter = {"A": (4, 1000), "B": (6, 15)}[variant]
    P, _ = em_by_loops(*counts_by_loops(X, y, variant, n_tokens), n_iter, update=False)
    np.testing.assert_allclose(ILFS(variant=variant).fit(X, y).probabilities_, P[0], rtol=1e-9)


def test_log_odds_of_saturated_probabilities():
    """With the sixty digits of decimals the loops tell features apart that all have a probability of 1 to rounding."""
    rng = np.random.default_rng(0)
    counts = rng.integers([50, 20, 0, 0], [60, 30, 5, 0], size=(5, 4), endpoint=True)
    prior = rng.uniform(0.1, 0.9, size=5)
    n_iter = 300
    expected = []
    with localcontext(prec=60):
        falling = [Decimal(float(v)) for v in np.linspace(5000, 1, 4)]
        tokens = [[v / sum(falling) for v in falling], [v / sum(falling) for v in falling[::-1]]]
        for N, p in zip(counts, prior, strict=True):
            P = [Decimal(float(p)), 1 - Decimal(float(p))]
            for _ in range(n_iter):
                mixture = [P[0] * a + P[1] * b for a, b in zip(*tokens, strict=True)]
                P = [
                    sum(int(c) * P[z] * t / mix for c, t, mix in zip(N, tokens[z], mixture, strict=True)) / int(N.sum())
                    for z in (0, 1)
                ]
            expected.append(float((P[0] / P[1]).ln()))
    log_odds, _ = fit_factors(counts.astype(float), prior, n_iter, update_tokens=False)
    assert (expit(log_odds) == 1).all()
    np.testing.assert_allclose(log_odds, expected, rtol=1e-11)


def test_ties_of_saturated_probabilities_are_broken_by_log_odds():
    X, y = data()
    selector = ILFS(variant="A").fit(X, y)
    saturated = selector.probabilities_ == 1
    assert saturated.sum() > 5
    order = np.argsort(selector.ranking_[saturated])
    assert (np.diff(selector.log_odds_[saturated][order]) <= 0).all()


def test_a_prior_of_zero_or_one_stays():
    counts = np.full((2, 4), 5.0)
    for update in (False, True):
        log_odds, tokens = fit_factors(counts, np.array([0.0, 1.0]), 20, update_tokens=update)
        np.testing.assert_array_equal(log_odds, [-np.inf, np.inf])
        assert np.isfinite(tokens).all()


@given(
    counts=arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(2, 7)), elements=st.integers(0, 1000)),
    prior=st.floats(0.001, 0.999),
    update=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_likelihood_never_falls(counts, prior, update):
    counts[:, 0] += 1
    priors = np.full(len(counts), prior)
    likelihoods = []
    for n_iter in range(1, 12):
        log_odds, tokens = fit_factors(counts, priors, n_iter, update_tokens=update)
        assert not np.isnan(log_odds).any()
        mixture = np.stack([expit(log_odds), expit(-log_odds)], axis=1) @ tokens
        likelihoods.append((counts * np.log(mixture)).sum())
    assert (np.diff(likelihoods) > -1e-9 * (1 + np.abs(likelihoods[0]))).all()


def test_energies_equal_a_dense_solve():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=40)
    A = np.outer(p, p)
    for factor in (0.99, np.ceil(A.sum(axis=1).max()) / 40):
        r = factor / np.linalg.eigvalsh(A)[-1]
        e = np.linalg.solve(np.eye(40) - r * A, np.ones(40)) - 1
        np.testing.assert_allclose(rank_one_energies(p, factor), e, rtol=1e-10)


def test_scores():
    X, y = data()
    b = ILFS().fit(X, y)
    np.testing.assert_allclose(b.scores_, rank_one_energies(b.probabilities_, 0.99))
    a = ILFS(variant="A", n_tokens=6, n_iter=5).fit(X, y)
    p = a.probabilities_
    np.testing.assert_allclose(a.scores_, rank_one_energies(p, np.ceil((np.outer(p, p)).sum(axis=1).max()) / 12))
    assert a.scores_.max() > 1
    # All probabilities are near 1, the factor is 1 and I - rA singular.
    saturated = ILFS(variant="A").fit(X, y)
    np.testing.assert_array_equal(saturated.scores_, saturated.probabilities_)
    np.testing.assert_array_equal(rank_one_energies(np.zeros(3), 0.99), np.zeros(3))
    np.testing.assert_allclose(
        rank_one_energies(np.array([1e-300, 5e-301]), 0.5), rank_one_energies(np.array([1.0, 0.5]), 0.5)
    )


@given(
    distances=arrays(np.float64, (3, 20), elements=st.integers(0, 24).map(lambda v: v / 24)),
    n_tokens=st.integers(2, 9),
    own_range=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_counts(distances, n_tokens, own_range):
    """Values on an edge count as above it, also where the edge itself is rounded."""
    counts = count_tokens(distances.copy(), n_tokens, 0.5, own_range=own_range)
    np.testing.assert_array_equal(counts.sum(axis=1), 20)
    for N, values in zip(counts, distances, strict=True):
        low, high = (min(values), max(values)) if own_range else (0.0, 1.0)
        if low == high:
            assert N[0 if high < 0.5 else -1] == 20
            continue
        # In integers: v is at or above edge t if (v - low)(T - 1) >= t (high - low).
        whole = np.rint(24 * np.array([low, high, *values])).astype(int)
        token = (whole[2:] - whole[0]) * (n_tokens - 1) // (whole[1] - whole[0])
        np.testing.assert_array_equal(N, np.bincount(token, minlength=n_tokens))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_distances(n_classes):
    X, y = data(n_classes=n_classes)
    distances, same_mean = distances_to_own_class(np.ascontiguousarray(X.T), y)
    assert not same_mean.any()
    for x, pi in zip(X.T, distances, strict=True):
        expected = np.array(distances_by_loops(x, y))[np.argsort(y, kind="stable")]
        np.testing.assert_allclose(pi, expected, rtol=1e-9, atol=1e-15)


def test_good_features_come_first():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=300)
    X = rng.normal(size=(300, 40))
    good = rng.permutation(40)[:8]
    X[:, good] += 5.0 * y[:, None]
    ranking = ILFS().fit(X, y).ranking_
    assert set(np.flatnonzero(ranking <= 8)) == set(good)


def test_good_features_of_real_data():
    """The five features of the tumours with the largest F are those with the largest probabilities."""
    X, y = load_breast_cancer(return_X_y=True)
    selector = ILFS(n_features_to_select=5).fit(X, y)
    np.testing.assert_array_equal(selector.get_support(indices=True), [2, 7, 20, 22, 27])


@VARIANTS
@pytest.mark.parametrize("constant", [0.0, 0.1, 1e8 + 0.1, -1e150, 1e-310])
def test_constant_features_are_last(variant, constant):
    X, y = data()
    X[:, [1, 4]] = constant
    selector = ILFS(variant=variant).fit(X, y)
    np.testing.assert_array_equal(selector.ranking_[[1, 4]], [11, 12])
    np.testing.assert_array_equal(selector.probabilities_[[1, 4]], 0)
    assert np.isfinite(selector.scores_).all()


@VARIANTS
def test_only_constant_features(variant):
    selector = ILFS(variant=variant).fit(np.full((6, 3), 7.0), [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(selector.scores_, 0)
    np.testing.assert_array_equal(selector.ranking_, [1, 2, 3])


@VARIANTS
def test_features_with_equal_class_means_say_nothing(variant):
    """Rounding errors of the means are not stretched to a range; rows at both means would be 0/0."""
    rng = np.random.default_rng(0)
    half = rng.normal(size=50)
    half -= half.mean()
    half[0] = 0.0
    half[1] -= half.sum()
    X = np.stack([np.r_[half, half[::-1]], np.r_[half, -half], np.r_[half, half + 3]], axis=1)
    selector = ILFS(variant=variant).fit(X, np.repeat([0, 1], 50))
    np.testing.assert_array_equal(selector.ranking_, [2, 3, 1])
    np.testing.assert_array_equal(selector.probabilities_[:2], 0)


def test_a_feature_that_equals_the_classes_comes_first():
    X, y = data()
    X[:, 9] = 3.0 * y - 1e6
    selector = ILFS().fit(X, y)
    assert selector.ranking_[9] == 1
    assert selector.probabilities_[9] == 1


@VARIANTS
def test_few_rows(variant):
    X = data(n=4)[0]
    assert np.isfinite(ILFS(variant=variant).fit(X[:2], [0, 1]).scores_).all()
    assert np.isfinite(ILFS(variant=variant).fit(X, [0, 0, 0, 1]).scores_).all()
    np.testing.assert_array_equal(ILFS().fit(X, [0, 1, 2, 3]).probabilities_, 1)


@VARIANTS
@pytest.mark.parametrize("factor", [1e150, 1e-150, 2.0**1020, 2.0**-1000, -3.0])
def test_units_do_not_matter(variant, factor):
    X, y = data()
    expected = ILFS(variant=variant).fit(X, y)
    actual = ILFS(variant=variant).fit(X * factor, y)
    np.testing.assert_allclose(actual.log_odds_, expected.log_odds_, rtol=1e-9)
    np.testing.assert_array_equal(actual.ranking_, expected.ranking_)


def test_a_large_mean_does_not_matter():
    X, y = data()
    X = np.round(X * 2**20) / 2**20
    near, _ = distances_to_own_class(np.ascontiguousarray(X.T), y)
    far, _ = distances_to_own_class(np.ascontiguousarray(X.T) + 2.0**32, y)
    np.testing.assert_allclose(far, near, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("variant", ["A", "B"])
@pytest.mark.filterwarnings("ignore:The two factors have swapped:UserWarning")
def test_a_factor_that_no_feature_has_keeps_its_tokens(variant):
    """All priors are 0, or all are 1."""
    y = np.array([0, 0, 0, 1, 1, 1])
    rng = np.random.default_rng(0)
    for X, labels in ((np.ones((6, 3)), y), (rng.normal(size=(2, 6)), y[2:4]), (np.column_stack([y, 2 * y]), y)):
        selector = ILFS(variant=variant, update_tokens=True).fit(X, labels)
        assert np.isfinite(selector.scores_).all()
        assert np.isfinite(selector.token_probabilities_).all()


def test_variant_a_ranks_the_best_features_last():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 4)) + np.outer(y, [0, 2, 4, 30])
    np.testing.assert_array_equal(ILFS(variant="A").fit(X, y).ranking_, [3, 2, 1, 4])
    assert ILFS(variant="A").fit(X, y).probabilities_[3] == 0
    assert ILFS().fit(X, y).ranking_[3] <= 2


@pytest.mark.parametrize("n_tokens", range(2, 10))
def test_values_on_rounded_edges(n_tokens):
    """Of 24ths, wherever the range begins and ends, each is at or above the edge that it is on."""
    for low in range(24):
        for high in range(low + 1, 25):
            whole = np.arange(low, high + 1)
            tokens = (whole - low) * (n_tokens - 1) // (high - low)
            counts = count_tokens(whole[None] / 24, n_tokens, 0.5, own_range=True)
            np.testing.assert_array_equal(counts[0], np.bincount(tokens, minlength=n_tokens))


def test_the_range_of_floats():
    x = np.array([1.0, 0.75, -1.0, -0.75, 0.5])
    y = np.array([0, 0, 1, 1, 1])
    features = np.stack([x, x * np.finfo(float).max, x * 2.0**-1070])
    distances, _ = distances_to_own_class(features, y)
    np.testing.assert_allclose(distances, np.tile(distances_by_loops(x, y), (3, 1)), rtol=1e-12)


@VARIANTS
def test_blocks_of_columns_do_not_matter(variant, monkeypatch):
    X, y = data(m=23)
    X[:, 5] = 1.0
    expected = ILFS(variant=variant).fit(X, y)
    for width in (1, 4):
        monkeypatch.setattr(statistics, "_BLOCK_BYTES", 8 * len(X) * width)
        actual = ILFS(variant=variant).fit(X, y)
        np.testing.assert_array_equal(actual.ranking_, expected.ranking_)
        np.testing.assert_allclose(actual.log_odds_, expected.log_odds_, rtol=1e-12)


def test_other_features_do_not_matter():
    X, y = data()
    np.testing.assert_allclose(ILFS().fit(X[:, 3:5], y).log_odds_, ILFS().fit(X, y).log_odds_[3:5], rtol=1e-12)


def test_copies_are_ranked_in_the_order_of_columns():
    X, y = data(m=6)
    ranking = ILFS().fit(np.tile(X, 2), y).ranking_
    np.testing.assert_array_equal(ranking[6:], ranking[:6] + 1)


def test_order_of_rows_and_names_of_labels_do_not_matter():
    X, y = data(n_classes=3)
    expected = ILFS().fit(X, y)
    order = np.random.default_rng(1).permutation(len(X))
    actual = ILFS().fit(X[order], np.array(["pear", "apple", "fig"])[y[order]])
    np.testing.assert_allclose(actual.log_odds_, expected.log_odds_, rtol=1e-9)
    np.testing.assert_array_equal(actual.classes_, ["apple", "fig", "pear"])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int16, bool])
def test_types_and_layouts(dtype):
    X, y = data()
    X = (2 * X).astype(dtype)
    expected = ILFS().fit(X.astype(np.float64), y).log_odds_
    X = np.asfortranarray(X)
    X.flags.writeable = False
    np.testing.assert_array_equal(ILFS().fit(X, y).log_odds_, expected)


def test_variant_a_is_for_two_classes():
    X, y = data(n_classes=3)
    with pytest.raises(ValueError, match=r"ILFS\(variant='A'\) requires two classes, but y has 3"):
        ILFS(variant="A").fit(X, y)


def test_variant_a_needs_four_tokens():
    X, y = data()
    with pytest.raises(ValueError, match="variant='A' requires at least 4 tokens, but n_tokens is 3"):
        ILFS(variant="A", n_tokens=3).fit(X, y)


def test_swapped_factors_are_reported():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=200)
    X = rng.normal(size=(200, 40))
    X[:, :20] += np.linspace(2, 0, 20) * y[:, None]
    with pytest.warns(UserWarning, match="factors have swapped"):
        selector = ILFS(variant="A", update_tokens=True).fit(X, y)
    assert selector.ranking_[:5].min() > 20
