"""OLPLS: partial least squares by a gradient step for every row."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from .._core.aligned import Copied
from .._core.signs import peak_signs
from .._core.types import Float64Array
from ..estimators._solution import Solved
from ..solvers import Factors
from ._base import Stream, Supervised, Tile, for_each_column
from ._side_by_side import SideBySide, rotations


@dataclass
class Ascent(Copied):
    """One model of c components for each of q columns of y.

    Attributes
    ----------
    S : ndarray of shape (q, c, m)
        Sums of deflated y times deflated x, older rows weighing less.
    W : ndarray of shape (q, c, m)
        Weights, of unit length, or zero before a component's first row.
    P : ndarray of shape (q, c, m)
        Loadings of x: its regression on the scores.
    C : ndarray of shape (q, c)
        Loadings of y.
    T : ndarray of shape (q, c)
        Running means of the squared scores.
    forgetting, eta, eta_loading : float
        The parameters.
    """

    S: Float64Array
    W: Float64Array
    P: Float64Array
    C: Float64Array
    T: Float64Array
    forgetting: float
    eta: float
    eta_loading: float

    def learn(self, tile: Tile) -> int:
        """Take in rows."""
        from .kernels.olpls import olpls

        v = np.asfortranarray(tile.V)
        several = len(self.W) > 1

        def run(k: int) -> int:
            U = tile.U.copy() if several else tile.U
            state = self.S[k], self.W[k], self.P[k], self.C[k], self.T[k]
            return int(olpls(U, v[:, k], *state, self.forgetting, self.eta, self.eta_loading))

        return for_each_column(run, len(self.W), tile.U.size * self.C.size)


class OLPLS(Supervised):
    """Partial least squares by a gradient step for every row: NIPALS online.

    Every component keeps a covariance s of y with X in which old rows are forgotten, and turns its weights w uphill on
    the squared covariance of y with the score, J(w) = (s.w)^2/(w.w). Rows are then deflated by running regressions on
    that score, and passed on to the next component. Memory is three vectors a component, and a row costs one pass
    over them.

    Parameters
    ----------
    n_components : int, default=2
        Number of components, for each column of y.
    forgetting : float, default=0.999
        Weight of a row in the covariances relative to the row after it, above 0 and at most 1. They are those of about
        1/(1 - forgetting) rows: more follow the components better, fewer follow a stream that changes.
    eta : float, default=0.05
        Step of the weights, above 0 and at most 1. The gradient is divided by the square of s, so that the step is an
        angle and has no unit: that to s falls by this share, about, with every row.
    eta_loading : float, default=0.01
        Step of the loadings, between 0 and 1. The step of least mean squares is divided by a running mean of the
        squared score, with the same weight for the new row. That makes it a regression in which rows are forgotten as
        by 1 - eta_loading, which no row can drive to instability.
    target : {"auto", "labels", "values"}, default="auto"
        What y holds. By default floats are values unless ``classes`` are given, and all else is labels. Two classes
        are one column of -1 and +1; more are one column a class. Every column, and every response, has a model of its
        own, and scores are side by side.

    Attributes
    ----------
    x_weights_ : ndarray of shape (n_features, n_components * n_columns)
        Weights of unit length, largest entries positive: those of the first column of y, then of the second, and on.
    x_loadings_ : ndarray of shape (n_features, n_components * n_columns)
        Regression of the deflated X on each score: a row loses score times loading before the next component.
    y_loadings_ : ndarray of shape (n_columns, n_components * n_columns)
        The same for the column of y that the score belongs to, and zero for the others.
    x_rotations_ : ndarray of shape (n_features, n_components * n_columns)
        What takes centred rows to scores, deflation included.
    x_mean_ : ndarray of shape (n_features,)
        Means of the features, of all rows alike.
    vip_ : ndarray of shape (n_features,)
        Variable importance in projection, of all columns of y, for the rows not yet forgotten. The mean of its squares
        is one.
    classes_ : ndarray of shape (n_classes,)
        The labels, if y holds labels.
    n_components_ : int
        Components that the rows so far have, of all columns; further ones are zero.
    n_samples_seen_ : int
        Rows that the model was made from.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has any that are all strings.

    See Also
    --------
    IncrementalPLS : Exact.

    Notes
    -----
    The weights end near those of PLS for the rows not yet forgotten, and deflation adds up the errors of the components
    before. Measured for 20,000 rows of 12 Gaussian columns whose deviations fall from 2 to 0.4 and a linear response
    with some noise, the least of three draws, cosines with the first three weights of PLS were 0.990, 0.85 and 0.70
    with ``forgetting=0.99``; 0.998, 0.998 and 0.993 with 0.999; 0.9999, 0.999 and 0.994 with 0.9999.

    In the code released with the CIPLS paper the gradient has (s.s) w where (s.w) s belongs. It is parallel to w, which
    never leaves the direction of the first row, and only its length changes, which then diverges. That code does not
    centre rows, and its default forgets four fifths of the covariance with every row. Here the gradient is that of J, w
    keeps unit length, X and y are centred by their running means, and a component begins with the first row that has a
    part left for it.

    References
    ----------
    A. E. Stott, S. Kanna, D. P. Mandic and W. T. Pike, "An online NIPALS algorithm for partial least squares", IEEE
    International Conference on Acoustics, Speech and Signal Processing, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import OLPLS
    >>> X = np.random.default_rng(0).normal(size=(5000, 4))
    >>> model = OLPLS(n_components=1).fit(X, X[:, 0] + X[:, 2])
    >>> model.x_weights_.round(1).T + 0.0
    array([[0.7, 0. , 0.7, 0. ]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Supervised._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "forgetting": [Interval(Real, 0, 1, closed="right")],
        "eta": [Interval(Real, 0, 1, closed="right")],
        "eta_loading": [Interval(Real, 0, 1, closed="neither")],
    }

    x_weights_ = Solved("Weights of X.")
    x_loadings_ = Solved("Loadings of X.")
    y_loadings_ = Solved("Loadings of y.")
    x_rotations_ = Solved("Rotations of X.")
    x_mean_ = Solved("Means of the features.")
    vip_ = Solved("Variable importance in projection.")
    n_components_ = Solved("Components that the rows so far have.")

    def __init__(
        self,
        n_components: int = 2,
        *,
        forgetting: float = 0.999,
        eta: float = 0.05,
        eta_loading: float = 0.01,
        target: str = "auto",
    ) -> None:
        self.n_components = n_components
        self.forgetting = forgetting
        self.eta = eta
        self.eta_loading = eta_loading
        self.target = target

    def _begin(self, n_features: int, n_columns: int) -> Ascent:
        S, W, P = np.zeros((3, n_columns, self.n_components, n_features))
        C, T = np.zeros((2, n_columns, self.n_components))
        return Ascent(S, W, P, C, T, float(self.forgetting), float(self.eta), float(self.eta_loading))

    def _solve(self, stream: Stream) -> SideBySide:
        state: Any = stream.recursion
        models = zip(state.W, state.P, state.C, state.T, strict=True)
        # Further ones are made of what loadings that have not converged leave behind.
        most = min(len(stream.x.origin), max(0, stream.n_rows - 1))
        return SideBySide.of(stream, [_as_factors(most, *model) for model in models])


def _as_factors(most: int, W: Float64Array, P: Float64Array, c: Float64Array, squares: Float64Array) -> Factors:
    W = np.where((np.arange(len(W)) < most)[:, None], W, 0.0)
    P, c = np.where(W.any(axis=1, keepdims=True), P, 0.0), np.where(W.any(axis=1), c, 0.0)
    signs = peak_signs(W.T)
    return Factors(
        x_weights=W.T * signs,
        x_loadings=P.T * signs,
        x_rotations=rotations(W, P).T * signs,
        y_loadings=(c * signs)[None],
        score_squares=squares,
        n_components=int(np.count_nonzero(W.any(axis=1))),
    )
