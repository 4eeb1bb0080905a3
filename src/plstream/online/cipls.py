"""CIPLS: partial least squares without a covariance matrix, one row at a time."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from .._core.aligned import Copied
from .._core.projection import centred_product
from .._core.signs import peak_signs
from .._core.types import Array, Float64Array
from ..estimators._solution import Solved
from ..rows import by_blocks
from ..solvers import Factors
from ._base import Stream, Supervised, Tile, for_each_column
from ._side_by_side import SideBySide, rotations


@dataclass
class Normalized(Copied):
    """The recursion that tends to PLS.

    It keeps X'y, which is exact, and for every component the product of X'X with its rotation r, gathered row by row as
    the sum of t u. All else follows from these as in batch PLS. When a row turns r, the product is turned along.

    Attributes
    ----------
    cross : ndarray of shape (q, m)
        X'y, centred.
    actions : ndarray of shape (q, c, m)
        X'X r.
    squares : ndarray of shape (q, c)
        r'X'X r.
    residuals : ndarray of shape (q, c + 1)
        Sums of squares of the rows, and what is left of them after each component.
    y_products, t_squares : ndarray of shape (q, c)
        Products of the scores with what is left of y, and with themselves: a regression of y that does not depend on
        how exact the rotations are.
    amnesic : float
        How much more new rows weigh in ``actions`` than in a plain sum.
    x_total, y_total : float, ndarray of shape (q,)
        Sums of squares.
    """

    cross: Float64Array
    actions: Float64Array
    squares: Float64Array
    residuals: Float64Array
    y_products: Float64Array
    t_squares: Float64Array
    amnesic: float
    x_total: float
    y_total: Float64Array

    @classmethod
    def of(cls, n_components: int, n_features: int, n_columns: int, amnesic: float) -> Normalized:
        """Return the state before the first row."""
        return cls(
            cross=np.zeros((n_columns, n_features)),
            actions=np.zeros((n_columns, n_components, n_features)),
            squares=np.zeros((n_columns, n_components)),
            residuals=np.zeros((n_columns, n_components + 1)),
            y_products=np.zeros((n_columns, n_components)),
            t_squares=np.zeros((n_columns, n_components)),
            amnesic=amnesic,
            x_total=0.0,
            y_total=np.zeros(n_columns),
        )

    def learn(self, tile: Tile) -> int:
        """Take in rows."""
        from .kernels.cipls import cipls_normalized

        v = np.asfortranarray(tile.V)
        self.x_total = tile.x_total
        several = len(self.cross) > 1

        def run(k: int) -> int:
            U = tile.U.copy() if several else tile.U
            vectors = self.cross[k], self.actions[k]
            numbers = self.squares[k], self.residuals[k], self.y_products[k], self.t_squares[k], self.y_total[k : k + 1]
            return int(cipls_normalized(U, v[:, k], *vectors, *numbers, tile.n_before, self.amnesic))

        return for_each_column(run, len(self.cross), tile.U.size * self.squares.size)

    def factors(self) -> list[Factors]:
        """Return the PLS factors that the state amounts to."""
        return [self._factors(k) for k in range(len(self.cross))]

    def _factors(self, k: int) -> Factors:
        """Follow the directions from X'y on as the recursion does with every row.

        Rotations are those of the scores that the recursion forms. They would follow from the weights as W (P'W)^-1 if
        these were exact; as it is, that would magnify what later components have of errors.
        """
        directions, loadings = np.zeros_like(self.actions[k]), np.zeros_like(self.actions[k])
        w, found = self.cross[k], 0
        # What is smaller is a rounding error, of a deflation or of X'y itself.
        least = max(1e-12 * np.linalg.norm(w), 1e-14 * np.sqrt(self.x_total) * np.sqrt(self.y_total[k]))
        for i, (action, square) in enumerate(zip(self.actions[k], self.squares[k], strict=True)):
            length = np.linalg.norm(w)
            if length <= least or square <= 0:
                break
            directions[i], loadings[i], found = w / length, action / square, i + 1
            w = w - length * loadings[i]
        signs = peak_signs(directions.T)
        t_squares = np.where(np.arange(len(signs)) < found, self.t_squares[k], 0.0)
        slopes = self.y_products[k] / np.where(t_squares > 0, t_squares, 1.0)
        return Factors(
            x_weights=_orthonormal(directions[:found] * signs[:found, None], len(signs)),
            x_loadings=(loadings * signs[:, None]).T,
            x_rotations=(rotations(directions, loadings) * signs[:, None]).T,
            y_loadings=np.where(t_squares > 0, slopes * signs, 0.0)[None],
            score_squares=t_squares,
            n_components=found,
        )


def _orthonormal(directions: Float64Array, n_columns: int) -> Float64Array:
    """Return columns that span what the first rows do, each, and are near to them; further columns are zero."""
    columns = np.zeros((directions.shape[1], n_columns))
    Q, R = np.linalg.qr(directions.T)
    columns[:, : len(directions)] = Q * np.where(np.diag(R) < 0, -1.0, 1.0)
    return columns


@dataclass
class Literal(Copied):
    """The recursions of the paper and of its authors' code, where loadings are sums that are never divided.

    Attributes
    ----------
    W, P : ndarray of shape (q, c, m)
        Directions and loadings of X.
    Q : ndarray of shape (q, c)
        Loadings of y.
    squares : ndarray of shape (q, c)
        Sums of squares of the scores that the loadings were made with.
    released : bool
        Whether as in the code and not as in the paper.
    """

    W: Float64Array
    P: Float64Array
    Q: Float64Array
    squares: Float64Array
    released: bool

    @classmethod
    def of(cls, n_components: int, n_features: int, n_columns: int, *, released: bool) -> Literal:
        """Return the state before the first row."""
        shape = n_columns, n_components
        W, P = np.zeros((*shape, n_features)), np.zeros((*shape, n_features))
        return cls(W, P, np.zeros(shape), np.zeros(shape), released)

    def learn(self, tile: Tile) -> int:
        """Take in rows."""
        from .kernels.cipls import cipls_paper, cipls_released

        y, v = np.array(tile.Y, order="F"), np.asfortranarray(tile.V)
        several = len(self.W) > 1

        def run(k: int) -> int:
            U = tile.U.copy() if several else tile.U
            state = self.W[k], self.P[k], self.Q[k], self.squares[k]
            if self.released:
                return int(cipls_released(U, y[:, k], v[:, k], *state, tile.n_before))
            return int(cipls_paper(U, y[:, k], *state))

        return for_each_column(run, len(self.W), tile.U.size * self.Q.size)

    def factors(self) -> list[Factors]:
        """Return unit directions, which are the rotations too, and loadings as averages."""
        return [_as_factors(*state) for state in zip(self.W, self.P, self.Q, self.squares, strict=True)]


def _as_factors(W: Float64Array, P: Float64Array, q: Float64Array, squares: Float64Array) -> Factors:
    # The largest entry first: squares of it may overflow.
    W = W / np.maximum(np.abs(W).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    lengths = np.linalg.norm(W, axis=1, keepdims=True)
    signs = peak_signs(W.T)
    unit = (W * signs[:, None] / np.where(lengths > 0, lengths, 1.0)).T
    counts = np.where(squares > 0, squares, 1.0) * signs
    return Factors(unit, (P / counts[:, None]).T, unit, (q / counts)[None], squares, int(np.count_nonzero(lengths)))


def _tends_to_pls(model: Any) -> bool:
    if model.variant != "normalized":
        raise AttributeError(
            f"variant={model.variant!r} has loadings that no prediction can be made with: use variant='normalized'."
        )
    return True


class CIPLS(Supervised):
    """Covariance-free incremental partial least squares: one row at a time, without a covariance matrix.

    A row costs a few passes over the components, and memory is that of a few vectors a component. It is the method of
    the paper below, in three variants:

    - "normalized" is ours, and the one to use. Scores are divided by their sums of squares as they are in PLS, X'y is
      exact, and the loadings follow when directions turn. It tends to batch PLS as rows come in.
    - "paper" is Algorithm 1 to the letter, and "released" is what the code of its authors computes. Both are here to
      reproduce results. Their first component is that of PLS (in "paper" nearly so). Further ones are not, however
      many rows there are: their loadings are sums that are never divided, so that deflation adds a growing multiple of
      a loading instead of removing it. They come out as near copies of the first, and numbers overflow.

    On 12 Gaussian columns of variances from 12 to 0.5, a linear response and 50,000 rows, cosines of directions 2, 3
    and 4 to those of batch PLS are 1.000, 0.999 and 0.998 for "normalized", 0.28, 0.01 and 0.01 for "paper" and for
    "released" (medians of 10 draws). "normalized" needs rows in random order, and many: on 5,400 pairs of faces with
    8,192 features its cosines are 0.997, 0.990 and 0.931. If the data can be read again, or memory holds a few hundred
    rows, :class:`IncrementalPLS` is closer to PLS.

    Parameters
    ----------
    n_components : int, default=2
        Number of components.
    variant : {"normalized", "paper", "released"}, default="normalized"
        Which recursion, see above.
    amnesic : float, default=0.0
        How much more a new row weighs in the loadings than in a plain average, l: (1 + l)/n instead of 1/n. With 0.5 to
        1 the loadings of the first rows, whose directions were far off, are forgotten sooner: better with many more
        rows than features, worse with fewer. Only for "normalized".
    target : {"auto", "labels", "values"}, default="auto"
        What y holds. "auto": floats are values, unless ``partial_fit`` is given classes; integers, truth values and
        text are labels.

    Attributes
    ----------
    x_weights_, x_loadings_, x_rotations_ : ndarray of shape (n_features, n_components * n_columns)
        Weights, loadings and rotations of X. With more than two classes or with several responses there is a model for
        each of them, and these are side by side. Scores are ``(X - x_mean_) @ x_rotations_``. For "normalized" weights
        are orthonormal. For "paper" and "released" they have unit length, rotations are the weights, as in the authors'
        code, and loadings are divided by the sums of squares of the scores they were made with.
    y_loadings_ : ndarray of shape (n_columns, n_components * n_columns)
        Loadings of y; zero where a component belongs to another column.
    coef_ : ndarray of shape (n_columns, n_features)
        Coefficients: ``y = (X - x_mean_) @ coef_.T + intercept_``; of -1 and +1 for labels. Only of use with
        "normalized".
    intercept_, y_mean_ : ndarray of shape (n_columns,)
        Means of y.
    x_mean_ : ndarray of shape (n_features,)
        Means of X.
    vip_ : ndarray of shape (n_features,)
        Variable importance in projection, of all columns of y. The mean of its squares is one.
    classes_ : ndarray of shape (n_classes,)
        The labels, if y holds labels.
    n_components_ : int
        Components that the rows so far have, of all columns of y; further ones are zero. (In "paper" and "released"
        every component begins with the second row, whatever the rows have.)
    n_samples_seen_ : int
        Rows that the model was made from.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has any that are all strings.

    See Also
    --------
    IncrementalPLS : Exact in several reads, and close to exact in one, with somewhat more memory.

    Notes
    -----
    Two classes are one response of -1 and +1. With more, there is one for each class against the rest, as in the
    authors' code. Their code turns labels 0 into -1 by what each chunk happens to hold; here labels are fixed at the
    first call.

    VIP divides by sums of squares of scores, :math:`SS_i = (y^T t_i)^2 / t_i^T t_i`, and takes squares of weights; the
    formula in the paper has no square, and its sums can be negative. In "paper" and "released" the last component has
    nearly all of the weight.

    References
    ----------
    A. Jordao, M. Lie, V. H. C. de Melo and W. R. Schwartz, "Covariance-free Partial Least Squares: An Incremental
    Dimensionality Reduction Method", IEEE Winter Conference on Applications of Computer Vision, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import CIPLS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 10))
    >>> y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
    >>> model = CIPLS(n_components=2)
    >>> for start in range(0, 2000, 100):
    ...     rows = slice(start, start + 100)
    ...     model = model.partial_fit(X[rows], y[rows], classes=["no", "yes"])
    >>> model.transform(X).shape
    (2000, 2)
    >>> bool(np.mean(model.predict(X) == y) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Supervised._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "variant": [StrOptions({"normalized", "paper", "released"})],
        "amnesic": [Interval(Real, 0, None, closed="left")],
    }

    x_weights_ = Solved("Weights of X.")
    x_loadings_ = Solved("Loadings of X.")
    x_rotations_ = Solved("Rotations of X.")
    y_loadings_ = Solved("Loadings of y.")
    coef_ = Solved("Coefficients of the centred X.")
    intercept_ = Solved("Means of y.")
    x_mean_ = Solved("Means of X.")
    y_mean_ = Solved("Means of y.")
    vip_ = Solved("Variable importance in projection.")
    n_components_ = Solved("Components that the rows so far have.")

    def __init__(
        self, n_components: int = 2, *, variant: str = "normalized", amnesic: float = 0.0, target: str = "auto"
    ) -> None:
        self.n_components = n_components
        self.variant = variant
        self.amnesic = amnesic
        self.target = target

    @available_if(_tends_to_pls)
    def predict(self, X: Any) -> Array:
        """Predict labels or values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Labels, the one whose response is predicted to be largest; or values, with as many dimensions as the y of
            the fit.
        """
        solution = self._solution()
        coefficients = solution.coef.T
        values: Any = by_blocks(self, X, lambda rows: centred_product(rows, solution.x_mean, coefficients))
        return self._targets.decode(values + solution.y_mean)

    def _begin(self, n_features: int, n_columns: int) -> Normalized | Literal:
        shape = self.n_components, n_features, n_columns
        if self.variant == "normalized":
            return Normalized.of(*shape, self.amnesic)
        if self.amnesic:
            raise ValueError(f"amnesic={self.amnesic} is for variant='normalized': set it to 0.")
        return Literal.of(*shape, released=self.variant == "released")

    def _new_stream(self, n_features: int, n_columns: int) -> Stream:
        # The results of the other variants depend on the units.
        self._any_unit = self.variant == "normalized"
        stream: Stream = super()._new_stream(n_features, n_columns)
        if self.variant != "normalized":
            stream.advice += ", or variant='normalized'"
        return stream

    def _solve(self, stream: Stream) -> SideBySide:
        recursion: Any = stream.recursion
        return SideBySide.of(stream, recursion.factors())
