"""The workers of Dask's scheduler: their threads, memory and progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from .._core.memory import available_bytes
from .._core.progress import counting
from .graph import Graph, Key

# Beyond this share of its memory, a Dask worker spills to disk, pauses, and may be restarted.
_USABLE_SHARE = 0.7
# Share of all workers' memory for blocks kept between reads.
_HELD_SHARE = 0.3


@dataclass(frozen=True)
class Workers:
    """The workers that Dask uses."""

    get: Callable[..., Any]
    """Dask's function that computes keys of a graph."""
    client: Any
    """The client, if the workers are those of a cluster, else None."""
    n_workers: int
    threads: int
    """Maximum number of threads of a worker."""
    memory: int | None
    """Memory limit of the smallest worker in bytes, if known."""
    keeps: bool
    """Whether values can stay on the workers between two computations."""

    @classmethod
    def current(cls) -> Workers:
        """Return the workers that Dask would use now."""
        import dask
        import dask.threaded
        from dask.base import get_scheduler
        from dask.system import CPU_COUNT

        get = get_scheduler() or dask.threaded.get
        client = getattr(get, "__self__", None)
        if client is not None:
            threads_of = client.nthreads()
            limits = [worker["memory_limit"] or 0 for worker in client.scheduler_info()["workers"].values()]
            most = max(threads_of.values(), default=1)
            return cls(get, client, max(1, len(threads_of)), most, min(limits, default=0) or None, keeps=True)
        threads = 1 if get is dask.get else int(dask.config.get("num_workers", None) or CPU_COUNT)
        # With other processes, blocks would be transferred to this one.
        keeps = getattr(get, "__module__", "") != "dask.multiprocessing"
        return cls(get, None, 1, threads, available_bytes(), keeps)

    @property
    def usable(self) -> int | None:
        """Memory in bytes available for work on one worker."""
        return None if self.memory is None else int(_USABLE_SHARE * self.memory)

    def can_hold(self, n_bytes: int, needed: int) -> bool:
        """Return whether blocks of this total size fit in memory in addition to the memory needed for work."""
        if not self.keeps or self.memory is None or n_bytes > _HELD_SHARE * self.memory * self.n_workers:
            return False
        return needed + n_bytes / self.n_workers <= _USABLE_SHARE * self.memory

    def compute(self, graph: Graph, key: Key, parts: Mapping[Key, int], label: str, total: int, unit: str) -> Any:
        """Return the value of a key; progress is updated as parts complete."""
        tell = counting(label, total, unit)
        if self.client is None:
            from dask.callbacks import Callback
            from dask.optimization import cull

            def after(done: Key, *_: Any) -> None:
                if tell is not None and done in parts:
                    tell(parts[done])

            with nullcontext() if tell is None else Callback(posttask=after):
                return self.get(cull(graph, [key])[0], key)
        if tell is None:
            return self.client.get(graph, key)
        from distributed import as_completed

        result, *futures = self.client.get(graph, [key, *parts], sync=False)
        for future in as_completed(futures):
            if future.status != "finished":
                break
            tell(parts[future.key])
            # From here on, the scheduler decides how long to keep the result.
            future.release()
        return result.result()
