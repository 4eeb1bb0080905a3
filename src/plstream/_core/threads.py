"""Blocks of rows on all cores, with results in the order of the blocks.

One pass over the data does a little BLAS on each block, too little for BLAS threads to pay off. The blocks
are therefore distributed over threads, each with a single-threaded BLAS (NumPy and the compiled loops release the
interpreter lock). The number of threads is that of BLAS, so ``OMP_NUM_THREADS``, ``threadpool_limits`` and
joblib's limits are respected. Results are combined in the order of the blocks, whatever the number of threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, islice
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")


@lru_cache(maxsize=1)
def _libraries() -> list[Any]:
    # Searching for the loaded libraries takes milliseconds, and is done once per process.
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def blas_threads() -> int:
    """Return the number of threads that BLAS may use at this moment."""
    return max((library.get_num_threads() for library in _libraries()), default=1)


# Users of the limit, and the previous number of threads of each library.
_users: set[object] = set()
_before: list[int] = []
# Reentrant: if an interrupt prevented its release, the next fit continues.
_lock = threading.RLock()


@contextmanager
def single_threaded_blas() -> Iterator[int]:
    """Limit BLAS to one thread while anyone requires it, and yield the previous number of threads.

    The limit is global to the process: with several concurrent fits, the first one sets it and
    the last one restores the previous value. Around a whole fit, it also keeps idle BLAS threads asleep: after
    a product, they spin for tens of milliseconds on a core that the next pass could use.
    """
    user = object()
    try:
        with _lock:
            if not _users:
                _before.clear()
                for library in _libraries():
                    _before.append(library.get_num_threads())
                    library.set_num_threads(1)
            _users.add(user)
        yield max(_before, default=1)
    finally:
        # Wherever an interrupt occurred, the limit does not outlast its users.
        with _lock:
            _users.discard(user)
            if not _users:
                for library, n_threads in zip(_libraries(), _before, strict=False):
                    library.set_num_threads(n_threads)


def ordered_map(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    at_most: int | None = None,
    *,
    size: Callable[[Item], int] = lambda _: 0,
    largest: int = 0,
) -> Iterator[Result]:
    """Yield ``function(item)`` for each item in order, computed by as many threads as BLAS may use.

    At most two items per thread are in progress at a time, and at most ``at_most``, so a source that reads from disk
    never runs far ahead. If their total ``size`` exceeds ``largest``, no further item is read before the first
    of them is done.
    """
    iterator = iter(items)
    first = list(islice(iterator, 2))
    if len(first) < 2:
        yield from map(function, first)
        return
    with single_threaded_blas() as threads:
        if threads == 1:
            yield from map(function, chain(first, iterator))
            return
        with ThreadPoolExecutor(threads) as executor:
            pending: deque[tuple[Future[Result], int]] = deque()
            most = min(2 * threads, at_most or 2 * threads)
            try:
                for item in chain(first, iterator):
                    pending.append((executor.submit(function, item), size(item)))
                    del item
                    while pending and (len(pending) >= most or sum(sizes for _, sizes in pending) > largest):
                        yield pending.popleft()[0].result()
                while pending:
                    yield pending.popleft()[0].result()
            finally:
                for future, _ in pending:
                    future.cancel()
