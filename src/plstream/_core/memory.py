"""Available memory, to refuse early what would fail later or make the machine swap."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Condition

_MEMINFO = Path("/proc/meminfo")
_OWN_PAGES = Path("/proc/self/statm")
_OWN_GROUPS = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


def available_bytes() -> int | None:
    """Return how much memory this process may still allocate, or None if unknown (on systems other than Linux).

    It is limited by the machine, by control groups (a container, a job), and by the address space limit.
    """
    return min((room for room in (_machine_room(), *_group_rooms(), _own_room()) if room is not None), default=None)


def require_memory(needed: int, purpose: str) -> None:
    """Raise an error if memory is insufficient."""
    available = available_bytes()
    if available is not None and needed > available:
        raise MemoryError(
            f"{purpose} requires about {format_bytes(needed)} of memory, but only {format_bytes(available)} is "
            "available: use less data, or a machine with more memory."
        )


def format_bytes(n_bytes: int) -> str:
    """Format a number of bytes with its unit."""
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 10**9 else f"{n_bytes / 1e6:,.1f} MB"


class MemoryBudget:
    """A budget of bytes shared by threads. A larger request waits until it is the only one."""

    def __init__(self, n_bytes: int) -> None:
        self._total = self._free = n_bytes
        self._changed = Condition()

    @contextmanager
    def taking(self, n_bytes: int) -> Iterator[None]:
        """Wait until this many bytes are available, and hold them inside the context."""
        taken = min(n_bytes, self._total)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= taken)
            self._free -= taken
        try:
            yield
        finally:
            with self._changed:
                self._free += taken
                self._changed.notify_all()


def _machine_room() -> int | None:
    try:
        return _fields(_MEMINFO)["MemAvailable"] << 10
    except (OSError, KeyError, ValueError):
        return None


def _own_room() -> int | None:
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        used = int(_OWN_PAGES.read_text().split()[0]) * resource.getpagesize()
    except (ImportError, OSError, ValueError):
        return None
    return None if limit == resource.RLIM_INFINITY else max(0, limit - used)


def _group_rooms() -> Iterator[int | None]:
    """Yield the remaining memory of every control group of this process, including parents."""
    try:
        lines = _OWN_GROUPS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, names = _GROUPS, ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            root, names = _GROUPS / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        # Inside a container, the path is that of the host, and the container's group is the root.
        parts = Path(path.lstrip("/")).parts
        for depth in range(len(parts) + 1):
            yield _group_room(root.joinpath(*parts[:depth]), *names)


def _group_room(folder: Path, limit_name: str, used_name: str) -> int | None:
    try:
        limit, used = (int((folder / name).read_text()) for name in (limit_name, used_name))
        statistics = _fields(folder / "memory.stat")
    except (OSError, ValueError):
        # The file does not exist, or the limit is "max".
        return None
    # The page cache counts as used, though the system drops it when needed.
    pages = statistics.get("active_file", 0) + statistics.get("inactive_file", 0)
    return max(0, limit - used + pages)


def _fields(file: Path) -> dict[str, int]:
    """Return the name and number at the start of every line."""
    lines = (line.split() for line in file.read_text().splitlines())
    return {words[0].rstrip(":"): int(words[1]) for words in lines}
