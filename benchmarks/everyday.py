"""Data of everyday size: `fit` beside PLSRegression and ikpls, alone on the machine and with every core busy.

Run ``python benchmarks/everyday.py``, or with ``--quick`` to see whether it works. ``--sizes 500x1000,2000x200`` and
``--tables 2`` choose a part.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from exact import DTYPES, PEERS, Peer, Size, fit_ours, make_data
from measure import MIB, Spread, add_tables_option, busy_cores, in_child, log, markdown, peak_growth, take_turns

SIZES = "60x401,200x100,2000x200,500x1000,1000x2000,5000x500,10000x2048"
# Responses and components.
CASES = ((1, 5), (5, 20))
# Pairs of runs follow each other at once, as in a loop: after a rest, small fits would be measured with cold caches.
REST_SECONDS = 0.0


@dataclass(frozen=True)
class Plan:
    """What to measure, and how often."""

    sizes: Sequence[Size]
    repeats: int = 31
    budget: float = 1.5
    """Seconds after which no further pair of runs begins."""


def times(plan: Plan, neighbours: Callable[[], AbstractContextManager[Any]], title: str) -> str:
    """Return the table of times."""
    header = ("X", "dtype", "q", "c", *(peer.name for peer in PEERS), "our milliseconds")
    rows = []
    with neighbours():
        for size, dtype, (q, c) in product(plan.sizes, DTYPES, CASES):
            if c < min(size):
                rows.append(time_row(plan, size, dtype, q, c))
                log(" | ".join(rows[-1]))
    return f"## Time of fit, {title}\n\n{markdown(header, rows)}\n"


def time_row(plan: Plan, size: Size, dtype: np.dtype[Any], q: int, c: int) -> tuple[str, ...]:
    """Return the row of one kind of data."""
    X, Y = make_data(size, q, dtype)
    ours, cells, own = partial(fit_ours, X, Y, c), [], []
    for peer in PEERS:
        pair = ours, partial(peer.fit, X, Y, c)
        take_turns(pair[:1], 1)
        found = take_turns(pair, peer.repeats(plan.repeats, q), plan.budget, REST_SECONDS)
        own += found[:, 0].tolist()
        cells.append(Spread.of(found[:, 1] / found[:, 0]).text(2, plan.repeats))
    return str(size), dtype.name, str(q), str(c), *cells, Spread.of(np.multiply(own, 1e3)).text(2)


def memory(plan: Plan) -> str:
    """Return the table of peak memory."""
    peers = (Peer("IncrementalPLS", fit_ours), *PEERS)
    header = ("X", "MiB of X", *(peer.name for peer in peers))
    rows = []
    for size in plan.sizes:
        peaks = [in_child(peak_of_fit, size, peer) for peer in peers]
        rows.append((str(size), f"{8 * size.n * size.m / MIB:.1f}", *(f"{peak / MIB:.1f}" for peak in peaks)))
        log(" | ".join(rows[-1]))
    return f"## Peak memory of fit\n\nMiB, float64, q = 1, c = 5.\n\n{markdown(header, rows)}\n"


def peak_of_fit(size: Size, peer: Peer) -> int:
    """Return the bytes that a fit takes at most, beyond the data."""
    X, Y = make_data(size, 1, np.float64)
    # What is loaded and compiled once is not part of it.
    peer.fit(X, Y, 5)
    return peak_growth(partial(peer.fit, X, Y, 5))


TABLES: Sequence[Callable[[Plan], str]] = (
    partial(times, neighbours=nullcontext, title="alone"),
    partial(times, neighbours=busy_cores, title="beside a busy process per core"),
    memory,
)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few runs")
    parser.add_argument("--sizes", default=SIZES, help="such as 60x401,500x1000")
    add_tables_option(parser, len(TABLES))
    arguments = parser.parse_args()
    plan = Plan([Size.parse(text) for text in arguments.sizes.split(",")])
    if arguments.quick:
        plan = replace(plan, repeats=3, budget=0.1)
    # PLSRegression does not converge where components are mostly noise.
    warnings.simplefilter("ignore")
    for number in arguments.tables:
        print(TABLES[number - 1](plan))


if __name__ == "__main__":
    main()
