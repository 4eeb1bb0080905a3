"""Blocks of rows on all cores, with results in the order of the blocks.

A pass over the data does too little work per block for BLAS threads to pay off. Blocks are therefore distributed over
threads, each with a single-threaded BLAS (NumPy and the compiled loops release the interpreter lock). The number of
threads is that of BLAS, so ``OMP_NUM_THREADS``, ``threadpool_limits`` and joblib's limits are respected. Results are
combined in the order of the blocks, whatever the number of threads.
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
    # Searching for the loaded libraries takes milliseconds, so it is done once per process.
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def blas_threads() -> int:
    """Return the number of threads that BLAS may currently use."""
    return max((library.get_num_threads() for library in _libraries()), default=1)


# Users of the limit, and the original number of threads of each library.
_users: set[object] = set()
_before: list[int] = []
# Reentrant, so that a fit can continue if an interrupt prevented its release.
_lock = threading.RLock()


@contextmanager
def single_threaded_blas() -> Iterator[int]:
    """Limit BLAS to one thread inside the context, and yield the previous number of threads.

    The limit is global to the process: of several concurrent fits, the first sets it and the last restores the previous
    value. Around a whole fit, it also keeps BLAS threads asleep: after a product, they would spin for tens of
    milliseconds on a core that the next pass could use.
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
        # The limit does not outlast its users, wherever an interrupt occurs.
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

    The calling thread is one of them: it reads the items and, while a result is missing, computes others. At most two
    items per thread, and at most ``at_most``, are in progress at a time, so a source that reads from disk never runs
    far ahead. If their total ``size`` exceeds ``largest``, the next item is read when the first is done.
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
        with ThreadPoolExecutor(threads - 1) as executor:
            pending: deque[tuple[Future[Result], Item, int]] = deque()
            most = min(2 * threads, at_most or 2 * threads)
            try:
                for item in chain(first, iterator):
                    pending.append((executor.submit(function, item), item, size(item)))
                    del item
                    while pending and (len(pending) >= most or sum(sizes for _, _, sizes in pending) > largest):
                        yield _first_result(function, pending)
                while pending:
                    yield _first_result(function, pending)
            finally:
                for future, _, _ in pending:
                    future.cancel()


def _first_result(function: Callable[[Item], Result], pending: deque[tuple[Future[Result], Item, int]]) -> Result:
    """Remove and return the first result; while it is missing, process items that no other thread has begun."""
    while not pending[0][0].done():
        # Waiting for another thread, and being woken, can take as long as the work on an item.
        number = next((i for i, (future, _, _) in enumerate(pending) if future.cancel()), None)
        if number is None:
            break
        _, item, n_bytes = pending[number]
        done: Future[Result] = Future()
        try:
            done.set_result(function(item))
        except Exception as error:  # noqa: BLE001
            # Raised in its turn.
            done.set_exception(error)
        pending[number] = done, item, n_bytes
    return pending.popleft()[0].result()
