"""Time of the online methods, compared with NumPy loops, memory bandwidth and the validation of a row.

Times are compared as ratios of runs that follow each other, because absolute times vary between machines and hours. All
is on one thread.

Run ``python benchmarks/online_speed.py``, with ``--quick`` for a quick check, or with ``--tables 1,3`` for some of the
tables.
"""

from __future__ import annotations

import argparse
import pickle
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy_loops
from exact import Size, make_data
from measure import Spread, add_tables_option, log, markdown, take_turns
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data
from threadpoolctl import threadpool_limits

from plstream import CCIPCA, CIPLS, IPLS, OLPLS, SGDPLS, IncrementalLDA
from plstream._core.compiled import compiled

Array: TypeAlias = NDArray[Any]
Float64Array: TypeAlias = NDArray[np.float64]
Loop: TypeAlias = Callable[[Float64Array, Float64Array, int], Float64Array]
Target: TypeAlias = Callable[[Float64Array], Array]

N_COMPONENTS = 4
MOST_COMPONENTS = 16
# Rows that a loop in NumPy is timed on. They take the same time each, but for the first few.
LOOP_ROWS = 2000
# How far the directions of a loop in NumPy may be from those of its estimator, and for what: principal components that
# have not settled, for want of rows, magnify rounding errors.
LARGEST_DIFFERENCE = 1e-8
CHECKED = Size(2000, 128)
BUDGET_SECONDS = 120.0
# Numbers of features, and how many times as fast as a loop in NumPy an update is to be.
AIMS = {128: 50, 1024: 15, 4096: 6, 25_088: 4, 100_000: 4}
# Microseconds that calls with one row of 128 features are to take: learn_one of CIPLS, and partial_fit.
LATENCY_AIMS = 15, 80


# Methods


def one_response(Y: Float64Array) -> Array:
    """Return the first response."""
    return Y[:, 0]


def all_responses(Y: Float64Array) -> Array:
    """Return all responses."""
    return Y


def two_classes(Y: Float64Array) -> Array:
    """Return whether the first response is positive."""
    labels: Array = Y[:, 0] > 0
    return labels


def ipls_of_as_many(c: int) -> IPLS:
    """Return IPLS with as many principal components as components."""
    return IPLS(c, n_pca_components=c)


@dataclass(frozen=True)
class Method:
    """A method to time."""

    name: str
    new: Callable[[int], Any]
    """Makes an estimator of so many components."""
    order: str
    """How time grows, according to the paper."""
    loop: Loop | None = None
    """The same in NumPy."""
    vectors: int = N_COMPONENTS
    """Components, or what stands for them, that an update goes through; zero if it is a matrix."""
    target: Target = one_response
    """What it learns from."""
    growth_target: Target | None = one_response
    """What it learns from while the number of components is varied, which it is not if None."""
    most_components: int = MOST_COMPONENTS
    """Components beyond which it overflows."""
    most_columns: float = float("inf")
    """Features beyond which it is left out."""

    def fit(self, X: Float64Array, Y: Float64Array) -> Any:
        """Take all rows in by one call."""
        return self.new(N_COMPONENTS).partial_fit(X, self.target(Y))


METHODS = (
    Method("CIPLS", CIPLS, "O(ncm)", numpy_loops.cipls_normalized),
    Method("CIPLS, paper", partial(CIPLS, variant="paper"), "O(ncm)", numpy_loops.cipls_paper),
    Method(
        "CIPLS, released",
        partial(CIPLS, variant="released"),
        "O(ncm)",
        numpy_loops.cipls_released,
        most_components=4,
    ),
    Method("CCIPCA", CCIPCA, "O(nLm), L = c", numpy_loops.ccipca),
    Method("IPLS, L = 20", IPLS, "O(nLm + c^2 m)", numpy_loops.ipls, vectors=20),
    Method("IPLS, L = c", ipls_of_as_many, "O(nLm + c^2 m)", numpy_loops.ipls_of_as_many),
    Method("OLPLS", OLPLS, "-", numpy_loops.olpls),
    Method("SGDPLS, sgd", partial(SGDPLS, random_state=0), "O(Tcm)", vectors=1, growth_target=all_responses),
    Method("SGDPLS, msg", partial(SGDPLS, algorithm="msg"), "O(Tcm)", vectors=1, growth_target=all_responses),
    Method(
        "SGDPLS, incremental", partial(SGDPLS, algorithm="incremental"), "-", vectors=1, growth_target=all_responses
    ),
    Method(
        "LDA, scatter",
        lambda _: IncrementalLDA(solver="scatter"),
        "-",
        vectors=0,
        target=two_classes,
        growth_target=None,
        most_columns=2048,
    ),
    Method(
        "LDA, covariance-free",
        lambda _: IncrementalLDA(solver="covariance-free"),
        "-",
        vectors=1,
        target=two_classes,
        growth_target=None,
    ),
)


# Data


class Rows(NamedTuple):
    """Rows with responses."""

    X: Float64Array
    Y: Float64Array

    def first(self, n: int) -> Rows:
        """Return the first n rows."""
        return Rows(self.X[:n], self.Y[:n])


def make_rows(size: Size) -> Rows:
    """Return rows of factors and noise, and one response."""
    return Rows(*make_data(size, 1, np.float64))


@dataclass(frozen=True)
class Plan:
    """Sizes to measure, and how often to repeat."""

    columns: Sequence[int]
    data_bytes: int
    """Size of X, which says how many rows it has."""
    growth_rows: Sequence[int]
    growth_columns: Sequence[int]
    growth_components: Sequence[int]
    latency_columns: Sequence[int] = (128, 1024, 4096)
    latency_calls: int = 500
    repeats: int = 7

    def rows(self, m: int) -> int:
        """Return how many rows of m features make up X."""
        return max(64, self.data_bytes // (8 * m))


FULL = Plan(
    columns=tuple(AIMS),
    data_bytes=128 << 20,
    growth_rows=(1000, 2000, 4000, 8000, 16_000),
    growth_columns=(1024, 2048, 4096, 8192, 16_384, 32_768, 65_536),
    growth_components=(2, 3, 4, 6, 8, 12, MOST_COMPONENTS),
)
QUICK = Plan(
    columns=(128, 1024, 4096),
    data_bytes=16 << 20,
    growth_rows=(500, 1000, 2000),
    growth_columns=(1024, 4096, 16_384),
    growth_components=(2, 3, 4, 8),
    latency_calls=100,
    repeats=3,
)


def methods_for(m: int) -> list[Method]:
    """Return the methods that can take so many features."""
    return [method for method in METHODS if m <= method.most_columns]


# Tables


def loops(plan: Plan) -> str:
    """Return the table of the time of an update, and of how many times as long a loop in NumPy takes."""
    checked = make_rows(CHECKED)
    for method in METHODS:
        require_same_directions(method, checked)
    header = ("features", "method", "microseconds a row", "NumPy", "NumPy / ours", "aim")
    rows = [row for m in plan.columns for row in loop_rows(plan, m)]
    return f"""## 1. Time of an update

Microseconds a row of one `partial_fit` with {plan.data_bytes >> 20} MiB of float64, one response (two classes for LDA)
and c = {N_COMPONENTS}; beside a loop over rows in NumPy that does the same (`numpy_loops.py`), with at most
{LOOP_ROWS:,} rows. Median (least-largest) of {plan.repeats} rounds, in which all methods and loops take turns; the
ratio is that of the times a row in one round.

{markdown(header, rows)}

- For {CHECKED} the directions of a loop and of its estimator differ by less than {LARGEST_DIFFERENCE:g} in any entry.
- No further round begins once those for one number of features have taken {BUDGET_SECONDS:.0f} s.
"""


def loop_rows(plan: Plan, m: int) -> Iterator[list[str]]:
    """Yield the rows of the table for one number of features."""
    log(f"update: {m:,} features")
    rows = make_rows(Size(plan.rows(m), m))
    few = rows.first(LOOP_ROWS)
    methods = methods_for(m)
    # Compiles what is not, and takes the page faults of the first use of memory.
    for method in methods:
        method.fit(*few)
    ours = [(partial(method.fit, *rows), len(rows.X)) for method in methods]
    compared = [method for method in methods if method.loop is not None]
    theirs = [(partial(method.loop, few.X, few.Y[:, 0], N_COMPONENTS), len(few.X)) for method in compared]
    runs, counts = zip(*ours, *theirs, strict=True)
    times = take_turns(runs, plan.repeats, BUDGET_SECONDS) / counts * 1e6
    loop_times = dict(zip(compared, times.T[len(methods) :], strict=True))
    for method, a_row in zip(methods, times.T, strict=False):
        cells = [Spread.of(a_row).text(2, plan.repeats), "-", "-", "-"]
        if method in loop_times:
            cells[1] = Spread.of(loop_times[method]).text(1, plan.repeats)
            cells[2] = Spread.of(loop_times[method] / a_row).text(1, plan.repeats)
            cells[3] = str(AIMS.get(m, "-"))
        log(f"  {method.name}: {' '.join(cells)}")
        yield [f"{m:,}", method.name, *cells]


def require_same_directions(method: Method, rows: Rows) -> None:
    """Raise ValueError if the loop does not do what the estimator does."""
    if method.loop is None:
        return
    model = method.fit(*rows)
    expected = model.components_.T if isinstance(model, CCIPCA) else model.x_weights_
    actual = method.loop(rows.X, rows.Y[:, 0], N_COMPONENTS)
    actual = actual * np.sign(np.einsum("ij,ij->j", actual, expected))
    difference = np.abs(actual - expected).max()
    if not difference < LARGEST_DIFFERENCE:
        raise ValueError(f"{method.name}: directions of the loop in NumPy differ by {difference:.1e}.")


def memory_speed(plan: Plan) -> str:
    """Return the table of bytes a second, beside those of a triad."""
    header = ("features", "method", "KiB of state and row", "GB/s", "GB/s of the triad", "ours / triad")
    rows = [row for m in plan.columns for row in memory_rows(plan, m)]
    return f"""## 2. Speed of memory

The same updates as bytes a second, counting 8 m (7 v + 1) bytes a row for m features: v is c = {N_COMPONENTS}, but for
IPLS its number of principal components, and one for SGDPLS and LDA, which have one direction for one response. That
is a yardstick: really, CIPLS moves about 9 vectors a component, "paper" and "released" 6 and 7, CCIPCA 5. Beside
them as many bytes of a triad, a[j] = b[j] + s c[j], counting 24 an element, of arrays that together are as large as the
state of the method and a row. Median (least-largest) of {plan.repeats} rounds, in which a method and its triad take
turns. The aim is 0.8 from 1,024 features on.

{markdown(header, rows)}
"""


def memory_rows(plan: Plan, m: int) -> Iterator[list[str]]:
    """Yield the rows of the table for one number of features."""
    log(f"memory: {m:,} features")
    rows = make_rows(Size(plan.rows(m), m))
    triad(*np.ones((3, 8)), 1)
    for method in methods_for(m):
        if not method.vectors:
            continue
        moved = rows.X.nbytes * (7 * method.vectors + 1)
        held = len(pickle.dumps(method.fit(*rows.first(64)))) + 8 * m
        arrays = np.ones((3, held // 24))
        again = round(moved / arrays.nbytes)
        runs = partial(method.fit, *rows), partial(triad, *arrays, again)
        ours, theirs = take_turns(runs, plan.repeats, BUDGET_SECONDS).T
        theirs *= moved / (again * arrays.nbytes)
        speeds = [Spread.of(moved / times / 1e9).text(1, plan.repeats) for times in (ours, theirs)]
        cells = f"{held / 1024:,.0f}", *speeds, Spread.of(theirs / ours).text(2, plan.repeats)
        log(f"  {method.name}: {' '.join(cells)}")
        yield [f"{m:,}", method.name, *cells]


@compiled
def triad(a: Float64Array, b: Float64Array, c: Float64Array, times: int) -> None:
    """Read two arrays and write a third one, some times; the factor differs, or one time would be enough."""
    for s in range(times):
        for j in range(len(a)):
            a[j] = b[j] + s * c[j]


def growth(plan: Plan) -> str:
    """Return the table of exponents."""
    m, n = plan.growth_columns[0], plan.growth_rows[len(plan.growth_rows) // 2]
    table = []
    for method in METHODS:
        rows = {n: partial(method.fit, *noise_rows(plan, Size(n, m))) for n in plan.growth_rows}
        columns = {
            m: partial(method.fit, *noise_rows(plan, Size(plan.rows(m), m)))
            for m in plan.growth_columns
            if m <= method.most_columns
        }
        cells = [exponent(plan, rows), exponent(plan, columns, plan.rows), "-"]
        if method.growth_target is not None:
            X, Y = noise_rows(plan, Size(n, m))
            target = method.growth_target(Y)
            components = [c for c in plan.growth_components if c <= method.most_components]
            cells[2] = exponent(plan, {c: partial(learn, method, c, X, target) for c in components})
        table.append((method.name, method.order, *cells))
        log(f"growth: {' '.join(table[-1])}")
    steps = [", ".join(f"{x:,}" for x in xs) for xs in (plan.growth_rows, plan.growth_columns, plan.growth_components)]
    return f"""## 3. Growth

Exponents of the time of one `partial_fit`, fitted to the logarithms of medians of {plan.repeats} rounds, beside the
complexity that the paper gives. One number is varied at a time: n = {steps[0]} rows of {m:,} features;
m = {steps[1]} features, where the time is that of a row if there are {plan.data_bytes >> 20} MiB of them; and
c = {steps[2]} components, with n = {n:,} and m = {m:,}. Otherwise c = {N_COMPONENTS}. "CIPLS, released" overflows with
more than a few components, and has at most 4.

{markdown(("method", "paper", "n", "m", "c"), table)}
"""


def learn(method: Method, c: int, X: Float64Array, target: Array) -> object:
    """Take all rows in by one call, for so many components."""
    return method.new(c).partial_fit(X, target)


def exponent(plan: Plan, runs: Mapping[int, Callable[[], object]], share: Callable[[int], int] = lambda _: 1) -> str:
    """Return the exponent of the number in the time of its run, or of a share of that; "-" for a single number."""
    if len(runs) < 2:
        return "-"
    for run in runs.values():
        run()
    times = np.median(take_turns(list(runs.values()), plan.repeats, BUDGET_SECONDS), axis=0)
    numbers = list(runs)
    return f"{np.polyfit(np.log(numbers), np.log(times / [share(number) for number in numbers]), 1)[0]:.2f}"


def noise_rows(plan: Plan, size: Size) -> Rows:
    """Return rows of noise, which for any size are the same memory."""
    X = noise(plan.data_bytes // 8)[: size.n * size.m].reshape(size)
    return Rows(X, np.random.default_rng(1).standard_normal((size.n, MOST_COMPONENTS)))


@cache
def noise(n: int) -> Float64Array:
    """Return so many random numbers."""
    return np.random.default_rng(0).standard_normal(n)


def latency(plan: Plan) -> str:
    """Return the table of the time of a call with one row."""
    header = ("features", "method", "learn_one", "partial_fit", "transform_one", "validate_data")
    rows = [row for m in plan.latency_columns for row in latency_rows(plan, m)]
    return f"""## 4. Latency

Microseconds of calls with one row, c = {N_COMPONENTS}, beside scikit-learn's `validate_data` for the same row, without
y: {plan.latency_calls} calls, median (least-largest) of {plan.repeats} rounds, in which all take turns. With 128
features the aims are {LATENCY_AIMS[0]} for `learn_one` of CIPLS and {LATENCY_AIMS[1]} for `partial_fit`.

{markdown(header, rows)}
"""


def latency_rows(plan: Plan, m: int) -> Iterator[list[str]]:
    """Yield the rows of the table for one number of features."""
    log(f"latency: {m:,} features")
    rows = make_rows(Size(plan.latency_calls, m))
    methods = methods_for(m)
    models = [method.fit(*rows) for method in methods]
    runs = [partial(validate_singly, models[0], rows.X)]
    for method, model in zip(methods, models, strict=True):
        target = method.target(rows.Y)
        runs += [
            partial(learn_one_by_one, model, list(rows.X), list(target)),
            partial(learn_singly, model, rows.X, target),
            partial(transform_one_by_one, model, list(rows.X)),
        ]
    validation, *calls = take_turns(runs, plan.repeats, BUDGET_SECONDS).T / plan.latency_calls * 1e6
    for i, method in enumerate(methods):
        cells = [Spread.of(times).text(1, plan.repeats) for times in (*calls[3 * i : 3 * i + 3], validation)]
        log(f"  {method.name}: {' '.join(cells)}")
        yield [f"{m:,}", method.name, *cells]


def learn_one_by_one(model: Any, rows: list[Float64Array], target: list[Any]) -> None:
    """Take rows in by one call of ``learn_one`` each."""
    for x, y in zip(rows, target, strict=True):
        model.learn_one(x, y)


def transform_one_by_one(model: Any, rows: list[Float64Array]) -> None:
    """Project rows by one call each."""
    for x in rows:
        model.transform_one(x)


def learn_singly(model: Any, X: Float64Array, target: Array) -> None:
    """Take rows in by one call of ``partial_fit`` each."""
    for i in range(len(X)):
        model.partial_fit(X[i : i + 1], target[i : i + 1])


def validate_singly(model: Any, X: Float64Array) -> None:
    """Validate rows one by one."""
    for i in range(len(X)):
        validate_data(model, X[i : i + 1], reset=False)


TABLES: Sequence[Callable[[Plan], str]] = (loops, memory_speed, growth, latency)


def surroundings() -> str:
    """Return what the numbers depend on, besides the machine."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("plstream", "scikit-learn", "numpy", "numba"))
    return f"# Speed of the online methods\n\n{packages}; Python {platform.python_version()}; one thread.\n"


def read_arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", nargs="+", type=int, metavar="M", help="numbers of features in tables 1 and 2")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see whether it works")
    add_tables_option(parser, len(TABLES))
    parser.add_argument("--repeats", type=int, help="rounds of runs")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables to this file")
    return parser.parse_args()


def main() -> None:
    """Measure, and print each table when it is done."""
    options = read_arguments()
    plan = QUICK if options.quick else FULL
    plan = replace(plan, columns=options.columns or plan.columns, repeats=options.repeats or plan.repeats)
    sections = []
    with threadpool_limits(1, user_api="blas"):
        for number in (0, *options.tables):
            sections.append(TABLES[number - 1](plan) if number else surroundings())
            print(sections[-1], flush=True)
    if options.output is not None:
        options.output.write_text("\n".join(sections))


if __name__ == "__main__":
    main()
