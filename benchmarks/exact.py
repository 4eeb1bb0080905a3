"""The exact fit of IncrementalPLS compared with PLSRegression and ikpls: time, peak memory and growth.

Times are compared as ratios of runs that follow each other, because absolute times vary between machines and hours. All
methods get the same arrays, and centre and scale them.

Run ``python benchmarks/exact.py``, or with ``--quick`` for a quick check.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import NamedTuple, TypeAlias

import ikpls.numpy
import numpy as np
from measure import MIB, Spread, in_child, log, markdown, peak_growth, take_turns
from numpy.typing import DTypeLike, NDArray
from sklearn.cross_decomposition import PLSRegression
from threadpoolctl import threadpool_info, threadpool_limits

from plstream import IncrementalPLS

FloatArray: TypeAlias = NDArray[np.floating]
Fit: TypeAlias = Callable[[FloatArray, FloatArray, int], object]

COMPONENTS = (4, 10)
TARGETS = (1, 10)
DTYPES = (np.dtype(np.float64), np.dtype(np.float32))
BUDGET_SECONDS = 40.0
# Columns that the responses depend on.
N_CAUSES = 16
# Strengths of what the columns of X have in common. Independent columns are used up after a dozen components.
FACTOR_STRENGTHS = np.geomspace(1.0, 0.02, 32, dtype=np.float32)


class Size(NamedTuple):
    """Shape of X."""

    n: int
    m: int

    @classmethod
    def parse(cls, text: str) -> Size:
        """Read "100000x512"."""
        n, m = map(int, text.lower().split("x"))
        return cls(n, m)

    def __str__(self) -> str:
        return f"{self.n:,} x {self.m:,}"


@dataclass(frozen=True)
class Plan:
    """Shapes of X and numbers of components to measure, and how often to repeat."""

    sizes: Sequence[Size]
    memory_sizes: Sequence[Size]
    growth_rows: Sequence[int]
    growth_columns: int
    growth_components: Sequence[int]
    repeats: int = 5


FULL = Plan(
    sizes=(Size(100_000, 512), Size(20_000, 4096), Size(5_000, 25_088)),
    memory_sizes=(Size(20_000, 2048), Size(80_000, 2048)),
    growth_rows=(40_000, 80_000, 160_000, 320_000),
    growth_columns=1024,
    growth_components=(1, 2, 4, 8, 16),
)
QUICK = Plan(
    sizes=(Size(5_000, 256), Size(500, 2048)),
    memory_sizes=(Size(10_000, 2048), Size(20_000, 2048)),
    growth_rows=(20_000, 40_000, 80_000),
    growth_columns=256,
    growth_components=(1, 2, 4),
)


def fit_ours(X: FloatArray, Y: FloatArray, c: int) -> object:
    """Fit the estimator that all others are compared with."""
    return IncrementalPLS(c).fit(X, Y)


def fit_sklearn(X: FloatArray, Y: FloatArray, c: int) -> object:
    """Fit PLSRegression, which turns X to float64 whatever it is."""
    return PLSRegression(c).fit(X, Y)


def fit_ikpls(X: FloatArray, Y: FloatArray, c: int, *, algorithm: int) -> object:
    """Fit improved-kernel PLS of ikpls in the precision of X."""
    return ikpls.numpy.PLS(algorithm=algorithm, ddof=1, dtype=X.dtype.type).fit(X, Y, c)


@dataclass(frozen=True)
class Peer:
    """A method to compare with."""

    name: str
    fit: Fit
    most_columns: float = float("inf")
    """Columns beyond which it is left out."""
    iterates: bool = False
    """Whether it has an inner iteration for several responses, so long that it is run only once."""

    def repeats(self, repeats: int, q: int) -> int:
        """Return how often to run it."""
        return 1 if self.iterates and q > 1 else repeats


SKLEARN = Peer("PLSRegression", fit_sklearn, iterates=True)
IKPLS_1 = Peer("ikpls 1", partial(fit_ikpls, algorithm=1))
IKPLS_2 = Peer("ikpls 2", partial(fit_ikpls, algorithm=2), most_columns=10_000)
PEERS = (SKLEARN, IKPLS_1, IKPLS_2)


def make_data(size: Size, q: int, dtype: DTypeLike) -> tuple[FloatArray, FloatArray]:
    """Return X of factors and noise, with columns of different scale and a mean, and Y of some columns and noise.

    But for rounding, the numbers are the same for both dtypes, and the first response the same for any q.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal(size, dtype=np.float32)
    factors = rng.standard_normal((size.n, len(FACTOR_STRENGTHS)), dtype=np.float32) * FACTOR_STRENGTHS
    X += factors @ rng.standard_normal((len(FACTOR_STRENGTHS), size.m), dtype=np.float32)
    X *= np.linspace(3.0, 0.2, size.m, dtype=np.float32)
    X += 1.5
    causes = X[:, np.linspace(0, size.m - 1, N_CAUSES, dtype=int)]
    effects = rng.standard_normal((N_CAUSES, max(TARGETS)))
    Y = causes @ effects + rng.standard_normal((size.n, max(TARGETS)))
    return X.astype(dtype, copy=False), np.ascontiguousarray(Y[:, :q], dtype=dtype)


def speed(plan: Plan) -> str:
    """Return the table of times."""
    header = ("X", "dtype", "q", "c", *(peer.name for peer in PEERS), "share of read speed", "our seconds")
    rows = [row for size in plan.sizes for dtype in DTYPES for row in speed_rows(plan, size, dtype)]
    return f"""## Time of fit

How many times as long as `IncrementalPLS.fit` the others take, with q responses and c components: median
(least-largest) of {plan.repeats} pairs of runs, ours and theirs in turns. *Share of read speed*: the time of c + 1
plain reads of as many bytes as X has, divided by the time of our fit, which reads X that often. Our seconds belong to
the machine, and are for information only.

{markdown(header, rows)}

- PLSRegression works in float64 whatever X is. For q > 1 it iterates within each component; there it is run once.
- ikpls 1 and 2 are its algorithms 1 and 2, in the dtype of X.
- "-": ikpls 2 is not run beyond {IKPLS_2.most_columns:,} columns, for it forms the square matrix of all of them
  (5 GB of float64 at 25,088).
- No further pair is run once those of a cell have taken {BUDGET_SECONDS:.0f} s.
"""


def speed_rows(plan: Plan, size: Size, dtype: np.dtype) -> Iterator[list[str]]:
    """Yield the rows of the table for one X."""
    X, Y = make_data(size, max(TARGETS), dtype)
    # Compiles the loops, and takes the page faults of the first use of memory.
    for fit in (fit_ours, IKPLS_1.fit):
        fit(X, Y, 1)
    # Sums of products in float32 are bound by arithmetic, so the yardstick is as many bytes of float64.
    bytes_of_x = np.ones(X.nbytes // 8)
    for q, c in product(TARGETS, COMPONENTS):
        responses = np.ascontiguousarray(Y[:, :q])
        log(f"time: {size} {dtype}, q = {q}, c = {c}")
        yield [str(size), str(dtype), str(q), str(c), *speed_cells(plan, X, responses, c, bytes_of_x)]


def speed_cells(plan: Plan, X: FloatArray, Y: FloatArray, c: int, bytes_of_x: NDArray[np.float64]) -> list[str]:
    """Return the cells of the peers, of the share of read speed and of our seconds."""
    ours = partial(fit_ours, X, Y, c)
    cells: list[str] = []
    our_times: list[float] = []

    def ratio_to_ours(run: Callable[[], object], repeats: int) -> Spread:
        mine, theirs = take_turns([ours, run], repeats, BUDGET_SECONDS).T
        our_times.extend(mine)
        return Spread.of(theirs / mine)

    for peer in PEERS:
        if X.shape[1] > peer.most_columns:
            cells.append("-")
            continue
        ratio = ratio_to_ours(partial(peer.fit, X, Y, c), peer.repeats(plan.repeats, Y.shape[1]))
        cells.append(ratio.text(1, planned=plan.repeats))
        log(f"  {peer.name}: {cells[-1]}")
    share = ratio_to_ours(partial(read, bytes_of_x, c + 1), plan.repeats)
    return [*cells, share.text(2), Spread.of(our_times).text(2)]


def read(array: NDArray[np.float64], times: int) -> None:
    """Read an array as fast as the memory allows."""
    for _ in range(times):
        np.dot(array, array)


def memory(plan: Plan, c: int = 4) -> str:
    """Return the table of peak memory."""
    smallest = min(plan.memory_sizes)
    cases: list[tuple[str, Fit, Size]] = [("IncrementalPLS", fit_ours, size) for size in plan.memory_sizes]
    cases += [(peer.name, peer.fit, smallest) for peer in (SKLEARN, IKPLS_1)]
    rows = []
    for name, fit, size in cases:
        log(f"memory: {name}, {size}")
        size_bytes = size.n * size.m * 8
        peak = memory_of_fit(fit, size, c)
        rows.append((name, str(size), f"{size_bytes / MIB:.0f}", f"{peak / MIB:.1f}", f"{peak / size_bytes:.3f}"))
    return f"""## Peak memory of fit

Memory that a fit of a memory-mapped float64 file takes at most, beyond what the process had before and without the
pages of the file, which the system can drop at any time; q = 1, c = {c}, each in a process of its own.

{markdown(("method", "X", "MiB of X", "peak MiB", "peak / X"), rows)}
"""


def memory_of_fit(fit: Fit, size: Size, c: int) -> int:
    """Write X to a file, and return the peak memory of fitting it in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder, "X.npy"), Path(folder, "Y.npy")
        for path, array in zip(paths, make_data(size, 1, np.float64), strict=True):
            np.save(path, array)
        return in_child(peak_of_fit, fit, *paths, c, blas_threads())


def peak_of_fit(fit: Fit, x_path: Path, y_path: Path, c: int, threads: int) -> int:
    """Return the peak memory of fitting a mapped file in this process."""
    X, Y = np.load(x_path, mmap_mode="r"), np.load(y_path)
    with threadpool_limits(threads, user_api="blas"):
        # What is compiled or imported at first use stays. It takes the whole file: small arrays need no compiled loops.
        fit(X, Y, c)
        return peak_growth(partial(fit, X, Y, c))


def growth(plan: Plan, c: int = 4) -> str:
    """Return the table of our time against the number of rows and of components."""
    m, n = plan.growth_columns, plan.growth_rows[1]
    X, Y = make_data(Size(max(plan.growth_rows), m), 1, np.float64)
    fit_ours(X, Y, 1)
    log("growth: rows")
    by_rows = growth_times(X, Y, [(rows, c) for rows in plan.growth_rows], plan.repeats)
    log("growth: components")
    by_components = growth_times(X, Y, [(n, components) for components in plan.growth_components], plan.repeats)
    exponent, scale = np.polyfit(np.log(plan.growth_rows), np.log([time.median for time in by_rows]), 1)
    slope, start = np.polyfit(plan.growth_components, [time.median for time in by_components], 1)
    table = [
        (f"{rows:,}", str(c), time.text(3), f"{np.exp(scale) * rows**exponent:.3f}")
        for rows, time in zip(plan.growth_rows, by_rows, strict=True)
    ]
    table += [
        (f"{n:,}", str(components), time.text(3), f"{start + slope * components:.3f}")
        for components, time in zip(plan.growth_components, by_components, strict=True)
    ]
    return f"""## Growth of our time

Float64, {m:,} columns, q = 1: median (least-largest) of {plan.repeats} runs.

{markdown(("rows", "c", "seconds", "fitted"), table)}

- Rows: seconds grow as rows to the power of {exponent:.2f}.
- Components: seconds = {start:.3f} + {slope:.3f} c.
"""


def growth_times(X: FloatArray, Y: FloatArray, cases: Sequence[tuple[int, int]], repeats: int) -> list[Spread]:
    """Return our times for the first n rows and c components, for each case (n, c)."""
    runs = [partial(fit_ours, X[:n], Y[:n], c) for n, c in cases]
    return [Spread.of(times) for times in take_turns(runs, repeats).T]


def surroundings() -> str:
    """Return what the numbers depend on, besides the machine."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("plstream", "scikit-learn", "ikpls", "numpy"))
    return f"# Exact PLS\n\n{packages}; Python {platform.python_version()}; {blas_threads()} BLAS threads.\n"


def blas_threads() -> int:
    """Return the number of threads that BLAS may use at this moment."""
    return max((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)


def read_arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=Size.parse, metavar="NxM", help="shapes of X to time, as 100000x512")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see whether it works")
    parser.add_argument("--repeats", type=int, default=FULL.repeats, help="runs of each method (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=blas_threads(), help="threads of BLAS (default: %(default)s)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables to this file")
    return parser.parse_args()


def main() -> None:
    """Measure, and print each table when it is done."""
    options = read_arguments()
    plan = replace(QUICK if options.quick else FULL, repeats=options.repeats)
    if options.sizes:
        plan = replace(plan, sizes=options.sizes)
    sections = []
    with threadpool_limits(options.threads, user_api="blas"):
        for section in (surroundings, partial(speed, plan), partial(memory, plan), partial(growth, plan)):
            sections.append(section())
            print(sections[-1], flush=True)
    if options.output is not None:
        options.output.write_text("\n".join(sections))


if __name__ == "__main__":
    main()
