"""Hostile data is normal data: sparse, constant, far from zero, of low rank, of any type and unit."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cross_decomposition import PLSRegression

from plstream import IncrementalPLS
from tests.oracles import regression_data, relative_error

scales = pytest.mark.parametrize("scale", [True, False])


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_equals_dense(solver, container, dtype):
    X, y = regression_data(60, 9)
    X = np.where(np.abs(X) > 6, X, 0).astype(dtype)
    X[:, 3] = 0.0
    weight = np.linspace(0, 2, 60)
    dense = IncrementalPLS(3, solver=solver).fit(X.astype(np.float64), y, sample_weight=weight)
    model = IncrementalPLS(3, solver=solver, batch_size=13).fit(container(X), y, sample_weight=weight)
    assert relative_error(model.coef_, dense.coef_) < 1e-9
    tolerance = 1e-9 if dtype == np.float64 else 1e-4
    assert relative_error(model.transform(container(X)), dense.transform(X)) < tolerance
    assert relative_error(model.predict(container(X)), dense.predict(X)) < tolerance


def test_sparse_with_nearly_constant_columns(solver):
    """Columns that are sparse in name only are centred as dense ones are."""
    X, y = regression_data(60, 4)
    X[:, 0] += 1e8
    X[:, 1] = 0.1
    model = IncrementalPLS(2, solver=solver, batch_size=16).fit(sparse.csr_array(X), y)
    assert relative_error(model.coef_, IncrementalPLS(2).fit(X, y).coef_) < 1e-8
    assert model.coef_[0, 1] == 0


def test_float32_is_as_exact_as_float64():
    X, y = regression_data(500, 20)
    X += 1000
    single = X.astype(np.float32)
    expected = PLSRegression(4).fit(single.astype(np.float64), y)
    for model in (IncrementalPLS(4).fit(single, y), IncrementalPLS(4).partial_fit(single, y)):
        assert relative_error(model.coef_, expected.coef_) < 1e-9
        scores = model.transform(single)
        assert scores.dtype == np.float32
        assert model.predict(single).dtype == np.float64
        assert relative_error(model.predict(single), expected.predict(single.astype(np.float64))) < 1e-9
        assert relative_error(scores, expected.transform(single.astype(np.float64))) < 1e-5


def test_predictions_for_float32_keep_the_digits_of_y():
    X, y = regression_data(60, 5)
    single, y = X.astype(np.float32), y + 1e8
    expected = PLSRegression(2).fit(single, y)
    model = IncrementalPLS(2).fit(single, y)
    assert model.score(single, y) == pytest.approx(expected.score(single, y), abs=1e-6)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, bool, np.float16, np.longdouble, object])
def test_other_numbers(dtype):
    X, y = regression_data(50, 6)
    X = np.round(np.abs(X)).astype(dtype)
    expected = IncrementalPLS(2).fit(X.astype(np.float64), y)
    for model in (IncrementalPLS(2).fit(X, y), IncrementalPLS(2).partial_fit(X, y)):
        assert relative_error(model.coef_, expected.coef_) < 1e-9
        assert relative_error(model.predict(X), expected.predict(X.astype(np.float64))) < 1e-3


@pytest.mark.parametrize("dtype", [int, bool, np.float32])
def test_y_of_other_numbers(dtype):
    X, y = regression_data(50, 6)
    y = (np.round(y) % 2).astype(dtype)
    model = IncrementalPLS(2).fit(X, y)
    assert relative_error(model.coef_, IncrementalPLS(2).fit(X, y.astype(np.float64)).coef_) < 1e-12


def test_constant_columns_do_not_take_part(solver):
    X, y = regression_data(50, 6)
    padded = np.column_stack([np.full(50, 0.1), X, np.zeros(50), np.full(50, 1e8)])
    model = IncrementalPLS(3, solver=solver, batch_size=8).fit(padded, y)
    assert relative_error(model.coef_[:, 1:7], IncrementalPLS(3).fit(X, y).coef_) < 1e-9
    for name in ("coef_", "x_weights_", "x_rotations_", "x_loadings_"):
        values = getattr(model, name)
        values = values.T if name == "coef_" else values
        assert not values[[0, 7, 8]].any(), name
    assert (model.x_scale_[[0, 7, 8]] == 1).all()


@pytest.mark.parametrize("offset", [1e8, 1e11, 1e14])
def test_rank_is_found_far_from_zero(solver, offset):
    rng = np.random.default_rng(0)
    X = (rng.integers(-4, 5, size=(61, 3)) @ rng.integers(-4, 5, size=(3, 8))).astype(np.float64)
    y = X[:, 0] + rng.normal(size=61)
    with pytest.warns(UserWarning, match="only 3 component"):
        model = IncrementalPLS(5, scale=False, solver=solver, batch_size=16).fit(X + offset, y)
    assert relative_error(model.coef_, IncrementalPLS(3, scale=False).fit(X, y).coef_) < 1e-9


@pytest.mark.parametrize("spectrum", [(1, 1, 1), (1, 1e-3, 1e-6)])
@scales
def test_rank_is_found(solver, spectrum, scale):
    rng = np.random.default_rng(0)
    rank = len(spectrum)
    X = rng.normal(size=(60, rank)) * spectrum @ rng.normal(size=(rank, 30)) + 3
    y = X @ rng.normal(size=30) + rng.normal(size=60)
    with pytest.warns(UserWarning, match="only 3 component") as caught:
        model = IncrementalPLS(7, scale=scale, solver=solver).fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.n_components_ == 3
    assert model.x_weights_.shape == (30, 7)
    assert not model.x_weights_[:, 3:].any()
    assert not model.transform(X)[:, 3:].any()
    exact = IncrementalPLS(3, solver=solver, scale=scale).fit(X, y)
    assert relative_error(model.coef_, exact.coef_) < 1e-9


@pytest.mark.filterwarnings("ignore:X and y have only")
def test_degenerate_data(solver):
    X, y = regression_data(30, 4)
    cases = {
        "constant y": (X, np.full(30, 0.1)),
        "constant X": (np.full((30, 4), 0.1), y),
        "duplicate rows": (np.repeat(X[:1], 30, axis=0), y),
        "one row": (X[:1], y[:1]),
        "one column": (X[:, :1], y),
        "rank one": (np.outer(y, [1.0, 2.0, 3.0, 4.0]), y),
    }
    for name, (rows, target) in cases.items():
        model = IncrementalPLS(1, solver=solver).fit(rows, target)
        prediction = model.predict(rows)
        assert np.isfinite(prediction).all(), name
        assert np.isfinite(model.transform(rows)).all(), name
        assert np.isfinite(model.transform_y(target)).all(), name
        assert np.isfinite(model.vip_).all(), name
        if name in {"constant y", "constant X", "duplicate rows", "one row"}:
            assert model.n_components_ == 0, name
            np.testing.assert_allclose(prediction, target.mean(), rtol=1e-12, err_msg=name)
    assert (
        relative_error(IncrementalPLS(1, solver=solver).fit(*cases["rank one"]).predict(cases["rank one"][0]), y) < 1e-9
    )


@pytest.mark.parametrize(("x_unit", "y_unit"), [(1e100, 1e-100), (1e-100, 1e100), (1e150, 1e150), (1e-150, 1e-150)])
@pytest.mark.parametrize("scale", [True, False])
def test_every_result_is_right_in_any_unit(x_unit, y_unit, scale):
    X, y = regression_data(60, 5)
    reference = IncrementalPLS(2, scale=scale).fit(X, y)
    model = IncrementalPLS(2, scale=scale).fit(X * x_unit, y * y_unit)
    for name in ("vip_", "x_explained_variance_ratio_", "y_explained_variance_ratio_", "x_weights_", "x_loadings_"):
        assert relative_error(getattr(model, name), getattr(reference, name)) < 1e-9, name
    assert relative_error(model.predict(X * x_unit) / y_unit, reference.predict(X)) < 1e-9
    unit = 1.0 if scale else x_unit
    assert relative_error(model.transform_y(y * y_unit) / unit, reference.transform_y(y)) < 1e-9
    assert relative_error(model.transform(X * x_unit) / unit, reference.transform(X)) < 1e-9


@pytest.mark.parametrize("outlier", [2.0**27, 2.0**40])
def test_large_data_that_begins_with_an_outlier(outlier):
    """Data that is read in blocks: sums of squares by integers are exact."""
    rng = np.random.default_rng(0)
    numbers = rng.integers(-500, 500, size=(550_000, 8))
    numbers[0] = int(outlier)
    X = numbers.astype(np.float64)
    y = X[:, 0] / outlier + X[:, 1] + rng.normal(size=len(X))
    model = IncrementalPLS(2).fit(X, y)
    rest, n = numbers[1:], len(numbers)
    sums = [int(outlier) + int(total) for total in rest.sum(axis=0)]
    squares = [int(outlier) ** 2 + int(total) for total in (rest**2).sum(axis=0)]
    variances = np.array([(n * square - total**2) / (n * (n - 1)) for total, square in zip(sums, squares, strict=True)])
    np.testing.assert_allclose(model.x_scale_**2, variances, rtol=1e-11)
    means = np.array([total / n for total in sums])
    np.testing.assert_allclose((model.x_mean_ - means) / np.sqrt(variances), 0, atol=1e-15)
