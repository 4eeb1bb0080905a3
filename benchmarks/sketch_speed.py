"""Time and memory of the sketch, compared with IncrementalPCA of the same rank, the Gram matrix and an exact fit.

Times per row are compared as ratios of runs that follow each other, because absolute times vary between machines and
hours.

Run ``python benchmarks/sketch_speed.py``, with ``--quick`` for a quick check, or with ``--tables 1,3`` for some of the
tables. On a machine that has other work to do use ``--threads 1``: threads of BLAS wait for each other, so that what a
busy core delays by a little may take ten times as long.
"""

from __future__ import annotations

import argparse
import platform
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

import numpy as np
from exact import Size, blas_threads, make_data, memory_of_fit
from measure import MIB, Spread, add_tables_option, log, markdown, seconds, take_turns
from numpy.typing import NDArray
from sklearn.decomposition import IncrementalPCA
from threadpoolctl import threadpool_limits

from plstream import CIPLS, IncrementalPLS

FloatArray: TypeAlias = NDArray[np.floating]
Fit: TypeAlias = Callable[[FloatArray, FloatArray, int], object]

DTYPES = (np.dtype(np.float64), np.dtype(np.float32))
N_COMPONENTS = 4
# Also the rank of IncrementalPCA.
SKETCH_SIZE = 128
CHUNK_ROWS = 256
BUDGET_SECONDS = 120.0


@dataclass(frozen=True)
class Plan:
    """Shapes and dtypes of X to measure, and how often to repeat."""

    sizes: Sequence[Size]
    pca_rows: int
    """Rows for IncrementalPCA in batches, which take the same time each."""
    crossing_columns: Sequence[int]
    crossing_rows: int
    memory_sizes: Sequence[Size]
    dtypes: Sequence[np.dtype] = DTYPES
    repeats: int = 5


FULL = Plan(
    sizes=(Size(20_000, 4096),),
    pca_rows=2048,
    crossing_columns=(256, 512, 1024, 1536, 2048, 3072, 4096, 8192),
    crossing_rows=4096,
    memory_sizes=(Size(10_000, 4096), Size(20_000, 4096)),
)
QUICK = Plan(
    sizes=(Size(2000, 512),),
    pca_rows=1024,
    crossing_columns=(128, 512, 2048),
    crossing_rows=2048,
    memory_sizes=(Size(2000, 1024),),
    repeats=3,
)


def stream(X: FloatArray, Y: FloatArray, c: int, *, solver: str, chunk_rows: int | None = None) -> IncrementalPLS:
    """Take all rows in by one call of partial_fit, or by one a chunk."""
    # Otherwise the size would grow with the number of components.
    model = IncrementalPLS(c, solver=solver, sketch_size=SKETCH_SIZE)
    step = chunk_rows or len(X)
    for start in range(0, len(X), step):
        model.partial_fit(X[start : start + step], Y[start : start + step])
    return model


def stream_and_solve(X: FloatArray, Y: FloatArray, c: int, *, solver: str, chunk_rows: int | None = None) -> object:
    """Take all rows in, and solve for the coefficients."""
    return stream(X, Y, c, solver=solver, chunk_rows=chunk_rows).coef_


def reread(X: FloatArray, Y: FloatArray, c: int) -> object:
    """Fit exactly, by reading X once more than there are components."""
    return IncrementalPLS(c, solver="multipass").fit(X, Y)


def sketch_all(X: FloatArray, Y: FloatArray, c: int) -> object:
    """Fit a sketch to a file or an array, block by block."""
    return IncrementalPLS(c, solver="sketch", sketch_size=SKETCH_SIZE).fit(X, Y)


def gram_all(X: FloatArray, Y: FloatArray, c: int) -> object:
    """Fit by the Gram matrix to a file or an array, block by block."""
    return IncrementalPLS(c, solver="gram").fit(X, Y)


def recursion(X: FloatArray, Y: FloatArray, c: int) -> object:
    """Fit CIPLS, which keeps a few vectors and works in one row after the other."""
    return CIPLS(c).fit(X, Y[:, 0])


def pca_in_batches(X: FloatArray, _Y: FloatArray, _c: int) -> object:
    """Fit IncrementalPCA of the sketch's rank, with about as many rows a batch as a sketch has room for."""
    return IncrementalPCA(SKETCH_SIZE, batch_size=CHUNK_ROWS).fit(X)


def pca_by_default(X: FloatArray, _Y: FloatArray, _c: int) -> object:
    """Fit IncrementalPCA of the sketch's rank, with batches of five times as many rows as there are columns."""
    return IncrementalPCA(SKETCH_SIZE).fit(X)


@dataclass(frozen=True)
class Method:
    """A way to fit, and how many rows of X it is timed on."""

    name: str
    fit: Fit
    in_batches: bool = False
    """Whether a few rows are enough to know its time a row."""

    def rows(self, plan: Plan, n: int) -> int:
        """Return the number of rows to fit."""
        return min(n, plan.pca_rows) if self.in_batches else n


SKETCH = Method("sketch, one call", partial(stream_and_solve, solver="sketch"))
OTHERS = (
    Method(f"sketch, {CHUNK_ROWS} rows per call", partial(stream_and_solve, solver="sketch", chunk_rows=CHUNK_ROWS)),
    Method("gram, one call", partial(stream_and_solve, solver="gram")),
    Method("multipass fit", reread),
    Method("CIPLS", recursion),
    Method(f"IncrementalPCA, batch_size={CHUNK_ROWS}", pca_in_batches, in_batches=True),
)
PCA_BY_DEFAULT = Method("IncrementalPCA, default batch_size", pca_by_default)


def speed(plan: Plan) -> str:
    """Return the table of times a row."""
    header = ("X", "dtype", "method", "rows", "microseconds a row", "times the sketch's")
    rows = [row for size in plan.sizes for dtype in plan.dtypes for row in speed_rows(plan, size, dtype)]
    return f"""## 1. Time a row

The time of a fit with one response and c = {N_COMPONENTS}, solved at the end, divided by its number of rows; sketches
have size {SKETCH_SIZE}, as has IncrementalPCA components. Median (least-largest) of {plan.repeats} rounds, in which all
methods take turns; the ratio is that of the times a row in one round.

{markdown(header, rows)}

- IncrementalPCA with batch_size={CHUNK_ROWS} takes the same time for every batch but the first, which is cheaper, so
  {plan.pca_rows:,} rows are enough to know it, and if anything flatter it.
- With its default batch_size, five times the number of columns, it takes all rows here as one batch, and is run once.
- No further round begins once those for one X have taken {BUDGET_SECONDS:.0f} s.
"""


def speed_rows(plan: Plan, size: Size, dtype: np.dtype) -> Iterator[list[str]]:
    """Yield the rows of the table for one X."""
    log(f"time: {size} {dtype}")
    X, Y = make_data(size, 1, dtype)
    methods = (SKETCH, *OTHERS)
    counts = [method.rows(plan, size.n) for method in methods]
    runs = [partial(method.fit, X[:n], Y[:n], N_COMPONENTS) for method, n in zip(methods, counts, strict=True)]
    # Compiles the loops, and takes the page faults of the first use of memory.
    reread(X, Y, 1)
    SKETCH.fit(X, Y, 1)
    recursion(X[:1000], Y[:1000], 1)
    times = take_turns(runs, plan.repeats, BUDGET_SECONDS) / counts
    for method, n, a_row in zip(methods, counts, times.T, strict=True):
        ratio = "1" if method is SKETCH else Spread.of(a_row / times[:, 0]).text(2, plan.repeats)
        yield speed_row(size, dtype, method, n, Spread.of(a_row * 1e6).text(0, plan.repeats), ratio)
    once = seconds(partial(PCA_BY_DEFAULT.fit, X, Y, N_COMPONENTS)) / size.n
    ratio = Spread.of([once / np.median(times[:, 0])]).text(2)
    yield speed_row(size, dtype, PCA_BY_DEFAULT, size.n, Spread.of([once * 1e6]).text(0), ratio)


def speed_row(size: Size, dtype: np.dtype, method: Method, n: int, a_row: str, ratio: str) -> list[str]:
    """Return one row of the table, and report it."""
    log(f"  {method.name}: {a_row} us a row, {ratio}")
    return [str(size), str(dtype), method.name, f"{n:,}", a_row, ratio]


def crossing(plan: Plan) -> str:
    """Return the table of the time of Gram matrix and sketch against the number of columns."""
    table = []
    for m in plan.crossing_columns:
        X, Y = make_data(Size(plan.crossing_rows, m), 1, np.float64)
        runs = [partial(stream, X, Y, N_COMPONENTS, solver=solver) for solver in ("gram", "sketch")]
        for run in runs:
            run()
        times = take_turns(runs, plan.repeats, BUDGET_SECONDS) / len(X) * 1e6
        gram, sketch = times.T
        cells = [Spread.of(gram).text(0, plan.repeats), Spread.of(sketch).text(0, plan.repeats)]
        table.append((f"{m:,}", *cells, Spread.of(gram / sketch).text(2, plan.repeats)))
        log(f"crossing: {' '.join(table[-1])}")
    return f"""## 2. Gram matrix or sketch

Microseconds a row of one `partial_fit` of {plan.crossing_rows:,} float64 rows, without solving; sketch of size
{SKETCH_SIZE}. Median (least-largest) of {plan.repeats} rounds.

{markdown(("columns", "gram", "sketch", "gram / sketch"), table)}
"""


def memory(plan: Plan) -> str:
    """Return the table of peak memory."""
    largest = max(plan.memory_sizes)
    cases: list[tuple[str, Fit, Size]] = [("sketch", sketch_all, size) for size in plan.memory_sizes]
    cases += [("gram", gram_all, min(plan.memory_sizes)), ("multipass", reread, largest)]
    cases.append(("IncrementalPCA", pca_in_batches, largest._replace(n=min(plan.pca_rows, largest.n))))
    table = []
    for name, fit, size in cases:
        peak = memory_of_fit(fit, size, N_COMPONENTS)
        row_bytes = size.m * 8
        numbers = f"{size.n * row_bytes / MIB:.0f}", f"{peak / MIB:.1f}", f"{peak / row_bytes:.0f}"
        table.append((name, str(size), *numbers))
        log(f"memory: {' '.join(table[-1])}")
    header = ("method", "X", "MiB of X", "peak MiB", "in rows of X")
    return f"""## 3. Peak memory of fit

Memory that a fit of a memory-mapped float64 file takes at most, beyond what the process had before and without the
pages of the file; one response, c = {N_COMPONENTS}, size {SKETCH_SIZE}, each in a process of its own. IncrementalPCA
with batch_size={CHUNK_ROWS}.

{markdown(header, table)}
"""


def surroundings() -> str:
    """Return what the numbers depend on, besides the machine."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("plstream", "scikit-learn", "numpy", "scipy"))
    threads = f"{blas_threads()} BLAS threads"
    return f"# Speed of the sketch\n\n{packages}; Python {platform.python_version()}; {threads}.\n"


TABLES: Sequence[Callable[[Plan], str]] = (speed, crossing, memory)


def read_arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=Size.parse, metavar="NxM", help="shapes of X to time, as 20000x4096")
    parser.add_argument(
        "--dtypes", nargs="+", type=np.dtype, default=DTYPES, metavar="DTYPE", help="dtypes of X to time"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to see whether it works")
    add_tables_option(parser, len(TABLES))
    parser.add_argument("--repeats", type=int, help="rounds of runs")
    parser.add_argument("--threads", type=int, default=blas_threads(), help="threads of BLAS (default: %(default)s)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables to this file")
    return parser.parse_args()


def main() -> None:
    """Measure, and print each table when it is done."""
    options = read_arguments()
    plan = QUICK if options.quick else FULL
    plan = replace(
        plan,
        sizes=options.sizes or plan.sizes,
        dtypes=options.dtypes,
        repeats=options.repeats or plan.repeats,
    )
    # Here a sketch has to be fast, not good.
    warnings.filterwarnings("ignore", message="sketch_size=.* is small for this data")
    sections = []
    with threadpool_limits(options.threads, user_api="blas"):
        for number in (0, *options.tables):
            sections.append(TABLES[number - 1](plan) if number else surroundings())
            print(sections[-1], flush=True)
    if options.output is not None:
        options.output.write_text("\n".join(sections))


if __name__ == "__main__":
    main()
