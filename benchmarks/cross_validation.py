"""Cross-validation: IncrementalPLSCV compared with a loop of fits and with ikpls.

All methods get the same folds and arrays in memory, and centre and scale by the training rows of each fold. Their
errors are checked to be equal before they are timed.

Run ``python benchmarks/cross_validation.py``, or with ``--quick`` for a quick check.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import ikpls.fast_cross_validation.numpy
import numpy as np
from exact import FloatArray, Size, blas_threads, make_data
from measure import Spread, log, markdown, take_turns
from numpy.typing import NDArray
from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from threadpoolctl import threadpool_limits

from plstream import IncrementalPLSCV

N_FOLDS = 5
CHUNK_ROWS = 1000
# Fits take time in proportion to their components, so these are a tenth of the fits with 1 to 20.
PART_OF_SEARCH = (10, 11)


@dataclass(frozen=True)
class Data:
    """Rows, their folds, and the numbers of components to try."""

    X: FloatArray
    y: FloatArray
    folds: NDArray[np.int64]
    most: int

    @classmethod
    def of(cls, size: Size, most: int) -> Data:
        """Return data of a size."""
        X, Y = make_data(size, 1, np.float64)
        return cls(X, Y[:, 0], np.random.default_rng(0).permutation(size.n) % N_FOLDS, most)


def one_pass(data: Data) -> FloatArray:
    """Return our squared errors by fold and number of components."""
    return squared_errors(IncrementalPLSCV(data.most, cv=N_FOLDS).fit(data.X, data.y, folds=data.folds))


def stream(data: Data) -> FloatArray:
    """Return the same from chunks of rows."""
    model = IncrementalPLSCV(data.most, cv=N_FOLDS)
    for start in range(0, len(data.X), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        model.partial_fit(data.X[rows], data.y[rows], folds=data.folds[rows])
    return squared_errors(model)


def squared_errors(model: IncrementalPLSCV) -> FloatArray:
    """Return the mean squared errors of each fold."""
    return np.array([model.cv_results_[f"split{fold}_test_rmse"] ** 2 for fold in range(N_FOLDS)])


def fast_cross_validation(data: Data, algorithm: int) -> FloatArray:
    """Return the errors that ikpls comes to without fitting each fold from the start."""
    errors = ikpls.fast_cross_validation.numpy.PLS(algorithm=algorithm, ddof=1).cross_validate(
        data.X,
        data.y[:, None],
        data.most,
        data.folds,
        lambda y, predicted, *_: np.mean((y - predicted) ** 2, axis=(1, 2)),
        n_jobs=1,
        verbose=0,
    )
    return np.array([errors[fold] for fold in range(N_FOLDS)])


def search(data: Data, n_components: Sequence[int]) -> FloatArray:
    """Return the errors of a fit for each fold and each of some numbers of components."""
    grid = GridSearchCV(
        PLSRegression(),
        {"n_components": list(n_components)},
        cv=PredefinedSplit(data.folds),
        scoring="neg_mean_squared_error",
        refit=False,
        error_score="raise",
    ).fit(data.X, data.y)
    return np.array([-grid.cv_results_[f"split{fold}_test_score"] for fold in range(N_FOLDS)])


def row(size: Size, most: int, repeats: int) -> list[str]:
    """Return the cells of a size."""
    data = Data.of(size, most)
    part = [c for c in PART_OF_SEARCH if c <= most]
    ours = one_pass(data)
    for name, theirs in [
        ("stream", stream(data)),
        ("ikpls 1", fast_cross_validation(data, 1)),
        ("ikpls 2", fast_cross_validation(data, 2)),
    ]:
        np.testing.assert_allclose(theirs, ours, rtol=1e-8, err_msg=name)
    np.testing.assert_allclose(search(data, part), ours[:, [c - 1 for c in part]], rtol=1e-8, err_msg="search")
    runs = [
        partial(one_pass, data),
        partial(stream, data),
        partial(fast_cross_validation, data, 1),
        partial(fast_cross_validation, data, 2),
        partial(search, data, part),
    ]
    times = take_turns(runs, repeats)
    times[:, -1] *= sum(range(1, most + 1)) / sum(part)
    ratios = [Spread.of(times[:, i] / times[:, 0]) for i in range(1, len(runs))]
    return [str(size), str(most), *(ratio.text(1) for ratio in ratios), Spread.of(times[:, 0]).text(3)]


def table(cases: Sequence[tuple[Size, int]], repeats: int) -> str:
    """Return the table of times."""
    rows = []
    for size, most in cases:
        log(f"{size}, up to {most} components")
        rows.append(row(size, most, repeats))
    header = ("X", "c", f"chunks of {CHUNK_ROWS}", "ikpls 1", "ikpls 2", "search", "our seconds")
    return f"""## Cross-validated errors of 1 to c components

How many times as long as `IncrementalPLSCV.fit` others take, {N_FOLDS} folds, one response, float64: median
(least-largest) of {repeats} rounds, in turns. All come to the same errors.

{markdown(header, rows)}

- *chunks*: `IncrementalPLSCV.partial_fit`, and solving in the end.
- *ikpls 1 and 2*: its fast cross-validation, by algorithms 1 and 2, in one process.
- *search*: `GridSearchCV` of `PLSRegression`. Of its fits only those with {" and ".join(map(str, PART_OF_SEARCH))}
  components are run, and their time is multiplied by the sum of all components over the sum of these.
"""


def surroundings() -> str:
    """Return what the numbers depend on, besides the machine."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("plstream", "scikit-learn", "ikpls", "numpy"))
    return f"# Cross-validation\n\n{packages}; Python {platform.python_version()}; {blas_threads()} BLAS threads.\n"


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=Size.parse, metavar="NxM", help="shapes of X, as 20000x500")
    parser.add_argument("--quick", action="store_true", help="a small size, to see whether it works")
    parser.add_argument("--repeats", type=int, default=5, help="rounds of runs (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="threads of BLAS (default: %(default)s)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the table to this file")
    options = parser.parse_args()
    sizes = options.sizes or ([Size(2_000, 100)] if options.quick else [Size(20_000, 500), Size(20_000, 1_500)])
    with threadpool_limits(options.threads, user_api="blas"):
        text = f"{surroundings()}\n{table([(size, 20) for size in sizes], 2 if options.quick else options.repeats)}"
    print(text, flush=True)
    if options.output is not None:
        options.output.write_text(text)


if __name__ == "__main__":
    main()
