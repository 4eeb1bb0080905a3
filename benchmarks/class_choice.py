"""Choice of the number of components for labels from states alone, compared with exact accuracies.

Expected accuracies, the exact ones of one more read of the rows, and what choices by these, and by the squared errors
of ones and zeros, cost in exact accuracy. The table is printed in Markdown. Missing data sets are skipped:

    python benchmarks/class_choice.py [FOLDER]

where FOLDER has spectra/tecator.npz, spectra/pls_gasoline.npz and tiny_imagenet/vgg16_pool5_32px_val.npz.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from plstream import IncrementalPLSClassifierCV, IncrementalPLSCV

Data = tuple[str, NDArray[np.float64], NDArray[np.int64], int]


def data_sets(folder: Path) -> Iterator[Data]:
    """Yield names, rows, labels, and the most components to try."""
    yield "digits, 10 classes", *load_digits(return_X_y=True), 40
    yield "wine, 3 classes", *load_wine(return_X_y=True), 13
    yield "breast cancer, 2 classes", *load_breast_cancer(return_X_y=True), 30
    yield "iris, 3 classes", *load_iris(return_X_y=True), 4
    path = folder / "spectra" / "tecator.npz"
    if path.exists():
        data = np.load(path)
        for n in (2, 3, 5):
            yield f"tecator, {n} classes of fat", data["X"], in_classes(data["Y_water_fat_protein"][:, 1], n), 25
    path = folder / "spectra" / "pls_gasoline.npz"
    if path.exists():
        data = np.load(path)
        yield "gasoline, 3 classes of octane", data["NIR"], in_classes(data["octane"], 3), 15
    path = folder / "tiny_imagenet" / "vgg16_pool5_32px_val.npz"
    if path.exists():
        data = np.load(path)
        X, y = data["X"].astype(np.float64), data["y"]
        for seed in range(6):
            chosen = np.random.default_rng(seed).choice(200, 20, replace=False) if seed else np.arange(20)
            rows = np.isin(y, chosen)
            yield f"Tiny ImageNet, 20 classes ({seed + 1})", X[rows], y[rows], 40
        yield "Tiny ImageNet, 200 classes", X, y, 60


def in_classes(values: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Return the numbers of classes of about as many rows each."""
    return np.digitize(values, np.quantile(values, np.arange(1, n) / n))


def main() -> None:
    """Print the table."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("data")
    print("| data | rows | best | expected | its accuracy | cost | mean difference | by squared error | cost |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, X, y, most in data_sets(folder):
        order = np.random.default_rng(0).permutation(len(X))
        X, y = X[order], y[order]  # noqa: PLW2901
        model = IncrementalPLSClassifierCV(most).fit(X, y)
        exact = 100 * model.held_out_accuracy(X, y)
        expected = 100 * model.cv_results_["mean_test_score"]
        c, best = model.n_components_, int(exact.argmax()) + 1
        squares = IncrementalPLSCV(most).fit(X, (y[:, None] == np.unique(y)).astype(float)).n_components_
        print(
            f"| {name} | {len(X):,} | {exact.max():.1f} ({best}) | {expected[c - 1]:.1f} ({c}) | {exact[c - 1]:.1f} | "
            f"{exact.max() - exact[c - 1]:.1f} | {np.mean(expected - exact):+.1f} | "
            f"{exact[squares - 1]:.1f} ({squares}) | {exact.max() - exact[squares - 1]:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
