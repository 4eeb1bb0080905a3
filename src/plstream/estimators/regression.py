"""IncrementalPLS: PLS regression for data larger than memory and for streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.utils import check_array

from .._core.errors import counted
from .._core.projection import centred_product
from .._core.schema import Object, stored
from .._core.types import Array, Float64Array, FloatArray, Rows
from .._core.validation import as_numpy
from ..data import Source
from ..rows import by_blocks, is_collection, opened_data
from ..solvers import Journal
from .attributes import NotKept
from .base import SingleModel
from .fitted import Fitted
from .heads import RegressionHead, open_values
from .scores import ResidualSums, score_of
from .settings import Settings
from .training import fit_rows, learn_one_row, learn_rows


class RegressionMethods(RegressorMixin, MultiOutputMixin):
    """Methods of regressions: predictions and scores of responses."""

    _fitted: Any
    _solution: Any
    _components_to_use: Any
    _completing: Any
    _n_features_out: int

    x_scores_ = NotKept("transform(X)")
    y_scores_ = NotKept("transform_y(y)")

    def predict(self, X: Any, *, n_components: int | None = None) -> FloatArray:
        """Predict the responses of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The rows. With a Dask array or dataframe the result is a Dask array.
        n_components : int, default=None
            Use only the first components, like a model fitted with that number.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            With the same number of dimensions as y in ``fit``.
        """
        return by_blocks(self, X, self._responses(n_components))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R2 of the predictions, averaged over responses.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The rows. Sources are read block by block; the rows and predictions of a Dask collection stay on its
            workers.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The responses; None with a source, which provides them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights.

        Returns
        -------
        score : float
        """
        X, y = opened_data(X, y)
        if not (isinstance(X, Source) or is_collection(X)):
            return float(super().score(X, y, sample_weight))
        predict = self._responses(None)
        with open_values(self, X, y, sample_weight, self._fitted.head) as (rows, _):
            return score_of(rows, ResidualSums, predict)

    def _responses(self, n_components: int | None) -> Callable[[Rows], FloatArray]:
        """Return a function that predicts the responses of rows."""
        solution, k = self._solution(), self._components_to_use(n_components)
        coefficients, head = solution.coefficients(k).T, self._fitted.head

        def responses(rows: Rows) -> FloatArray:
            prediction = centred_product(rows, solution.x_mean, coefficients)
            prediction += solution.y_mean
            return head.shaped(prediction)

        completing: Callable[[Rows], FloatArray] = self._completing(responses)
        return completing

    def transform_y(self, y: Any) -> Float64Array:
        """Return the scores of y.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The responses.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_components)
        """
        solution = self._solution()
        Y = check_array(as_numpy(y, "y"), ensure_2d=False, dtype=np.float64, input_name="y")
        Y = Y.reshape(-1, 1) if Y.ndim == 1 else Y
        self._fitted.head.require_targets(Y.shape[1])
        return ((Y - solution.y_mean) / solution.y_scale) @ solution.y_rotations

    def inverse_transform(self, X: Any, y: Any = None) -> Float64Array | tuple[Float64Array, Float64Array]:
        """Transform scores back to the original space.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Scores of X.
        y : array-like of shape (n_samples, n_components), default=None
            Scores of y.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The part of the rows in the span of the components.
        y : ndarray of shape (n_samples, n_targets)
            Returned only if scores of y are given.
        """
        solution = self._solution()
        rows: Float64Array = self._check_scores(X, "X") @ solution.x_loadings.T * solution.x_scale + solution.x_mean
        if y is None:
            return rows
        return rows, self._check_scores(y, "y") @ solution.y_loadings.T * solution.y_scale + solution.y_mean

    def _check_scores(self, scores: Any, name: str) -> Array:
        checked: Array = check_array(as_numpy(scores, name), dtype=(np.float64, np.float32), input_name=name)
        n_columns, n_components = checked.shape[1], self._n_features_out
        if n_columns != n_components:
            raise ValueError(
                f"Scores of {name} have {counted(n_columns, 'column')}, but the model has "
                f"{counted(n_components, 'component')}."
            )
        return checked


@stored({"_fitted": Object(Fitted, given={"head": Object(RegressionHead, q="q")}, m="m")})
class IncrementalPLS(RegressionMethods, SingleModel):
    """Partial least squares regression for streams and for data larger than memory.

    A drop-in replacement for :class:`sklearn.cross_decomposition.PLSRegression`: the same model, attributes and
    predictions. Its memory does not depend on the number of rows, and on large data it is many times faster.

    - ``fit`` reads large data ``n_components + 1`` times, block by block (``solver="multipass"``). It is exact. With
      ``read_tol`` or ``max_reads``, it reads less often and estimates its error.
    - ``partial_fit`` learns from a stream. With up to 2,048 features it is exact in one pass, with memory for a
      square matrix of all features (``solver="gram"``). With more it keeps a sketch of a few hundred rows that
      preserves the PLS solution (``solver="sketch"``). Models of separate parts can be combined by ``merge``.

    Parameters
    ----------
    n_components : int, default=2
        Number of components. At most ``min(n_samples, n_features)`` in ``fit``.
    scale : bool, default=True
        Whether to divide each column of X and y by its standard deviation. Columns are always centred.
    solver : {"auto", "multipass", "gram", "sketch"}, default="auto"
        How X is summarised. "auto" is "multipass" in ``fit``; in ``partial_fit`` it is "gram" for up to 2,048
        features, and "sketch" for more. After "multipass", ``partial_fit`` and ``merge`` continue with a sketch that
        starts from the exact solution, or with a Gram matrix for small data (n m^2 up to 524,288).
    sketch_size : int, default=None
        Number of rows that "sketch" keeps: more rows are more accurate, and take proportionally more memory and time.
        Data of at most this rank is solved exactly. By default 128, or 24 per component if that is more.
    batch_size : int, default=None
        Number of rows read at a time. By default 4 to 32 MiB.
    forgetting : float, default=1.0
        Factor in (0, 1] by which the weight of a row shrinks with every later row. With 0.999 the model reflects about
        the last thousand rows.
    read_tol : float, default=0.0
        Estimated error (``subspace_error_``) at which ``fit`` stops reading the data, for slow reads: the larger of the
        sine of the largest angle to the weights of an exact fit and the relative error of the coefficients. The first
        read builds the state of ``partial_fit``, with the same memory, and further reads converge superlinearly. By
        default the fit is exact. Data of up to 32 MiB is read once in any case.
    max_reads : int, default=None
        Maximum number of reads. After ``n_components + 1`` reads the fit is exact.
    missing : {"error", "model"}, default="error"
        How to handle NaN. "error" raises ValueError; "model" completes missing values of X by the factor model of the
        PLS solution, in training and in use. Rows without any response are left out of training; with several
        responses, missing ones are predicted. See Notes.

    Attributes
    ----------
    x_weights_, x_loadings_, x_rotations_ : ndarray of shape (n_features, n_components)
        Weights, loadings and rotations of X. The largest entry of each weight vector is positive.
    y_weights_, y_loadings_, y_rotations_ : ndarray of shape (n_targets, n_components)
        The same for y.
    coef_ : ndarray of shape (n_targets, n_features)
        Coefficients: ``y = (X - x_mean_) @ coef_.T + intercept_``.
    intercept_ : ndarray of shape (n_targets,)
        Means of y, as in scikit-learn.
    x_mean_, x_scale_ : ndarray of shape (n_features,)
        Means and divisors of the columns of X.
    y_mean_, y_scale_ : ndarray of shape (n_targets,)
        Means and divisors of the columns of y.
    n_components_ : int
        Number of components found in the data: later columns of the arrays above are zero.
    vip_ : ndarray of shape (n_features,)
        Variable importance in projection. The mean of its squares is one.
    x_explained_variance_ratio_, y_explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of the variance of (scaled) X and y that each component explains.
    retained_variance_ : float
        Share of the variance of (scaled) X that the state retains: 1.0 unless a sketch has discarded some.
    subspace_error_ : ndarray of shape (n_components,)
        Estimated sine of the largest angle between the space of the first components and that of an exact fit, for each
        number of components: zero unless a sketch has discarded variance, or rows were added after an exact ``fit``.
        For rows in random order and noisy responses, it is accurate to a factor of about three. After a ``fit`` with
        ``read_tol`` or ``max_reads``, the relative error of the coefficients if that is larger.
    solver_ : str
        The solver in use.
    n_reads_ : int
        Number of reads of the data by ``fit``.
    n_missing_ : ndarray of shape (n_features,)
        Number of (completed) missing values of each feature in the training samples.
    n_samples_seen_ : int
        Number of training samples.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has names that are all strings.
    feature_axis_ : ndarray of shape (n_features,)
        Names of features, such as wavelengths, if X is a dataframe whose names are all numbers.

    See Also
    --------
    sklearn.cross_decomposition.PLSRegression : The same for arrays in memory.
    sklearn.decomposition.IncrementalPCA : Unsupervised, with memory independent of the number of rows.

    Notes
    -----
    A row of weight two counts as two equal rows, and a row of weight zero as absent. With forgetting, a row of any
    positive weight ages the earlier rows by one step, and a row of weight zero does not age them. ``partial_fit`` with
    only zero weights changes nothing.

    Unlike in PLSRegression, ``transform`` and ``fit_transform`` return the scores of X alone (see ``transform_y``).
    Nothing that grows with the number of rows is stored, so there is no ``x_scores_`` or ``y_scores_``. There is no
    inner iteration, so no ``tol``, ``max_iter`` or ``n_iter_``.

    With ``missing="model"``, ``fit`` completes rows by the model of all rows, iterating until convergence, if it can
    read the data again. In one pass, a block of rows is completed by the model of the earlier rows, and the first
    blocks also by their own; results do not depend on the chunks. A feature without any value is an error in ``fit``,
    and constant in ``partial_fit`` until it has one. Rows without observed values have scores of zero. Without missing
    values, results are the same as with "error".

    With ``solver="gram"``, results are accurate to about eps cond(X)^2 with eps = 2e-16, compared with eps cond(X) for
    "multipass": a trend shared by all columns, 1e5 times as large as the rest, changes coefficients by 2e-5.

    The model is solved when a result is first needed: ``partial_fit`` only adds rows to the state.

    References
    ----------
    B. S. Dayal and J. F. MacGregor, "Improved PLS algorithms", Journal of Chemometrics 11, 1997.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 20))
    >>> y = X[:, 0] - 2 * X[:, 1] + 0.1 * rng.normal(size=1000)
    >>> model = IncrementalPLS(n_components=3).fit(X, y)
    >>> round(model.score(X, y), 3)
    0.998
    >>> stream = IncrementalPLS(n_components=3)
    >>> for start in range(0, 1000, 100):
    ...     stream = stream.partial_fit(X[start : start + 100], y[start : start + 100])
    >>> bool(np.allclose(stream.coef_, model.coef_))
    True
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        scale: bool = True,
        solver: str = "auto",
        sketch_size: int | None = None,
        batch_size: int | None = None,
        forgetting: float = 1.0,
        read_tol: float = 0.0,
        max_reads: int | None = None,
        missing: str = "error",
    ) -> None:
        self.n_components = n_components
        self.scale = scale
        self.solver = solver
        self.sketch_size = sketch_size
        self.batch_size = batch_size
        self.forgetting = forgetting
        self.read_tol = read_tol
        self.max_reads = max_reads
        self.missing = missing

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to X and y, discarding earlier training.

        Parameters
        ----------
        X : array-like, sparse matrix or memory map of shape (n_samples, n_features), source or Dask collection
            The rows. Arrays and memory maps of more than 32 MiB are read block by block, without copying or converting
            the whole. Files of any size are opened by :func:`plstream.open_source`. Dask arrays, dataframes and lists
            of delayed blocks are read by Dask workers, and no block is transferred to this process.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or Dask collection, default=None
            The responses. None if X is a source, which provides them.
        sample_weight : array-like of shape (n_samples,), or Dask collection, default=None
            Weights of the rows.

        Returns
        -------
        self : IncrementalPLS
        """
        return fit_rows(self, open_values, (X, y, sample_weight))

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the model. A call that fails leaves the model unchanged.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The new rows, one or more.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or Dask collection, default=None
            Their responses. None if X is a source, which provides them.
        sample_weight : array-like of shape (n_samples,), or Dask collection, default=None
            Their weights.

        Returns
        -------
        self : IncrementalPLS
        """
        is_one = (
            sample_weight is None
            and type(y) is np.ndarray
            and y.shape[:1] == (1,)
            and learn_one_row(self, X, y.ravel())
        )
        if is_one:
            return self
        return learn_rows(self, open_values, (X, y, sample_weight))

    @_fit_context(prefer_skip_nested_validation=True)
    def memory_usage(self, n_features: int, n_targets: int = 1, *, method: str = "partial_fit") -> int:
        """Return an upper bound on the memory of training and solving, in bytes, for any number of rows.

        Parameters
        ----------
        n_features, n_targets : int
            Number of columns of X and y.
        method : {"partial_fit", "fit"}, default="partial_fit"
            The method that trains. ``fit`` is that of data that can be read again; of other data, it takes as much as
            ``partial_fit``.

        Returns
        -------
        n_bytes : int
            Including temporary arrays; after ``partial_fit`` a third or less is kept. The rows passed, and copies of
            them, are not included: blocks of rows, and in ``fit`` up to two copies of data of up to 32 MiB.

        Examples
        --------
        >>> from plstream import IncrementalPLS
        >>> IncrementalPLS(solver="gram").memory_usage(100_000) // 10**6
        163308
        >>> IncrementalPLS(solver="sketch").memory_usage(100_000) // 10**6
        1677
        >>> IncrementalPLS().memory_usage(100_000, method="fit") < 10**9
        True
        """
        return Settings.of(self).n_bytes(method, n_features, n_targets)

    def _fit(self, X: Any, *, journal: Journal | None = None) -> Self:
        """Fit the model to a source. With a journal, exact reads resume where it ends."""
        return fit_rows(self, open_values, (X, None, None), journal=journal)
