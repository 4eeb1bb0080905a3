"""Methods by name: nested components, scores as products with directions, and overflow."""

import numpy as np
import pytest
from sklearn.cross_decomposition import PLSSVD

from plstream import CIPLS, IPLS, OLPLS, SGDPLS
from plstream.experiments.methods import METHODS, as_responses, paper_name

from .conftest import make_task, trial_of

NAMES = [name for name in METHODS if name != "sgdpls-steps"]
SIDE_BY_SIDE = {"ipls": IPLS(2), "olpls": OLPLS(2), "cipls": CIPLS(2), "cipls-paper": CIPLS(2, variant="paper")}


def scores(task, name, n_components):
    trial = trial_of(task, name)
    return trial.scores(trial.fit(n_components), trial.train)


@pytest.mark.parametrize("name", [name for name in NAMES if METHODS[name].nested])
def test_first_components_of_many_are_those_of_few(task, name):
    most = METHODS[name].max_components(task.n_classes, task.n_features, 4)
    many = scores(task, name, most)
    for c in range(1, most + 1):
        np.testing.assert_allclose(many[:, :, :c], scores(task, name, c), rtol=1e-7, atol=1e-9)


def test_sgdpls_is_not_nested():
    task = make_task(4)
    assert not np.allclose(scores(task, "sgdpls", 3)[:, :, :1], scores(task, "sgdpls", 1))


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_products_with_directions(task, name):
    method = METHODS[name]
    train = task.splits[0][0]
    c = method.max_components(task.n_classes, task.n_features, 3)
    trial = trial_of(task, name)
    projection = trial.fit(c)
    directions, S = projection.directions(), trial.scores(projection, train)
    assert directions.shape == projection.weights().shape == (S.shape[1], c, task.n_features)
    expected = np.einsum("nj,kij->nki", task.X[train], directions)
    np.testing.assert_allclose(S - S.mean(axis=0), expected - expected.mean(axis=0), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_each_class_has_its_own_model(name):
    task = make_task(4)
    train = task.splits[0][0]
    found = scores(task, name, 2)
    assert found.shape == (len(train), 4, 2)
    for k in range(4):
        own = SIDE_BY_SIDE[name].set_params(target="labels").fit(task.X[train], task.y[train] == k)
        np.testing.assert_allclose(found[:, k], own.transform(task.X[train]), rtol=1e-8, atol=1e-9)


def test_pls_svd_is_that_of_scikit_learn():
    task = make_task(4)
    train = task.splits[0][0]
    X, Y = task.X[train], as_responses(task.y[train], np.arange(4))
    expected = PLSSVD(3, scale=False).fit(X, Y).transform(X)
    found = scores(task, "pls-svd", 3)[:, 0]
    np.testing.assert_allclose(np.abs(found), np.abs(expected), rtol=1e-8, atol=1e-9)


def test_names_in_the_paper():
    names = [paper_name(method) for method in ("cipls-paper", "ipls", "ipls-released", "cipls")]
    assert names == ["cipls", "ipls", "ipls", None]


def test_responses():
    assert as_responses(np.array([3, 7, 3]), np.array([3, 7])).tolist() == [-1, 1, -1]
    assert as_responses(np.array([2, 1]), np.array([1, 2, 3])).tolist() == [[0, 1, 0], [1, 0, 0]]


def test_released_rivals():
    task = make_task(2)
    train = task.splits[0][0]
    X, y = task.X[train], task.y[train]
    for name, model in (
        ("sgdpls-released", SGDPLS(2, variant="released", n_epochs=2, random_state=0)),
        ("ipls-released", IPLS(2, variant="released")),
        ("olpls-released", OLPLS(2, variant="released", forgetting=0.2, eta=0.01, eta_loading=0.01)),
    ):
        np.testing.assert_array_equal(scores(task, name, 2)[:, 0], model.fit(X, y).transform(X))


def test_methods_that_overflow_have_fewer_components():
    task = make_task(2, n_rows=600)
    trial = trial_of(task, "cipls-released")
    projection = trial.fit(10)
    assert 1 < projection.n_components < 10
    assert "no longer finite" in projection.limited
    assert np.isfinite(trial.scores(projection, trial.train)).all()


def test_blocks_of_rows_do_not_matter(task, monkeypatch):
    whole = scores(task, "cipls", 2)
    monkeypatch.setattr("plstream.experiments.task._BLOCK_BYTES", 7 * 8 * task.n_features)
    np.testing.assert_array_equal(scores(task, "cipls", 2), whole)
