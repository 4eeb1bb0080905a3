"""Interleaved timing, peak memory and tables, shared by all benchmarks."""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

MIB = 1 << 20

# After a product the threads of BLAS spin for a while: nobody should pay for whoever came before.
_REST_SECONDS = 0.1
_SAMPLING_SECONDS = 0.002
_STATUS = Path("/proc/self/status")


def log(message: str) -> None:
    """Report progress on standard error, where it does not mix with the results."""
    print(message, file=sys.stderr, flush=True)


def seconds(run: Callable[[], object], rest: float = _REST_SECONDS, *, warm: bool = False) -> float:
    """Return the time that one call takes, after a rest; without one, right after what came before.

    If ``warm``, an untimed call comes between the two, as in a loop: after a rest, caches are cold.
    """
    if rest and not warm:
        gc.collect()
    time.sleep(rest)
    if warm:
        run()
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def take_turns(
    runs: Sequence[Callable[[], object]],
    repeats: int,
    budget: float = float("inf"),
    rest: float = _REST_SECONDS,
    *,
    warm: bool = False,
) -> NDArray[np.float64]:
    """Time several calls one after the other, round by round, so that a slow spell of the machine hits all of them.

    Parameters
    ----------
    runs : sequence of callables
        What to time.
    repeats : int
        Number of rounds.
    budget : float
        Seconds after which no further round begins. There is always a first one.
    rest : float
        Seconds before each call.
    warm : bool
        Whether an untimed call precedes each timed one.

    Returns
    -------
    times : ndarray of shape (rounds, len(runs))
        Seconds.
    """
    rounds: list[list[float]] = []
    while len(rounds) < repeats and sum(map(sum, rounds)) < budget:
        rounds.append([seconds(run, rest, warm=warm) for run in runs])
    return np.array(rounds)


@contextmanager
def busy_cores() -> Iterator[None]:
    """Keep a process busy for every core while the work inside runs, as other programs would."""
    # It ends with its parent, however that ends.
    loop = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(10_000))"
    with ExitStack() as stack:
        for _ in range(os.cpu_count() or 1):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", loop]))  # noqa: S603
            stack.callback(process.kill)
        # Until they have started.
        time.sleep(0.5)
        yield


@dataclass(frozen=True)
class Spread:
    """The median of some measurements, the least and the largest of them, and how many there are."""

    median: float
    least: float
    largest: float
    count: int

    @classmethod
    def of(cls, values: ArrayLike) -> Self:
        """Summarise some measurements."""
        array = np.asarray(values, dtype=np.float64)
        return cls(float(np.median(array)), float(array.min()), float(array.max()), array.size)

    def text(self, digits: int, planned: int = 0) -> str:
        """Return the median and the range, and the number of measurements if there are fewer than planned."""
        if self.count == 1:
            return f"{self.median:.{digits}f} (once)"
        number = f", {self.count} runs" if self.count < planned else ""
        return f"{self.median:.{digits}f} ({self.least:.{digits}f}-{self.largest:.{digits}f}{number})"


def in_child(function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
    """Call a function in a new process, which has no memory of this one."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        return executor.submit(function, *args, **kwargs).result()


def peak_growth(run: Callable[[], object]) -> int:
    """Return by how many bytes the memory of this process grows, at most, during a call.

    The memory is sampled by a thread, so a peak of less than a few milliseconds may be missed.
    """
    _give_back_freed_memory()
    before = peak = _own_bytes()
    finished = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not finished.wait(_SAMPLING_SECONDS):
            peak = max(peak, _own_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        # The result is part of what the call takes, so it must live until the last look.
        result = run()
        peak = max(peak, _own_bytes())
    finally:
        finished.set()
        watcher.join()
    del result
    return peak - before


def _own_bytes() -> int:
    """Return the anonymous memory in use: pages of a mapped file are the system's, which drops them when it needs to.

    Only Linux tells the two apart. Elsewhere it is the largest resident memory so far, with the pages of files.
    """
    if _STATUS.exists():
        fields = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
        return int(fields["RssAnon"].split()[0]) << 10
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest << 10


def _give_back_freed_memory() -> None:
    """Make the allocator return its reserve: a call that is served from there would seem to need nothing."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def add_tables_option(parser: argparse.ArgumentParser, n_tables: int) -> None:
    """Let the user choose some of the tables."""

    def numbers(text: str) -> list[int]:
        chosen = [int(number) for number in text.split(",")]
        if not set(chosen) <= set(range(1, n_tables + 1)):
            raise argparse.ArgumentTypeError(f"tables are 1 to {n_tables}, not {text}")
        return chosen

    everything = range(1, n_tables + 1)
    parser.add_argument("--tables", type=numbers, metavar="1,3", default=everything, help="numbers of tables to make")


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table, with columns that line up in plain text too."""
    cells = [list(header), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(map(str.rjust, row, widths)) + " |" for row in cells]
    rule = "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])
