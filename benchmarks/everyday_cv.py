"""Cross-validation of everyday data: IncrementalPLSCV beside a loop of our own fits, scikit-learn and ikpls.

Every method gets the same folds and arrays, with the threads of BLAS that the machine gives by default, alone and with
a busy loop for each core beside it. That all come to the same errors is checked before they are timed.

Run ``python benchmarks/everyday_cv.py``, with ``--quick`` to see whether it works, or with
``--busy`` beside busy loops.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from functools import partial

import ikpls.fast_cross_validation.numpy
import numpy as np
from measure import Spread, log, markdown
from numpy.typing import NDArray
from sklearn.cross_decomposition import PLSRegression

from plstream import IncrementalPLS, IncrementalPLSCV

Array = NDArray[np.float64]

N_FOLDS = 5
N_COMPONENTS = 10
SIZES = ("60x401", "500x1000", "1000x2000", "2000x100", "5000x500", "20000x200")
WIDE = "500x100000"
# Seconds that the rounds of a size may take.
BUDGET = 40.0


def make(size: str, q: int) -> tuple[Array, Array, NDArray[np.int64]]:
    """Return rows with a few factors and noise, responses, and folds."""
    n, m = map(int, size.split("x"))
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(n, 8))
    X = factors @ rng.normal(size=(8, m)) + rng.normal(size=(n, m))
    Y = factors @ rng.normal(size=(8, q)) + rng.normal(size=(n, q))
    return X, Y, rng.permutation(n) % N_FOLDS


def ours(X: Array, Y: Array, folds: NDArray[np.int64]) -> Array:
    """Return the squared errors of folds, numbers of components and responses, by IncrementalPLSCV."""
    table = IncrementalPLSCV(N_COMPONENTS, cv=N_FOLDS).fit(X, Y, folds=folds).cv_results_
    return np.array([table[f"split{fold}_test_rmse"] ** 2 for fold in range(N_FOLDS)])


def loop(X: Array, Y: Array, folds: NDArray[np.int64]) -> Array:
    """Return the same by a loop of our own fits, without a model of all rows."""
    errors = []
    for fold in range(N_FOLDS):
        test = folds == fold
        model = IncrementalPLS(N_COMPONENTS).fit(X[~test], Y[~test])
        predicted = [model.predict(X[test], n_components=k) for k in range(1, N_COMPONENTS + 1)]
        errors.append([np.mean((Y[test] - one) ** 2, axis=0) for one in predicted])
    return np.array(errors)


def scikit_learn(X: Array, Y: Array, folds: NDArray[np.int64]) -> None:
    """Fit PLSRegression for each fold, with the largest number of components alone: a search takes ten times that."""
    for fold in range(N_FOLDS):
        test = folds == fold
        PLSRegression(N_COMPONENTS).fit(X[~test], Y[~test]).predict(X[test])


def fast_cross_validation(X: Array, Y: Array, folds: NDArray[np.int64]) -> Array:
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


def _spin() -> None:
    while True:
        pass


@contextlib.contextmanager
def busy_cores() -> Iterator[None]:
    """Keep every core busy."""
    processes = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(os.cpu_count() or 1)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
            process.join()


def seconds(run: Callable[[], object]) -> float:
    """Return the time of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def row(size: str, q: int, rounds: int, budget: float) -> list[str]:
    """Return the cells of a size."""
    data = make(size, q)
    if q == 1:
        data = data[0], data[1][:, :1], data[2]
    methods = [ours, loop, fast_cross_validation, scikit_learn]
    if data[0].size > 10**7:
        # Gram matrices of so many columns do not fit into memory.
        methods.remove(fast_cross_validation)
    expected = loop(*data)
    for method in methods[::2] if fast_cross_validation in methods else methods[:1]:
        np.testing.assert_allclose(method(*data), expected, rtol=1e-7, err_msg=method.__name__)
    runs = [partial(method, *data) for method in methods]
    times: list[list[float]] = []
    while len(times) < rounds and sum(map(sum, times)) < budget:
        times.append([seconds(run) for run in runs])
    measured = np.array(times)
    ratios = {
        method.__name__: Spread.of(measured[:, i] / measured[:, 0]).text(2, rounds) for i, method in enumerate(methods)
    }
    names = ("loop", "fast_cross_validation", "scikit_learn")
    return [size, str(q), *(ratios.get(name, "-") for name in names), Spread.of(1e3 * measured[:, 0]).text(1)]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=[*SIZES, WIDE], metavar="NxM", help="shapes of X")
    parser.add_argument("--targets", nargs="+", type=int, default=[1, 5], help="numbers of responses")
    parser.add_argument("--rounds", type=int, default=31, help="rounds of runs (default: %(default)s)")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds a size may take (default: %(default)s)")
    parser.add_argument("--busy", action="store_true", help="beside a busy loop for each core")
    parser.add_argument("--quick", action="store_true", help="a small size, to see whether it works")
    options = parser.parse_args()
    sizes, rounds = (["60x401"], 2) if options.quick else (options.sizes, options.rounds)
    rows = []
    with busy_cores() if options.busy else contextlib.nullcontext():
        for size in sizes:
            for q in options.targets:
                log(f"{size}, {q} response(s)")
                rows.append(row(size, q, rounds, options.budget))
    print(f"## Cross-validation with {N_COMPONENTS} components and {N_FOLDS} folds{', busy' * options.busy}\n")
    print("How many times as long as `IncrementalPLSCV.fit` others take: median (least-largest) of alternating runs.\n")
    print(markdown(("X", "q", "loop of fits", "ikpls", "one PLSRegression per fold", "our ms"), rows))


if __name__ == "__main__":
    main()
