"""Data of everyday size: `fit` and cross-validation compared with other libraries, on an idle and on a busy machine.

Every method gets the same arrays and folds, with the threads of BLAS that the machine gives by default. Their
cross-validation errors are checked to be equal before they are timed.

Run ``python benchmarks/everyday.py``, or with ``--quick`` for a quick check. ``--sizes 500x1000,2000x200`` and
``--tables 2`` choose a part. With ``--store FILE`` every cell that has been measured is kept there and not measured
again, and with ``--seconds 200`` no further one begins after that time: so a long series can be run in pieces.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import ikpls.fast_cross_validation.numpy
import numpy as np
from exact import DTYPES, IKPLS_1, IKPLS_2, SKLEARN, Fit, Size, fit_ours, make_data
from measure import MIB, Spread, add_tables_option, busy_cores, in_child, log, markdown, peak_growth, take_turns
from numpy.typing import NDArray
from sklearn.cross_decomposition import PLSRegression
from sklearn.utils.validation import validate_data

from plstream import IncrementalPLS, IncrementalPLSCV

SIZES = "60x401,200x100,2000x200,500x1000,1000x2000,5000x500,10000x2048"
CV_SIZES = "60x401,500x1000,1000x2000,2000x100,5000x500,20000x200"
# Responses and components.
CASES = ((1, 5), (5, 20))
N_FOLDS = 5
N_COMPONENTS = 10
# Threads of BLAS spin for a while after a product, and nobody should pay for whoever came before. After a rest, a fit
# that is not timed comes first: small ones would be measured with cold caches.
REST_SECONDS = 0.03
# Below this time, validation counts.
SHORT_SECONDS = 2e-3
# PLSRegression is not what this is about, and takes long.
SKLEARN_SHARE = 0.2

Row: TypeAlias = tuple[str, ...]
Array: TypeAlias = NDArray[np.float64]


@dataclass
class Plan:
    """What to measure, how often, and what is known already."""

    sizes: Sequence[Size] | None = None
    repeats: int = 31
    budget: float = 5.0
    """Seconds after which no further round of a comparison begins."""
    store: Path | None = None
    until: float = float("inf")
    """Time of the clock after which no further cell begins."""
    known: dict[str, list[str]] = field(default_factory=dict)

    def sizes_of(self, default: str) -> Sequence[Size]:
        """Return the sizes that were asked for, or those of a table."""
        return [Size.parse(text) for text in default.split(",")] if self.sizes is None else self.sizes

    def rows(self, table: str, cells: Iterator[tuple[str, Callable[[], Row]]], *, busy: bool = False) -> list[Row]:
        """Return the rows of a table, measured unless they are known, as far as time allows."""
        rows = []
        for name, measure in cells:
            key = f"{table}: {name}"
            if key not in self.known and time.monotonic() < self.until:
                with busy_cores() if busy else contextlib.nullcontext():
                    self.known[key] = list(measure())
                log(f"{key}: {' | '.join(self.known[key])}")
                if self.store is not None:
                    self.store.write_text(json.dumps(self.known, indent=1))
            if key in self.known:
                rows.append(tuple(self.known[key]))
        return rows


def fits(plan: Plan, *, busy: bool) -> str:
    """Return the table of times of ``fit``."""
    title = title_of("Time of fit", busy=busy)

    def cells() -> Iterator[tuple[str, Callable[[], Row]]]:
        for size in plan.sizes_of(SIZES):
            for dtype in DTYPES:
                for q, c in CASES:
                    if c < min(size):
                        yield f"{size}, {dtype}, {q}, {c}", partial(fit_row, plan, size, dtype, q, c)

    header = ("X", "dtype", "q", "c", "PLSRegression", "ikpls 1", "ikpls 2", "less validation", "our ms")
    return f"## {title}\n\n{markdown(header, plan.rows(title, cells(), busy=busy))}\n"


def fit_row(plan: Plan, size: Size, dtype: np.dtype[Any], q: int, c: int) -> Row:
    """Return the row of one kind of data."""
    X, Y = make_data(size, q, dtype)
    model = IncrementalPLS(c)
    ours = partial(fit_ours, X, Y, c)
    validate = partial(validate_data, model, X, Y, multi_output=True, y_numeric=True)
    cells, own, less = [], [], []
    for peer in (SKLEARN, IKPLS_1, IKPLS_2):
        runs = ours, partial(peer.fit, X, Y, c), validate
        budget = plan.budget * (SKLEARN_SHARE if peer is SKLEARN else 1.0)
        found = take_turns(runs, peer.repeats(plan.repeats, q), budget, REST_SECONDS, warm=True)
        own += found[:, 0].tolist()
        cells.append(Spread.of(found[:, 1] / found[:, 0]).text(2, plan.repeats))
        if peer is not SKLEARN:
            less.append(float(np.median(found[:, 1] / np.maximum(found[:, 0] - found[:, 2], 1e-9))))
    short = np.median(own) < SHORT_SECONDS
    of_validation = ", ".join(f"{ratio:.2f}" for ratio in less) if short else "-"
    return str(size), dtype.name, str(q), str(c), *cells, of_validation, Spread.of(np.multiply(own, 1e3)).text(2)


def cross_validations(plan: Plan, *, busy: bool) -> str:
    """Return the table of times of cross-validation."""
    title = title_of(f"Cross-validation with {N_COMPONENTS} components and {N_FOLDS} folds", busy=busy)

    def cells() -> Iterator[tuple[str, Callable[[], Row]]]:
        for size in plan.sizes_of(CV_SIZES):
            for q in (1, 5):
                yield f"{size}, {q}", partial(cross_validation_row, plan, size, q)

    header = ("X", "q", "loop of fits", "ikpls", "PLSRegression per fold", "our ms")
    return f"## {title}\n\n{markdown(header, plan.rows(title, cells(), busy=busy))}\n"


def cross_validation_row(plan: Plan, size: Size, q: int) -> Row:
    """Return the row of one size."""
    data = fold_data(size, q)
    # Gram matrices of very many columns do not fit into memory.
    methods = [cv_ours, cv_by_loop, *([cv_by_ikpls] if size.n * size.m <= 10**7 else [])]
    expected = cv_by_loop(*data)
    for method in methods:
        np.testing.assert_allclose(method(*data), expected, rtol=1e-7, err_msg=method.__name__)
    runs = [partial(method, *data) for method in methods]
    times = take_turns(runs, plan.repeats, 2 * plan.budget, REST_SECONDS)
    pairs = take_turns(
        [runs[0], partial(cv_by_sklearn, *data)], plan.repeats, SKLEARN_SHARE * plan.budget, REST_SECONDS
    )
    ratios = [Spread.of(times[:, i] / times[:, 0]).text(2, plan.repeats) for i in range(1, len(runs))]
    ratios += ["-"] * (2 - len(ratios))
    of_sklearn = Spread.of(pairs[:, 1] / pairs[:, 0]).text(2, plan.repeats)
    return str(size), str(q), *ratios, of_sklearn, Spread.of(1e3 * times[:, 0]).text(1)


def fold_data(size: Size, q: int) -> tuple[Array, Array, NDArray[np.int64]]:
    """Return rows with a few factors and noise, responses, and folds."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(size.n, 8))
    X = factors @ rng.normal(size=(8, size.m)) + rng.normal(size=size)
    Y = factors @ rng.normal(size=(8, q)) + rng.normal(size=(size.n, q))
    return X, Y, rng.permutation(size.n) % N_FOLDS


def cv_ours(X: Array, Y: Array, folds: NDArray[np.int64]) -> Array:
    """Return the squared errors of folds, numbers of components and responses, by IncrementalPLSCV."""
    table = IncrementalPLSCV(N_COMPONENTS, cv=N_FOLDS).fit(X, Y, folds=folds).cv_results_
    return np.array([table[f"split{fold}_test_rmse"] ** 2 for fold in range(N_FOLDS)])


def cv_by_loop(X: Array, Y: Array, folds: NDArray[np.int64]) -> Array:
    """Return the same by a loop of our own fits, without a model of all rows."""
    errors = []
    for fold in range(N_FOLDS):
        test = folds == fold
        model = IncrementalPLS(N_COMPONENTS).fit(X[~test], Y[~test])
        predicted = [model.predict(X[test], n_components=k) for k in range(1, N_COMPONENTS + 1)]
        errors.append([np.mean((Y[test] - one) ** 2, axis=0) for one in predicted])
    return np.array(errors)


def cv_by_ikpls(X: Array, Y: Array, folds: NDArray[np.int64]) -> Array:
    """Return the errors that ikpls comes to, without a model of all rows."""
    model = ikpls.fast_cross_validation.numpy.PLS(algorithm=1, ddof=1)
    with contextlib.redirect_stdout(io.StringIO()):
        errors = model.cross_validate(
            X,
            Y,
            N_COMPONENTS,
            folds,
            lambda y, predicted, *_: np.mean((y - predicted) ** 2, axis=1),
            n_jobs=1,
            verbose=0,
        )
    return np.array([errors[fold] for fold in range(N_FOLDS)])


def cv_by_sklearn(X: Array, Y: Array, folds: NDArray[np.int64]) -> None:
    """Fit PLSRegression for each fold, with the largest number of components alone: a search takes ten times that."""
    for fold in range(N_FOLDS):
        test = folds == fold
        PLSRegression(N_COMPONENTS).fit(X[~test], Y[~test]).predict(X[test])


def memory(plan: Plan) -> str:
    """Return the table of peak memory."""
    methods: dict[str, Fit] = {
        "IncrementalPLS": fit_ours,
        "PLSRegression": SKLEARN.fit,
        "ikpls 1": IKPLS_1.fit,
        "ikpls 2": IKPLS_2.fit,
        "IncrementalPLSCV": cross_validate_ours,
    }

    def measure(size: Size, dtype: np.dtype[Any]) -> Row:
        peaks = [in_child(peak_of_fit, size, dtype, fit) for fit in methods.values()]
        of_data = dtype.itemsize * size.n * size.m
        return str(size), dtype.name, *(f"{number / MIB:.1f}" for number in (of_data, *peaks))

    title = "Peak memory"
    cells = ((f"{size}, {dtype}", partial(measure, size, dtype)) for size in plan.sizes_of(SIZES) for dtype in DTYPES)
    rows = plan.rows(title, cells)
    return f"## {title}\n\nMiB, q = 1, c = 5.\n\n{markdown(('X', 'dtype', 'MiB of X', *methods), rows)}\n"


def cross_validate_ours(X: Array, Y: Array, c: int) -> object:
    """Fit the estimator that chooses its number of components."""
    return IncrementalPLSCV(c).fit(X, Y)


def peak_of_fit(size: Size, dtype: np.dtype[Any], fit: Fit) -> int:
    """Return the bytes that a fit takes at most, beyond the data."""
    X, Y = make_data(size, 1, dtype)
    # What is loaded and compiled once is not part of it.
    fit(X, Y, 5)
    return peak_growth(partial(fit, X, Y, 5))


def title_of(what: str, *, busy: bool) -> str:
    """Return the title of a table of times."""
    return f"{what}, {'beside a busy process per core' if busy else 'alone'}"


TABLES: Sequence[Callable[[Plan], str]] = (
    partial(fits, busy=False),
    partial(fits, busy=True),
    partial(cross_validations, busy=False),
    partial(cross_validations, busy=True),
    memory,
)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few runs")
    parser.add_argument("--sizes", help="such as 60x401,500x1000")
    parser.add_argument("--store", type=Path, metavar="FILE", help="keep cells there, and use those that are there")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no further cell after these")
    add_tables_option(parser, len(TABLES))
    arguments = parser.parse_args()
    plan = Plan(store=arguments.store, until=time.monotonic() + arguments.seconds)
    if arguments.sizes is not None:
        plan.sizes = plan.sizes_of(arguments.sizes)
    if arguments.quick:
        plan.repeats, plan.budget = 3, 0.1
    if plan.store is not None and plan.store.exists():
        plan.known = json.loads(plan.store.read_text())
    # PLSRegression does not converge where components are mostly noise.
    warnings.simplefilter("ignore")
    for number in arguments.tables:
        print(TABLES[number - 1](plan))


if __name__ == "__main__":
    main()
