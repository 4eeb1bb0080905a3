"""SGDPLS: its three algorithms against plain loops and the exact decomposition, and on difficult data."""

import numpy as np
import pytest
from scipy import optimize, sparse
from scipy.linalg import subspace_angles
from sklearn.base import clone
from sklearn.cross_decomposition import PLSSVD
from sklearn.datasets import load_digits, load_iris

from plstream import SGDPLS, open_source

from ..checks import fed
from ..oracles import regression_data, relative_error
from .recursions import plain_released_sgdpls

ALGORITHMS = ["sgd", "msg", "incremental"]
EXTRA_RANK = 10
FEW_COMPONENTS = "ignore:The rows so far have only:UserWarning"


def latent_data(n, m=30, q=20, seed=0, *, noise=1.0):
    """Responses that share five factors of falling size with X, and noise in both."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n, 5))
    A = np.linalg.qr(rng.normal(size=(m, 5)))[0] * [5, 4, 3, 2, 1]
    B = np.linalg.qr(rng.normal(size=(q, 5)))[0]
    X = factors @ A.T + noise * rng.normal(size=(n, m))
    return X + 3, factors @ B.T + 0.3 * noise * rng.normal(size=(n, q)) - 1


def cross_svd(X, Y):
    return np.linalg.svd((X - X.mean(axis=0)).T @ (Y - Y.mean(axis=0)), full_matrices=False)


def angle(model, X, Y):
    """Largest angle, in degrees, of the model's components to those of the exact decomposition."""
    exact = cross_svd(X, Y)[0][:, : model.n_components_]
    return np.rad2deg(subspace_angles(model.x_weights_[:, : model.n_components_], exact).max())


def as_columns(y):
    classes = np.unique(y)
    return np.where(y[:, None] == (classes if len(classes) > 2 else classes[1:]), 1.0, -1.0)


def assert_same_up_to_signs(A, B, atol):
    np.testing.assert_allclose(A * np.sign((A * B).sum(axis=0)), B, rtol=0, atol=atol)


# ----------------------------------------------------------------------------------------- the loops, plainly written


def centred_rows(X, Y):
    """Yield n, x minus the new mean, y minus the old one (whose xy' add up to the centred X'Y), and sizes of steps."""
    x_squares = y_squares = products = 0.0
    x_old, y_old = np.zeros(X.shape[1]), np.zeros(Y.shape[1])
    for n in range(2, len(X) + 1):
        x, y = X[n - 1] - X[:n].mean(axis=0), Y[n - 1] - Y[:n].mean(axis=0)
        t, weight = n - 1, n / (n - 1)
        x_squares, y_squares = x_squares + weight * x @ x, y_squares + weight * y @ y
        products += weight**2 * (x @ x_old) * (y @ y_old)
        norm = np.sqrt(max(products / t, x_squares * y_squares / t**3))
        x_old, y_old = x, y
        y = y * weight
        lengths = np.linalg.norm(x) * np.linalg.norm(y)
        yield n, x, y, 1 / np.sqrt(t) / norm, 0.5 / lengths if lengths else 0.0


def plain_incremental(X, Y, n_components, rank):
    M = np.zeros((X.shape[1], Y.shape[1]))
    for _, x, y, _, _ in centred_rows(X, Y):
        U, s, Vt = np.linalg.svd(M + np.outer(x, y), full_matrices=False)
        M = U[:, :rank] * s[:rank] @ Vt[:rank]
    U, s, Vt = np.linalg.svd(M, full_matrices=False)
    c = n_components
    return U[:, :c], s[:c] / (len(X) - 1), Vt[:c].T


def project_by_bisection(s, total):
    low, high = 0.0, max(s.max(), 1.0)
    if np.clip(s, 0, 1).sum() <= total:
        return np.clip(s, 0, 1)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(s - middle, 0, 1).sum() > total else (low, middle)
    return np.clip(s - high, 0, 1)


def plain_msg(X, Y, n_components, rank, *, eta0, n_steps):
    M = np.zeros((X.shape[1], Y.shape[1]))
    mean = np.zeros_like(M)
    for n, x, y, step, most in centred_rows(X, Y):
        mean = (1 - 2 / n) * mean + 2 / n * np.outer(x, y)
        for _ in range(n_steps):
            U, s, Vt = np.linalg.svd(M + min(eta0 * step, most) / n_steps * np.outer(x, y), full_matrices=False)
            s = project_by_bisection(s[:rank], n_components)
            M = U[:, : len(s)] * s @ Vt[: len(s)]
        kept = np.count_nonzero(s > 1e-13)
        # What leaves the spaces of M is lost to the mean.
        mean = U[:, :kept] @ U[:, :kept].T @ mean @ Vt[:kept].T @ Vt[:kept]
    U, _, Vt = np.linalg.svd(M, full_matrices=False)
    U, V = U[:, :n_components], Vt[:n_components].T
    A, s, Bt = np.linalg.svd(U.T @ mean @ V)
    return U @ A, s, V @ Bt.T


def gram_schmidt(A):
    Q, R = np.linalg.qr(A)
    return Q * np.sign(np.diag(R))


def plain_sgd(X, Y, n_components, *, eta0, n_steps, seed):
    """Gradients for bases whose pairs begin one by one, as rows come with parts outside the ones before."""
    V = np.linalg.qr(np.random.RandomState(seed).standard_normal((Y.shape[1], n_components)))[0]
    U, mean = np.zeros((X.shape[1], 0)), np.zeros((n_components, n_components))
    for n, x, y, step, most in centred_rows(X, Y):
        begun = U.shape[1]
        mean = (1 - 2 / n) * mean
        if begun < n_components:
            left = x - U @ np.linalg.lstsq(U, x, rcond=None)[0]
            U = np.column_stack([U, left / np.linalg.norm(left)])
            free = V[:, begun:]
            # The direction in the free space along y, and any basis of the rest of that space.
            along = free @ free.T @ y
            rest = free - np.outer(along, along @ free) / (along @ along)
            others = np.linalg.svd(rest)[0][:, : n_components - begun - 1]
            V = np.column_stack([V[:, :begun], along / np.linalg.norm(along), others])
            begun += 1
        mean[:begun, :begun] += 2 / n * np.outer(U.T @ x, y @ V[:, :begun])
        for _ in range(n_steps):
            eta = min(eta0 * step, most) / n_steps
            U_new = gram_schmidt(U + eta * np.outer(x, y @ V[:, :begun]))
            gradient = np.outer(y, x @ U_new)
            V_new = gram_schmidt(V + eta * np.column_stack([gradient, np.zeros((len(y), n_components - begun))]))
            # How the bases have turned within their spaces: Gram and Schmidt again, from the first row on.
            turn_U = gram_schmidt((U_new.T @ U).T).T
            turn_V = gram_schmidt((V_new.T @ V).T).T[:begun, :begun]
            if begun == n_components:
                mean = turn_U @ mean @ turn_V.T
            else:
                mean[:begun, :begun] = turn_U @ mean[:begun, :begun] @ turn_V.T
            U, V = U_new, V_new
    A, s, Bt = np.linalg.svd(mean)
    return U @ A, s, V @ Bt.T


PLAIN_DATA = {
    "values": (*latent_data(60, 9, 6), 3),
    "more responses than are kept": (*latent_data(60, 16, 15), 2),
    "more features than rows": (*latent_data(12, 40, 5), 2),
    "one response": (regression_data(50, 6)[0], regression_data(50, 6)[1][:, None], 1),
}


@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("data", PLAIN_DATA)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_equals_plain_loop_for_any_chunks(algorithm, data, n_steps):
    X, Y, c = PLAIN_DATA[data]
    rank = min(X.shape[1], Y.shape[1], c + EXTRA_RANK)
    expected = {
        "sgd": lambda: plain_sgd(X, Y, c, eta0=0.3, n_steps=n_steps, seed=7),
        "msg": lambda: plain_msg(X, Y, c, rank, eta0=0.05, n_steps=n_steps),
        "incremental": lambda: plain_incremental(X, Y, c, rank),
    }[algorithm]()
    model = SGDPLS(c, algorithm=algorithm, n_steps=n_steps, random_state=7)
    for sizes in ([len(X)], [1], [5], [1, 30, 2]):
        fitted = fed(model, X, Y, sizes)
        assert_same_up_to_signs(fitted.x_weights_, expected[0], 1e-10)
        assert_same_up_to_signs(fitted.y_weights_, expected[2], 1e-10)
        np.testing.assert_allclose(fitted.singular_values_, expected[1], rtol=1e-10)


# ------------------------------------------------------------------------------------------------ how close they come


@pytest.mark.parametrize("q", [1, 6, 12])
def test_incremental_is_the_exact_decomposition(q):
    X, Y = latent_data(300, 25, 12)
    X, Y = X * np.linspace(1, 30, 25), Y[:, :q]
    c = min(q, 4)
    model = SGDPLS(c, algorithm="incremental").fit(X, Y)
    batch = PLSSVD(c, scale=False).fit(X, Y)
    assert_same_up_to_signs(batch.x_weights_, model.x_weights_, 1e-10)
    assert_same_up_to_signs(batch.y_weights_, model.y_weights_, 1e-10)
    U, s, Vt = cross_svd(X, Y)
    np.testing.assert_allclose(model.singular_values_, s[:c] / 299, rtol=1e-12)
    product = model.x_weights_ * model.singular_values_ @ model.y_weights_.T
    np.testing.assert_allclose(product, U[:, :c] * s[:c] @ Vt[:c] / 299, rtol=0, atol=1e-12 * s[0])
    assert_same_up_to_signs(batch.transform(X), model.transform(X), 1e-8)


def test_classes_are_learnt_jointly():
    X, y = load_iris(return_X_y=True)
    model = SGDPLS(2, algorithm="incremental").fit(X, y)
    exact = cross_svd(X, as_columns(y))
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    np.testing.assert_allclose(model.y_mean_, as_columns(y).mean(axis=0))
    np.testing.assert_allclose(model.x_mean_, X.mean(axis=0))
    assert_same_up_to_signs(exact[0][:, :2], model.x_weights_, 1e-12)
    np.testing.assert_allclose(model.transform(X), (X - X.mean(axis=0)) @ model.x_weights_, atol=1e-12)


@pytest.mark.parametrize(
    ("algorithm", "most"),
    [("sgd", 6.0), ("msg", 2.0), ("incremental", 0.02)],  # Measured with seeds 0 to 4: up to 4.1, 1.7 and 0.005.
)
@pytest.mark.parametrize("seed", range(3))
def test_angle_to_the_exact_components(algorithm, most, seed):
    X, Y = latent_data(10_000, seed=seed)
    model = SGDPLS(3, algorithm=algorithm, random_state=seed).fit(X, Y)
    assert angle(model, X, Y) < most
    cosines = np.abs((cross_svd(X, Y)[0][:, :3] * model.x_weights_).sum(axis=0))
    assert cosines.min() > np.cos(np.deg2rad(2 * most + 1))
    np.testing.assert_allclose(model.singular_values_, cross_svd(X, Y)[1][:3] / 9999, rtol=0.05)


@pytest.mark.parametrize("algorithm", ["sgd", "msg"])
def test_angle_falls_as_rows_come_in(algorithm):
    angles = np.zeros(3)
    for seed in range(4):
        X, Y = latent_data(32_000, seed=seed)
        model = SGDPLS(3, algorithm=algorithm, random_state=seed)
        for i, (start, stop) in enumerate([(0, 500), (500, 4000), (4000, 32_000)]):
            model.partial_fit(X[start:stop], Y[start:stop])
            angles[i] += angle(model, X[:stop], Y[:stop]) / 4
    assert (angles[1:] < 0.7 * angles[:-1]).all(), angles


def test_more_passes_bring_gradients_closer():
    X, y = load_digits(return_X_y=True)
    for algorithm, most in [("sgd", 4.0), ("msg", 4.0)]:  # Measured with 8 orders of the rows: up to 2.3 and 2.2.
        model = SGDPLS(3, algorithm=algorithm, random_state=0)
        angles = []
        for i in range(10):
            rows = np.random.default_rng(i).permutation(len(X))
            angles.append(angle(model.partial_fit(X[rows], y[rows]), X, as_columns(y)))
        assert angles[-1] < min(most, 0.5 * angles[0])


@pytest.mark.parametrize("n_steps", [10, 100])
def test_many_steps_a_row_are_about_one(n_steps):
    X, Y = latent_data(2000)
    model = SGDPLS(3, n_steps=n_steps, random_state=0).fit(X, Y)
    assert angle(model, X, Y) < 1.1 * angle(clone(model).set_params(n_steps=1).fit(X, Y), X, Y)


# ------------------------------------------------------------------------------------------------------ small pieces


def test_projection_of_singular_values():
    from plstream.online.singular_values import project_singular_values

    rng = np.random.default_rng(0)
    for case in range(200):
        s = np.sort(rng.gamma(0.7, size=rng.integers(1, 12)))[::-1]
        s = np.round(s, 1) if case % 3 == 0 else s  # Ties, ones and zeros.
        total = int(rng.integers(1, 5))
        projected = s.copy()
        project_singular_values(projected, total)
        np.testing.assert_allclose(projected, project_by_bisection(s, total), atol=1e-12)
        assert 0 <= projected.min() <= projected.max() <= 1
        assert projected.sum() <= total + 1e-12


def test_projection_is_the_nearest_point():
    from plstream.online.singular_values import project_singular_values

    s = np.array([1.4, 1.1, 0.8, 0.45, 0.3, 0.02])
    sum_at_most = {"type": "ineq", "fun": lambda z: 2 - z.sum(), "jac": lambda _: -np.ones(6)}
    nearest = optimize.minimize(
        lambda z: ((z - s) ** 2).sum(),
        np.full(6, 0.1),
        jac=lambda z: 2 * (z - s),
        bounds=[(0, 1)] * 6,
        constraints=sum_at_most,
        method="SLSQP",
        options={"ftol": 1e-14},
    ).x
    project_singular_values(s, 2)
    np.testing.assert_allclose(s, nearest, atol=1e-6)


@pytest.mark.parametrize(("m", "q", "rank"), [(300, 7, 4), (5, 40, 3), (600, 1, 1), (3, 3, 3)])
def test_one_row_is_a_rank_one_update(m, q, rank):
    from plstream.online.singular_values import incremental_svd

    rng = np.random.default_rng(0)
    U, V = gram_schmidt(rng.normal(size=(m, rank))), gram_schmidt(rng.normal(size=(q, rank)))
    s = np.arange(rank, 0.0, -1)
    for x in (rng.normal(size=m), U[:, 0].copy(), 1e-9 * rng.normal(size=m) + U[:, 0], np.zeros(m)):
        y = rng.normal(size=q)
        expected = np.linalg.svd(U * s @ V.T + 10 / 9 * np.outer(x, y), full_matrices=False)
        new_U, new_s, new_V = U.T.copy(), s.copy(), V.T.copy()
        assert incremental_svd(x[None].copy(), y[None].copy(), 9, new_U, new_s, new_V) == -1
        np.testing.assert_allclose(new_s, expected[1][:rank], rtol=1e-13)
        product = expected[0][:, :rank] * expected[1][:rank] @ expected[2][:rank]
        np.testing.assert_allclose(new_U.T * new_s @ new_V, product, atol=1e-13)
        np.testing.assert_allclose(new_U @ new_U.T, np.eye(rank), atol=1e-13)


@pytest.mark.parametrize("eta0", [None, 1e3])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_bases_stay_orthonormal(algorithm, eta0):
    X, Y = latent_data(20_001, 12, 8, noise=0.01)
    model = SGDPLS(4, algorithm=algorithm, eta0=eta0, random_state=0).fit(X, Y)
    for weights in (model.x_weights_, model.y_weights_):
        np.testing.assert_allclose(weights.T @ weights, np.eye(4), atol=1e-13)
    assert (np.abs(model.x_weights_).max(axis=0) == model.x_weights_.max(axis=0)).all()
    assert (np.diff(model.singular_values_) <= 0).all()


def test_msg_stays_in_its_set():
    X, Y = latent_data(500)
    model = SGDPLS(3, algorithm="msg", eta0=1.0)
    for start in range(0, 500, 10):
        model.partial_fit(X[start : start + 10], Y[start : start + 10])
        s = model._state.recursion.s
        assert (np.diff(s) <= 0).all()
        assert 0 <= s.min() <= s.max() <= 1
        assert s.sum() <= 3 + 1e-12
    assert s.sum() > 3 - 1e-12


# -------------------------------------------------------------------------------------------------------- dimensions


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_components_past_the_rank_are_zero(algorithm):
    """The released code returns what is left of its random start: with one response, all components but one."""
    X, Y = latent_data(200, 8, 5)
    cases = [
        (X, Y[:, 0], 1),
        (X, (Y[:, 0] > 0).astype(int), 1),
        (X, np.digitize(Y[:, 0], [-1.5, -0.5]), 2),
        (X, np.column_stack([Y[:, 0], 2 * Y[:, 0], Y[:, 1], Y[:, 0] - Y[:, 1]]), 2),
        (np.outer(X[:, 0], np.arange(1.0, 5.0)), Y, 1),
        (X[:3], Y[:3], 2),
        (X[:1].repeat(20, axis=0), Y[:20], 0),
        (X[:20], Y[:1].repeat(20, axis=0), 0),
    ]
    for rows, y, rank in cases:
        with pytest.warns(UserWarning, match=f"have only {rank} of 3 component"):
            model = SGDPLS(3, algorithm=algorithm, random_state=0).fit(rows, y)
        assert model.n_components_ == rank
        assert (model.x_weights_[:, rank:] == 0).all()
        assert (model.singular_values_[rank:] == 0).all()
        assert (model.singular_values_[:rank] > 0).all()
        assert model.transform(rows).shape == (len(rows), 3)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_are_columns_of_values(algorithm, n_classes):
    X, Y = latent_data(100, 6)
    labels = np.array(list("dbca"))[np.digitize(Y[:, 0], [-2, -1, 0][-n_classes + 1 :])]
    of_labels = SGDPLS(n_classes - 1, algorithm=algorithm, random_state=0).fit(X, labels)
    of_values = clone(of_labels).fit(X, as_columns(labels))
    assert len(of_labels.classes_) == n_classes
    np.testing.assert_allclose(of_labels.x_weights_, of_values.x_weights_, atol=1e-10)
    np.testing.assert_allclose(of_labels.y_weights_, of_values.y_weights_, atol=1e-10)


# --------------------------------------------------------------------------------------------------- random numbers


def test_random_state():
    X, Y = latent_data(200)
    model = SGDPLS(3, random_state=3).fit(X, Y)
    np.testing.assert_array_equal(clone(model).fit(X, Y).x_weights_, model.x_weights_)
    again = SGDPLS(3, random_state=np.random.RandomState(3)).fit(X, Y)
    np.testing.assert_array_equal(again.x_weights_, model.x_weights_)
    other = SGDPLS(3, random_state=4).fit(X, Y)
    assert np.abs(other.x_weights_ - model.x_weights_).max() > 1e-3
    # Random numbers are drawn before the first row, not in later calls.
    generator = np.random.RandomState(3)
    in_parts = SGDPLS(3, random_state=generator).partial_fit(X[:100], Y[:100])
    generator.standard_normal(5)
    np.testing.assert_array_equal(in_parts.partial_fit(X[100:], Y[100:]).x_weights_, model.x_weights_)
    for algorithm in ("msg", "incremental"):
        one, two = (SGDPLS(2, algorithm=algorithm, random_state=seed).fit(X, Y) for seed in (0, 1))
        np.testing.assert_array_equal(one.x_weights_, two.x_weights_)


# ------------------------------------------------------------------------------------------------------- hard data


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_units_do_not_matter(algorithm):
    X, Y = latent_data(150)
    model = SGDPLS(3, algorithm=algorithm, random_state=0).fit(X, Y)
    for x_unit, y_unit in [(1e150, 1e150), (1e-150, 1e-150), (1e150, 1e-3), (7.0, 1e-100)]:
        other = clone(model).fit(X * x_unit, Y * y_unit)
        np.testing.assert_allclose(other.x_weights_, model.x_weights_, atol=1e-9)
        np.testing.assert_allclose(other.y_weights_, model.y_weights_, atol=1e-9)
        np.testing.assert_allclose(other.singular_values_ / x_unit / y_unit, model.singular_values_, rtol=1e-9)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("options", [{}, {"eta0": 1e6, "n_steps": 5}])
def test_long_streams_of_large_values_do_not_overflow(algorithm, options):
    """The released code overflows after about 5,600 rows."""
    X, Y = latent_data(1000)
    model = SGDPLS(3, algorithm=algorithm, random_state=0, **options)
    for _ in range(20):
        model.partial_fit(1e100 * X, Y)
    assert np.isfinite(model.x_weights_).all()
    np.testing.assert_allclose(model.x_weights_.T @ model.x_weights_, np.eye(3), atol=1e-12)
    assert options or angle(model, X, Y) < 3


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_large_means_do_not_matter(algorithm):
    X, Y = latent_data(300)
    X, Y = np.round(X * 1024) / 1024, np.round(Y * 1024) / 1024
    model = SGDPLS(3, algorithm=algorithm, random_state=0).fit(X, Y)
    moved = clone(model).fit(X + 2.0**30, Y - 2.0**30)
    np.testing.assert_allclose(moved.x_weights_, model.x_weights_, atol=1e-9)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_outlier_among_rows(algorithm):
    X, Y = latent_data(300)
    X[200] *= 1e6
    model = SGDPLS(3, algorithm=algorithm, random_state=0).fit(X, Y)
    assert np.isfinite(model.transform(X)).all()
    np.testing.assert_allclose(model.x_weights_.T @ model.x_weights_, np.eye(3), atol=1e-12)


@pytest.mark.filterwarnings(FEW_COMPONENTS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_class_for_a_long_time(algorithm):
    X, y = load_iris(return_X_y=True)
    model = SGDPLS(2, algorithm=algorithm, random_state=0)
    for label in (2, 0, 1):
        model.partial_fit(X[y == label], y[y == label], classes=[0, 1, 2])
        assert np.isfinite(model.transform(X)).all()
    assert model.n_components_ == 2
    # All iris of one class come together, which is hard on gradients, but the first direction is plain.
    first = cross_svd(X, as_columns(y))[0][:, 0]
    assert abs(first @ model.x_weights_[:, 0]) > 0.95


@pytest.mark.filterwarnings(FEW_COMPONENTS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_degenerate_rows(algorithm):
    X, Y = latent_data(40, 6)
    X = np.column_stack([X, np.full(40, 5.0), X[:, 0]])
    X, Y = X.repeat(2, axis=0), Y.repeat(2, axis=0)
    model = SGDPLS(3, algorithm=algorithm, random_state=0).fit(X, Y)
    assert (model.x_weights_[6] == 0).all()
    np.testing.assert_allclose(model.x_weights_[7], model.x_weights_[0], atol=1e-12)
    of_sparse = clone(model).fit(sparse.csr_array(X), Y)
    np.testing.assert_array_equal(of_sparse.x_weights_, model.x_weights_)
    for n in range(1, 4):
        assert np.isfinite(clone(model).fit(X[:n], Y[:n]).transform(X)).all()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_numbers_that_are_no_longer_finite(algorithm):
    X, Y = latent_data(30)
    model = SGDPLS(2, algorithm=algorithm, random_state=0).fit(X, Y)
    before = model.transform(X)
    with pytest.raises(ValueError, match=r"no longer finite.*unchanged by this call"):
        model.partial_fit(1e200 * X, Y)
    np.testing.assert_array_equal(model.transform(X), before)
    assert model.n_samples_seen_ == 30


@pytest.mark.parametrize(
    "options", [{"algorithm": "adam"}, {"eta0": 0.0}, {"eta0": -1.0}, {"n_steps": 0}, {"n_components": 0}]
)
def test_wrong_parameters(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        SGDPLS(**options).fit(*latent_data(20))


def test_parameters_do_not_change_during_a_stream():
    X, Y = latent_data(40)
    model = SGDPLS(2, random_state=0).partial_fit(X, Y)
    with pytest.raises(ValueError, match="algorithm cannot change"):
        model.set_params(algorithm="msg").partial_fit(X, Y)


# ---------------------------------------------------------------------------------------------- epochs, and as released


@pytest.mark.parametrize("n_epochs", [1, 7])
@pytest.mark.parametrize("q", [1, 6])
def test_released_equals_plain_loop(q, n_epochs):
    X, Y = latent_data(60, 9, 6)
    Y = Y[:, :q]
    U, V = plain_released_sgdpls(X, Y, 3, 5, n_epochs=n_epochs)
    model = SGDPLS(3, variant="released", n_epochs=n_epochs, random_state=np.random.RandomState(5)).fit(X, Y)
    assert relative_error(model._state.recursion.V.T, V) < 1e-10
    assert relative_error(np.abs(model.x_weights_), np.abs(U)) < 1e-10
    # Neither rows nor scores are centred.
    assert relative_error(np.abs(model.transform(X)), np.abs(X @ U)) < 1e-10
    np.testing.assert_allclose(np.abs(model.y_weights_), np.abs(V) / np.linalg.norm(V, axis=0), rtol=1e-10)
    assert model.n_samples_seen_ == 60 * n_epochs
    assert not model.x_mean_.any()
    with pytest.raises(AttributeError, match="does not estimate singular values"):
        _ = model.singular_values_


def test_released_with_a_call_for_each_row():
    """That code makes its passes in every call: with one row in each, they are steps with that row."""
    X, y = regression_data(40, 5)
    rows = np.repeat(X / 10, 3, axis=0), np.repeat(y[:, None], 3, axis=0)
    U, _ = plain_released_sgdpls(*rows, 2, 0, n_epochs=1)
    model = SGDPLS(2, variant="released", n_steps=3, random_state=0)
    for sizes in ([1], [7], [40]):
        assert relative_error(np.abs(fed(model, X / 10, y, sizes).x_weights_), np.abs(U)) < 1e-10


@pytest.mark.parametrize("options", [{}, {"algorithm": "msg"}, {"variant": "released"}], ids=str)
def test_epochs_are_calls_of_partial_fit(options):
    X, Y = latent_data(60, 9, 6)
    model = SGDPLS(2, random_state=0, n_epochs=3, **options).fit(X, Y)
    again = SGDPLS(2, random_state=0, **options)
    for _ in range(3):
        again.partial_fit(X[:17], Y[:17]).partial_fit(X[17:], Y[17:])
    np.testing.assert_array_equal(model.x_weights_, again.x_weights_)
    of_source = SGDPLS(2, random_state=0, n_epochs=3, **options).fit(open_source(X, target=Y, batch_size=25))
    np.testing.assert_array_equal(of_source.x_weights_, again.x_weights_)
    with pytest.raises(ValueError, match="can be read only once"):
        model.fit(open_source(iter([(X, Y)])))
    np.testing.assert_array_equal(model.x_weights_, again.x_weights_)


def test_released_has_100_epochs():
    X, y = regression_data(30, 4)
    model = SGDPLS(1, variant="released", random_state=0).fit(X / 10, y)
    assert model.n_samples_seen_ == 3000
    assert SGDPLS(1).fit(X, y).n_samples_seen_ == 30
    cross = (X / 10).T @ y
    assert abs(model.x_weights_[:, 0] @ cross) > 0.99 * np.linalg.norm(cross)


def test_released_overflow_and_parameters():
    X, y = regression_data(30, 4)
    model = SGDPLS(2, variant="released", n_epochs=1, random_state=0).fit(X, y)
    before = model.transform(X)
    with pytest.raises(ValueError, match=r"Component \d is no longer finite: center and scale"):
        model.partial_fit(X * 1e100, y)
    with pytest.raises(ValueError, match=r"Component \d is no longer finite: center and scale"):
        model.partial_fit(X[:1] * 1e200, y[:1] * 1e200)
    np.testing.assert_array_equal(model.transform(X), before)
    # Matrices as large as numbers can be still have bases.
    model._state.recursion.U[:] *= 1e300
    model._solved = None
    np.testing.assert_allclose(model.transform(X), before, rtol=1e-10)
    for options, message in (({"algorithm": "msg"}, "requires algorithm='sgd'"), ({"n_epochs": 0}, "n_epochs")):
        with pytest.raises(ValueError, match=message):
            SGDPLS(variant="released", **options).fit(X, y)


@pytest.mark.filterwarnings(FEW_COMPONENTS)
@pytest.mark.parametrize("unit", [1.0, 1e-150])
def test_released_with_degenerate_rows(unit):
    X, y = regression_data(30, 4)
    cases = (np.zeros((30, 4)), np.full((30, 4), 0.3), X[:1], np.outer(y, np.arange(4.0)), X[:, :1])
    for rows in cases:
        model = SGDPLS(3, variant="released", n_epochs=3, random_state=0).fit(rows * unit, y[: len(rows)])
        assert np.isfinite(model.transform(rows * unit)).all()
        assert model.n_components_ == min(3, rows.shape[1])
