"""Classifiers: cost of class indices compared with indicator responses, and accuracy of two decision rules.

Run ``python benchmarks/classes.py --data DIR``, with ``--quick`` for a quick check, or with ``--tables 1`` for some of
the tables. Without ``--data`` only digits are classified.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from measure import Spread, add_tables_option, log, markdown, take_turns
from numpy.typing import NDArray
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from plstream import IncrementalPLS, IncrementalPLSClassifier

Array: TypeAlias = NDArray[Any]

N_COMPONENTS = 5
CHUNK_ROWS = 512
# What is timed, and the number of features.
STREAMS = {"gram": 1024, "sketch": 8192}


def rows_of_classes(n: int, m: int, n_classes: int) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Return correlated features whose means differ by class, and the classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n)
    latent = rng.standard_normal((n, 40), dtype=np.float32) + rng.standard_normal((n_classes, 40), dtype=np.float32)[y]
    X = latent @ rng.standard_normal((40, m), dtype=np.float32)
    return X + rng.standard_normal((n, m), dtype=np.float32), y


def by_number(solver: str, n_classes: int, X: Array, y: Array) -> None:
    """Stream the rows with their classes by number."""
    model = IncrementalPLSClassifier(N_COMPONENTS, solver=solver)
    for start in range(0, len(X), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        model.partial_fit(X[rows], y[rows], classes=range(n_classes))


def as_ones_and_zeros(solver: str, n_classes: int, X: Array, y: Array) -> None:
    """Stream the rows with one response for each class."""
    model = IncrementalPLS(N_COMPONENTS, solver=solver)
    for start in range(0, len(X), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        model.partial_fit(X[rows], np.eye(n_classes)[y[rows]])


def read_by_number(n_classes: int, X: Array, y: Array) -> None:
    """Fit one component by two reads of the rows."""
    IncrementalPLSClassifier(1).fit(X, np.concatenate([np.arange(n_classes), y])[: len(y)])


def read_as_ones_and_zeros(n_classes: int, X: Array, y: Array) -> None:
    """Fit one component by two reads of the rows and of the responses."""
    IncrementalPLS(1).fit(X, np.eye(n_classes)[y])


def speed(n: int, numbers: list[int], repeats: int) -> str:
    """Time of a row, with classes by number and as ones and zeros."""
    table = []
    for n_classes in numbers:
        works: list[tuple[str, int, Callable[..., None], Callable[..., None]]] = [
            (f"stream, {solver}", m, partial(by_number, solver), partial(as_ones_and_zeros, solver))
            for solver, m in STREAMS.items()
        ]
        works.append(("fit, 1 component", STREAMS["sketch"], read_by_number, read_as_ones_and_zeros))
        for name, m, ours, dense in works:
            X, y = rows_of_classes(n, m, n_classes)
            ours(n_classes, X[:CHUNK_ROWS], y[:CHUNK_ROWS] % n_classes)
            times = take_turns([partial(run, n_classes, X, y) for run in (ours, dense)], repeats)
            log(f"{name}, {n_classes} classes: {np.median(times, axis=0)}")
            a_row = 1e6 * times / n
            ratio = Spread.of(times[:, 1] / times[:, 0]).text(2, repeats)
            table.append([name, f"{m:,}", f"{n_classes:,}", *(Spread.of(a_row[:, i]).text(0) for i in (0, 1)), ratio])
    title = f"Microseconds a row, float32, {n:,} rows, c = {N_COMPONENTS} if not said, one thread"
    return f"{title}\n\n" + markdown(["work", "features", "classes", "by number", "ones and zeros", "ratio"], table)


def data_sets(folder: Path | None) -> Iterator[tuple[str, Array, Array, list[int], bool]]:
    """Yield names, rows, classes, numbers of components, and whether to scale."""
    yield "digits", *load_digits(return_X_y=True), [5, 10, 20], False
    if folder is None:
        return
    tecator = np.load(folder / "spectra" / "tecator.npz")
    gasoline = np.load(folder / "spectra" / "pls_gasoline.npz")
    fat, octane = tecator["Y_water_fat_protein"][:, 1], gasoline["octane"]
    yield "gasoline, octane in 3 bands", gasoline["NIR"], bands(octane, 3), [3, 6], True
    for number in (3, 6):
        yield f"tecator, fat in {number} bands", tecator["X"], bands(fat, number), [5, 10, 15], True


def bands(values: Array, number: int) -> Array:
    """Return in which of so many bands, with as many rows in each, values are."""
    return np.digitize(values, np.quantile(values, np.arange(1, number) / number))


def probabilities(X: Array, y: Array, c: int, *, scale: bool) -> dict[str, Array]:
    """Return probabilities of the classes in ten folds, for each way to have them."""
    found = {name: np.zeros((len(y), y.max() + 1)) for name in ("scikit-learn", "lda", "regression")}
    for train, test in StratifiedKFold(10, shuffle=True, random_state=0).split(X, y):
        batch = PLSRegression(c, scale=scale, max_iter=20_000, tol=1e-12).fit(X[train], np.eye(y.max() + 1)[y[train]])
        lda = LinearDiscriminantAnalysis().fit(batch.transform(X[train]), y[train])
        found["scikit-learn"][test] = lda.predict_proba(batch.transform(X[test]))
        model = IncrementalPLSClassifier(c, scale=scale).fit(X[train], y[train])
        for decision in ("lda", "regression"):
            found[decision][test] = model.set_params(decision=decision).predict_proba(X[test])
    return found


def decisions(folder: Path | None) -> str:
    """Accuracy and log-loss of discriminants and of the largest response."""
    table = []
    for name, X, y, components, scale in data_sets(folder):
        for c in components:
            found = probabilities(X, y, c, scale=scale)
            cells = [f"{100 * np.mean(P.argmax(axis=1) == y):.1f} %, {log_loss(y, P):.3f}" for P in found.values()]
            table.append([name, str(c), *cells])
            log(str(table[-1]))
    title = "Accuracy and log-loss in ten folds"
    header = ["data", "c", "PLSRegression and LinearDiscriminantAnalysis", 'decision="lda"', 'decision="regression"']
    return f"{title}\n\n" + markdown(header, table)


def main() -> None:
    """Make the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with spectra/tecator.npz and spectra/pls_gasoline.npz")
    parser.add_argument("--quick", action="store_true", help="see whether it works")
    add_tables_option(parser, 2)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    n, numbers, repeats = (1024, [10], 1) if args.quick else (4096, [10, 50, 200, 1000], 3)
    tables = [partial(speed, n, numbers, repeats), partial(decisions, args.data)]
    with threadpool_limits(1):
        for number in args.tables:
            print(f"**{number}.** {tables[number - 1]()}\n")


if __name__ == "__main__":
    main()
