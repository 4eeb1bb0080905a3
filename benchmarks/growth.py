"""Time and memory of a fit as the file grows, compared with scikit-learn and ikpls: the figure of the README.

``python benchmarks/growth.py --mebibytes 128 256 512`` measures these sizes and adds them to ``docs/plots/growth.csv``,
in place of earlier figures for the same sizes; ``--draw`` draws ``docs/plots/growth.png`` from that file.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from measure import MIB, in_child, log, peak_growth

from plstream import IncrementalPLS

N_COLUMNS, N_COMPONENTS = 2048, 4
RESULTS = Path(__file__).parents[1] / "docs" / "plots" / "growth.csv"
METHODS = {"plstream": "plstream IncrementalPLS", "scikit-learn": "scikit-learn PLSRegression", "ikpls": "ikpls PLS"}


def write(folder: Path, mebibytes: int) -> None:
    """Write X.npy and y.npy: 20 latent variables and noise, in 4,096 rows that are repeated."""
    rng = np.random.default_rng(0)
    n_rows = mebibytes * MIB // (8 * N_COLUMNS)
    latent = rng.normal(size=(4096, 20))
    rows = latent @ rng.normal(size=(20, N_COLUMNS)) + rng.normal(size=(4096, N_COLUMNS))
    X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=np.float64, shape=(n_rows, N_COLUMNS))
    for start in range(0, n_rows, 4096):
        X[start : start + 4096] = rows[: n_rows - start]
    X.flush()
    np.save(folder / "y.npy", np.resize(latent.sum(axis=1) + rng.normal(size=4096), n_rows))


def fit(folder: Path, method: str, n_rows: int | None = None) -> Any:
    """Fit a model to the file, which only plstream does not have to load."""
    X, y = np.load(folder / "X.npy", mmap_mode="r")[:n_rows], np.load(folder / "y.npy")[:n_rows]
    if method == "plstream":
        return IncrementalPLS(N_COMPONENTS).fit(X, y)
    X = np.array(X)
    if method == "scikit-learn":
        from sklearn.cross_decomposition import PLSRegression

        return PLSRegression(N_COMPONENTS).fit(X, y)
    from ikpls.numpy import PLS

    # It centres and scales to unit variance, as the two others do.
    return PLS(algorithm=1, ddof=1).fit(X, y, N_COMPONENTS)


def measure(folder: Path, method: str) -> tuple[float, float]:
    """Return seconds and mebibytes of a fit, after a small one that compiles and imports."""
    fit(folder, method, n_rows=4096)
    start = perf_counter()
    peak = peak_growth(lambda: fit(folder, method))
    return perf_counter() - start, peak / MIB


def add(mebibytes: int, repeats: int) -> None:
    """Measure one size, and replace what the file has of it."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, mebibytes)
        found = {method: [in_child(measure, folder, method) for _ in range(repeats)] for method in METHODS}
    rows = [row for row in stored() if int(row["mebibytes"]) != mebibytes]
    for method, pairs in found.items():
        seconds, memory = np.median(pairs, axis=0)
        least, largest = min(pairs)[0], max(pairs)[0]
        log(f"{mebibytes} MiB, {method}: {seconds:.2f} s ({least:.2f}-{largest:.2f}), {memory:.0f} MiB")
        rows.append(
            {
                "mebibytes": mebibytes,
                "method": method,
                "seconds": f"{seconds:.3f}",
                "least_seconds": f"{least:.3f}",
                "largest_seconds": f"{largest:.3f}",
                "memory_mebibytes": f"{memory:.1f}",
            }
        )
    rows.sort(key=lambda row: (list(METHODS).index(row["method"]), int(row["mebibytes"])))
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def stored() -> list[dict[str, Any]]:
    """Return earlier measurements."""
    if not RESULTS.exists():
        return []
    with RESULTS.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def draw() -> None:
    """Draw what has been measured."""
    import matplotlib.pyplot as plt

    from plstream.plots.palette import CLASSES

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    # Lines drawn earlier are wider, so that they are seen below others that are the same.
    for (method, label), colour, width in zip(METHODS.items(), CLASSES, (2, 4.5, 2), strict=False):
        rows = [row for row in stored() if row["method"] == method]
        size = [int(row["mebibytes"]) / 1024 for row in rows]
        for ax, column, unit in ((axes[0], "memory_mebibytes", 1024), (axes[1], "seconds", 1)):
            values = [float(row[column]) / unit for row in rows]
            ax.plot(size, values, "o-", color=colour, label=label, linewidth=width, markersize=4 + width)
    for ax, title, unit in ((axes[0], "Memory to fit a file", "GiB beyond the start"), (axes[1], "Time", "seconds")):
        ax.set(title=title, xlabel="size of the file (GiB)", ylabel=unit)
        ax.set_xlim(left=0)
        ax.set_ylim(bottom=0)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    figure.savefig(RESULTS.with_suffix(".png"), dpi=130, metadata={"Software": None})


def main() -> None:
    """Measure or draw, as asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mebibytes", type=int, nargs="*", default=[], help="sizes to measure")
    parser.add_argument("--repeats", type=int, default=3, help="measurements of each (default: %(default)s)")
    parser.add_argument("--draw", action="store_true", help="draw the figure")
    arguments = parser.parse_args()
    for mebibytes in arguments.mebibytes:
        add(mebibytes, arguments.repeats)
    if arguments.draw:
        draw()


if __name__ == "__main__":
    main()
