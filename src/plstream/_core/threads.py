"""Blocks of rows on all cores, with results in the order of the blocks.

One pass over the data does a little BLAS on each block, too little for BLAS's own threads to pay off. So the blocks
are shared out among threads instead, each with a single-threaded BLAS (NumPy and the compiled loops release the
interpreter lock). There are as many threads as BLAS has been given, so ``OMP_NUM_THREADS``, ``threadpool_limits`` and
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
    # Looking for the loaded libraries takes milliseconds: once a process is enough.
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def blas_threads() -> int:
    """Return the number of threads that BLAS may use at this moment."""
    return max((library.get_num_threads() for library in _libraries()), default=1)


class _SingleThreadedBlas:
    """BLAS limited to one thread while anyone needs it so.

    The limit belongs to the process: with several fits under way in threads of their own, the first one in sets it and
    the last one out restores what was there before. Around a whole fit it also keeps BLAS's idle threads asleep: after
    a product they spin for tens of milliseconds on a core that the next pass could use.
    """

    def __init__(self) -> None:
        # The thread that has it may take it again: where an interrupt prevented its release, the next fit goes on.
        self._lock = threading.RLock()
        self._users: set[object] = set()
        self._before: list[int] = []

    @contextmanager
    def __call__(self) -> Iterator[int]:
        """Limit BLAS and yield the number of threads it had."""
        user = object()
        try:
            with self._lock:
                if not self._users:
                    self._before = [library.get_num_threads() for library in _libraries()]
                    self._limit([1] * len(self._before))
                self._users.add(user)
            yield max(self._before, default=1)
        finally:
            # Wherever an interrupt came, the limit does not outlast its users.
            with self._lock:
                self._users.discard(user)
                if not self._users:
                    self._limit(self._before)

    def _limit(self, threads: list[int]) -> None:
        for library, n_threads in zip(_libraries(), threads, strict=False):
            library.set_num_threads(n_threads)


single_threaded_blas = _SingleThreadedBlas()


def ordered_map(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    at_most: int | None = None,
    *,
    size: Callable[[Item], int] = lambda _: 0,
    largest: int = 0,
) -> Iterator[Result]:
    """Yield ``function(item)`` for each item in order, computed by as many threads as BLAS may use.

    No more than two items a thread are under way at a time, nor more than ``at_most``, so a source that reads from disk
    never runs far ahead. If their ``size`` is more than ``largest`` together, no further item is read before the first
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
