"""The compiled loops of the exact solvers equal NumPy."""

import numpy as np
import pytest
from scipy import sparse

from plstream.rows import ArrayRows, blocks
from plstream.solvers import MultipassGram
from plstream.solvers.multipass import add_gram_action, add_gram_action_as_is
from plstream.states import moments_of
from plstream.states.moments import add_class_moments, add_moments
from tests.oracles import regression_data
from tests.placement import results_by_place

dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.fixture
def sources(monkeypatch):
    """Return a function that makes two sources of the same data, one that uses compiled loops and one that does not."""

    def make(X, Y, weight=None, batch_size=None, n_classes=0):
        plain = ArrayRows(X, Y, weight, batch_size=batch_size, n_classes=n_classes)
        monkeypatch.setattr(blocks, "SMALL_BYTES", 0)
        compiled = ArrayRows(X, Y, weight, batch_size=batch_size, n_classes=n_classes)
        monkeypatch.undo()
        assert (plain.compiled, compiled.compiled) == (False, True)
        return plain, compiled

    return make


@dtypes
@pytest.mark.parametrize("n", [1, 3, 4, 30])
@pytest.mark.parametrize("q", [1, 2, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments(sources, dtype, n, q, weighted):
    X, Y = regression_data(n, 9, q + 1)
    X, Y = (X + 1000).astype(dtype), Y[:, :q]
    weight = np.linspace(0.5, 2, n) if weighted else None
    (plain,), (compiled,) = (source.blocks() for source in sources(X, Y, weight))
    expected, state = moments_of(plain), moments_of(compiled)
    np.testing.assert_allclose(state.x_mean, expected.x_mean, rtol=1e-14)
    np.testing.assert_allclose(state.x_squares, expected.x_squares, rtol=1e-12, atol=1e-20)
    scale = np.sqrt(np.outer(expected.x_squares, expected.y_squares)).max() + 1e-20
    np.testing.assert_allclose(state.cross, expected.cross, rtol=0, atol=1e-13 * scale)


@dtypes
@pytest.mark.parametrize("n", [1, 3, 30])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_classes(sources, dtype, n, weighted):
    X, _ = regression_data(n, 9)
    X = (X + 1000).astype(dtype)
    weight = np.linspace(0.5, 2, n) if weighted else None
    both = sources(X, np.arange(n)[:, None] % 3, weight, n_classes=4)
    (plain,), (compiled,) = (source.blocks() for source in both)
    expected, state = moments_of(plain), moments_of(compiled)
    np.testing.assert_allclose(state.x_mean, expected.x_mean, rtol=1e-14)
    np.testing.assert_allclose(state.x_squares, expected.x_squares, rtol=1e-12, atol=1e-20)
    scale = np.sqrt(np.outer(expected.x_squares, expected.y_squares)).max() + 1e-20
    np.testing.assert_allclose(state.cross, expected.cross, rtol=0, atol=1e-13 * scale)


@dtypes
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [0, 1e6])
def test_gram_action(sources, dtype, weighted, offset):
    X, Y = regression_data(31, 9, 2)
    X = (X + offset).astype(dtype)
    weight = np.linspace(0, 2, 31) if weighted else None
    v = np.random.default_rng(0).normal(size=9)
    plain, compiled = (MultipassGram(source).read_moments().apply(v) for source in sources(X, Y, weight, batch_size=7))
    np.testing.assert_allclose(compiled[0], plain[0], rtol=1e-10)
    assert compiled[1] == pytest.approx(plain[1], rel=1e-12)


@dtypes
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", [0, 2, 7, 9, 1e4])
def test_gram_action_is_exact_for_small_and_large_means(sources, dtype, weighted, mean):
    # Small ones are subtracted from the products, large ones from the rows.
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(203, 70)) + mean * np.sign(rng.normal(size=70))).astype(dtype)
    weight = rng.uniform(0.5, 2, size=203) if weighted else None
    v = rng.normal(size=70)
    action, square = MultipassGram(sources(X, X[:, :1], weight)[1]).read_moments().apply(v)
    x, w = X.astype(np.longdouble), np.ones(203, np.longdouble) if weight is None else weight.astype(np.longdouble)
    x = x - w @ x / w.sum()
    scores = x @ v
    expected = x.T @ (w * scores)
    assert np.linalg.norm((action - expected).astype(float)) < 1e-14 * np.linalg.norm(expected.astype(float))
    assert square == pytest.approx(float(scores @ (w * scores)), rel=1e-14)


@dtypes
@pytest.mark.parametrize("m", [1, 3, 4, 5, 8, 11, 16, 19, 29, 31, 32, 40])
def test_results_do_not_depend_on_addresses(dtype, m):
    rng = np.random.default_rng(m)
    X = rng.normal(size=(11, m)).astype(dtype)
    X.flags.writeable = False
    shift, v, weight, classes = rng.normal(size=m), rng.normal(size=m), rng.uniform(size=11), np.arange(11) % 3
    for function, arguments in (
        (add_moments, (X, shift, rng.normal(size=(11, 4)), np.zeros(m), np.zeros((4, m)))),
        (add_class_moments, (X, shift, classes, weight, np.zeros(m), np.zeros((3, m)))),
        (add_gram_action, (X, shift, v, weight, np.zeros(11), np.zeros(m))),
        (add_gram_action_as_is, (X, shift, v, weight, np.zeros(11), np.zeros(m))),
    ):
        assert len(results_by_place(function, arguments)) == 1


def test_reads_what_is_not_to_be_written(sources, tmp_path):
    X, Y = regression_data(31, 9, 2)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    (plain,), (compiled,) = sources(X, Y)[0].blocks(), sources(mapped, Y)[1].blocks()
    np.testing.assert_allclose(moments_of(compiled).cross, moments_of(plain).cross, rtol=1e-12)
    assert X.flags.writeable


def test_bad_numbers_are_found(sources):
    X, Y = regression_data(31, 9, 2)
    X[7, 3] = np.nan
    _, compiled = sources(X, Y)
    with pytest.raises(ValueError, match=r"NaN \(first in row 7, column 3\)"):
        MultipassGram(compiled).read_moments()


@pytest.mark.parametrize(
    "form",
    [np.asfortranarray, lambda X: X.astype(">f8"), np.float16, np.int8, lambda X: np.repeat(X, 2, axis=1)[:, ::2]],
)
def test_any_form_of_array(sources, form, monkeypatch):
    monkeypatch.setattr("plstream._core.compiled._COPY_BYTES", 9 * 8 * 7)
    X, Y = regression_data(31, 9, 2)
    X = form(np.round(X))
    v = np.random.default_rng(0).normal(size=9)
    plain, compiled = (MultipassGram(source).read_moments() for source in sources(X, Y))
    np.testing.assert_allclose(compiled.moments.cross, plain.moments.cross, rtol=1e-10)
    np.testing.assert_allclose(compiled.apply(v)[0], plain.apply(v)[0], rtol=1e-10)


def test_small_and_sparse_data_does_without():
    X = np.zeros((4, 3))
    assert not ArrayRows(X, X[:, :1]).compiled
    large = np.broadcast_to(0.0, (2**14, 2**10))
    assert ArrayRows(large, large[:, :1]).compiled
    assert not ArrayRows(sparse.csr_array((2**14, 2**10)), large[:, :1]).compiled
    # Where loops need no copies, they begin to pay off earlier.
    X = np.zeros((2**9, 2**10))
    weight = np.arange(len(X)) > 0
    assert [ArrayRows(rows, X[:, :1]).compiled for rows in (X, np.asfortranarray(X), X[:, :16])] == [True, False, False]
    assert not ArrayRows(X, X[:, :1], weight.astype(float)).compiled
