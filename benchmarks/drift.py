"""Drift: time until changes of a stream are detected, missed changes, and false alarms.

Spectra of four substances with a baseline change from one batch on: a new lamp (a gain and a baseline that depend on
the wavelength), a new ingredient that y depends on, both, another relation of y, and a lamp that ages. Streams of three
factors and ten features do not change, or in other ways. With ``--data``, also the Tennessee Eastman process.

Run ``python benchmarks/drift.py --data DIR``, with ``--quick`` for a quick check, or with ``--tables 1,3`` for some of
the tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import TypeAlias

import numpy as np
from measure import add_tables_option, log, markdown
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from plstream import IncrementalPLS
from plstream.monitoring import DriftTracker

Float64Array: TypeAlias = NDArray[np.float64]
Batch: TypeAlias = tuple[Float64Array, Float64Array]

FORGETTING = (1.0, 0.999, 0.99, 0.95)
# Batches before a change, and after it, by their size.
LENGTHS = {50: (60, 30), 10: (80, 40), 1: (150, 120)}
CHANGES = ("lamp and ingredient", "lamp", "ingredient", "relation", "slow lamp")
FACTOR_CHANGES = (
    "other loadings",
    "mean, by two deviations",
    "mean, by half of one",
    "noise for a feature",
    "a coefficient",
)
# Rows in a batch, and forgetting, of streams that do not change.
NORMAL = ((50, 1.0), (50, 0.99), (10, 0.999), (10, 0.95), (1, 1.0), (1, 0.99))
WAVELENGTHS = np.linspace(0, 1, 80)


class Spectra:
    """A stream of spectra that can change."""

    def __init__(self, seed: int, size: int) -> None:
        self.rng = rng = np.random.default_rng([seed, size])
        self.size = size
        centres, widths = rng.uniform(size=(5, 3, 1)), rng.uniform(0.04, 0.15, size=(5, 3, 1))
        shapes = rng.uniform(0.3, 1, size=(5, 3, 1)) * np.exp(-0.5 * ((WAVELENGTHS - centres) / widths) ** 2)
        self.pure: Float64Array = shapes.sum(axis=1)
        self.gain = 0.02 * np.sin(2 * np.pi * (WAVELENGTHS * rng.uniform(0.5, 1.5) + rng.uniform()))
        self.baseline = 0.02 + 0.03 * rng.normal() * WAVELENGTHS

    def batch(self, change: str = "", share: float = 1.0) -> Batch:
        """Return rows and responses after a change, of which a share has happened."""
        rng, n = self.rng, self.size
        amounts = 1 + 0.3 * rng.normal(size=(n, 4))
        X = (amounts @ self.pure[:4]) * (1 + 0.01 * rng.normal(size=(n, 1))) + 0.02 * rng.normal(size=(n, 1))
        y = amounts @ [1.0, 0.5, 0.0, 0.0] + 0.03 * rng.normal(size=n)
        if "ingredient" in change:
            more = 0.05 + 0.15 * np.abs(rng.normal(size=n))
            X, y = X + np.outer(more, self.pure[4]), y + 0.7 * more
        if "lamp" in change:
            X = X * (1 + share * self.gain) + share * self.baseline
        if "relation" in change:
            y = y + 0.15 * (amounts[:, 2] - 1)
        return X + 0.004 * rng.normal(size=X.shape), y


def follow(seed: int, size: int, forgetting: float) -> Iterator[tuple[str, list[int]]]:
    """Yield, for each change, batches with alarms, up to the first one after the change; it comes with batch zero."""
    before, after = LENGTHS[size]
    stream, tracker = Spectra(seed, size), DriftTracker(IncrementalPLS(5, forgetting=forgetting))
    for _ in range(before):
        tracker.partial_fit(*stream.batch())
    for change in CHANGES:
        changed, twin = deepcopy(stream), deepcopy(tracker)
        for i in range(after):
            twin.partial_fit(*changed.batch(change, (i + 1) / after if "slow" in change else 1.0))
            if twin.history_[-1].alarms:
                break
        yield change, [i - before for i, _ in twin.alarms_]


def table_of_changes(n_streams: int) -> None:
    """Print what was missed of each change, and the batches until the first alarm."""
    for size in LENGTHS:
        rows = []
        for forgetting in FORGETTING:
            found: dict[str, list[int | None]] = {change: [] for change in CHANGES}
            n_false = 0
            for seed in range(n_streams):
                for change, alarms in follow(seed, size, forgetting):
                    found[change].append(next((i for i in alarms if i >= 0), None))
                n_false += sum(i < 0 for i in alarms)
            log(f"batches of {size}, forgetting {forgetting}: {found}, {n_false} false")
            rows.append([f"{forgetting:g}", *map(_in_words, found.values()), str(n_false)])
        print(f"\nBatches of {size} rows, {n_streams} streams\n")
        print(markdown(["forgetting", *CHANGES, "before the change"], rows))


def _in_words(delays: list[int | None]) -> str:
    known = [delay for delay in delays if delay is not None]
    missed = len(delays) - len(known)
    text = f"{np.median(known):g} ({max(known)})" if known else ""
    return f"{text}, {missed} missed" if missed and known else text or "all missed"


def table_of_false_alarms(n_batches: int) -> None:
    """Print how many alarms there are in streams that do not change."""
    rows = []
    settings = [("normal", *setting) for setting in NORMAL] + [("heavy tails", 50, 1.0), ("wandering", 50, 1.0)]
    for kind, size, forgetting in settings:
        n_alarms = 0
        for seed in range(n_batches // 500):
            tracker, stream = DriftTracker(IncrementalPLS(3, forgetting=forgetting)), Factors(seed, size, kind)
            for _ in range(500):
                tracker.partial_fit(*stream.batch())
            n_alarms += len(tracker.alarms_)
        log(f"{kind}, batches of {size}, forgetting {forgetting}: {n_alarms} alarms")
        rows.append([kind, str(size), f"{forgetting:g}", f"{n_batches:,}", str(n_alarms)])
    print(markdown(["rows", "in a batch", "forgetting", "batches", "alarms"], rows))


class Factors:
    """A stream of three factors and ten features: normal, with heavy tails, or with factors that wander slowly."""

    def __init__(self, seed: int, size: int, kind: str = "normal") -> None:
        self.rng = np.random.default_rng([seed, 99])
        self.size, self.kind = size, kind
        self.loadings, self.coefficients = self.rng.normal(size=(3, 10)), np.array([1.0, 2.0, -1.0])
        self.other, self.last = self.rng.normal(size=(3, 10)), np.zeros(3)

    def batch(self, change: str = "") -> Batch:
        """Return rows and responses, after a change."""
        n = self.size
        factors = self._numbers(n, 3)
        if self.kind == "wandering":
            for i, row in enumerate(factors):
                self.last = factors[i] = 0.99 * self.last + np.sqrt(1 - 0.99**2) * row
        loadings = self.other if change == "other loadings" else self.loadings
        X = factors @ loadings + 0.3 * self._numbers(n, 10)
        deviation = np.sqrt(np.sum(self.loadings[:, 4] ** 2) + 0.09)
        if "mean" in change:
            X[:, 4] += (2.0 if "two" in change else 0.5) * deviation
        if change == "noise for a feature":
            X[:, 4] = deviation * self._numbers(n, 1)[:, 0]
        coefficients = self.coefficients * [1, 2 / 3, 1] if change == "a coefficient" else self.coefficients
        return X, factors @ coefficients + 0.3 * self._numbers(n, 1)[:, 0]

    def _numbers(self, *shape: int) -> Float64Array:
        return self.rng.standard_t(3, size=shape) if self.kind == "heavy tails" else self.rng.normal(size=shape)


def table_of_factors(n_streams: int) -> None:
    """Print the batches until a change of a stream of factors is reported."""
    found: dict[str, list[int | None]] = {change: [] for change in FACTOR_CHANGES}
    for seed in range(n_streams):
        stream, tracker = Factors(seed, 50), DriftTracker(IncrementalPLS(3))
        for _ in range(50):
            tracker.partial_fit(*stream.batch())
        for change, delays in found.items():
            changed, twin = deepcopy(stream), deepcopy(tracker)
            while twin.n_batches_ < 80 and not twin.alarms_:
                twin.partial_fit(*changed.batch(change))
            delays.append(twin.alarms_[0][0] - 50 if twin.alarms_ else None)
        log(f"stream {seed}: {found}")
    print(markdown(["change", "batches"], [[change, _in_words(delays)] for change, delays in found.items()]))


def table_of_tennessee(path: Path) -> None:
    """Print rows until the first alarm for each fault, and alarms before: the model has learnt from the normal run."""
    data = np.load(path)
    columns, at = [*range(22), *range(41, 52)], 160
    rows = []
    for size in (10, 1):
        for forgetting in FORGETTING:
            model = IncrementalPLS(4, forgetting=forgetting)
            tracker, n_false, delays = DriftTracker(model), 0, []
            for part in np.array_split(data["d00"], 500 // size):
                tracker.partial_fit(part[:, columns], part[:, 34:36])
            for run in ("d00_te", *(f"d{k:02}_te" for k in range(1, 11))):
                twin, n_before = deepcopy(tracker), tracker.n_batches_
                for start in range(0, 480, size):
                    part = data[run][start : start + size]
                    twin.partial_fit(part[:, columns], part[:, 34:36])
                    if run != "d00_te" and start >= at and twin.history_[-1].alarms:
                        break
                alarms = [size * (i - n_before) for i, _ in twin.alarms_ if i >= n_before]
                if run == "d00_te":
                    n_normal = len(alarms)
                else:
                    n_false += sum(row < at for row in alarms)
                    delays.append(next((str(row - at) for row in alarms if row >= at), "-"))
            log(f"batches of {size}, forgetting {forgetting}: {delays}")
            rows.append([str(size), f"{forgetting:g}", *delays, f"{n_normal} + {n_false}"])
    print(markdown(["rows in a batch", "forgetting", *map(str, range(1, 11)), "without a fault"], rows))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few streams only")
    parser.add_argument("--data", type=Path, help="folder with tennessee/braatz_00_10.npz")
    add_tables_option(parser, 4)
    options = parser.parse_args()
    with threadpool_limits(1):
        if 1 in options.tables:
            table_of_changes(1 if options.quick else 12)
        if 2 in options.tables:
            table_of_false_alarms(500 if options.quick else 5000)
        if 3 in options.tables:
            table_of_factors(2 if options.quick else 20)
        if 4 in options.tables and options.data is not None:
            table_of_tennessee(options.data / "tennessee" / "braatz_00_10.npz")


if __name__ == "__main__":
    main()
