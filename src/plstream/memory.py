"""How much memory there is, to refuse at once what would fail after an hour, or bring the machine to its knees."""

from __future__ import annotations

from itertools import starmap
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
# Folders that tell about a container: version 2 of control groups, then version 1.
_CONTAINERS = (
    (Path("/sys/fs/cgroup"), "memory.max", "memory.current"),
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"),
)


def available_bytes() -> int | None:
    """Return how much memory this process may still take, or None where the system does not tell (other than Linux)."""
    bounds = [room for room in (_machine_room(), *starmap(_container_room, _CONTAINERS)) if room is not None]
    return min(bounds, default=None)


def require_memory(needed: int, purpose: str) -> None:
    """Raise an error if there is less memory than needed."""
    available = available_bytes()
    if available is not None and needed > available:
        raise MemoryError(
            f"{purpose} needs about {needed / 1e9:,.1f} GB of memory, and there are {available / 1e9:,.1f} GB."
        )


def _machine_room() -> int | None:
    try:
        return _fields(_MEMINFO)["MemAvailable"] << 10
    except (OSError, KeyError, ValueError):
        return None


def _container_room(folder: Path, limit_name: str, used_name: str) -> int | None:
    try:
        limit, used = (int((folder / name).read_text()) for name in (limit_name, used_name))
        statistics = _fields(folder / "memory.stat")
    except (OSError, ValueError):
        # There is no such file, or the limit is "max".
        return None
    # Pages of files count as used, though the system drops them when it needs to.
    pages = statistics.get("active_file", 0) + statistics.get("inactive_file", 0)
    return max(0, limit - used + pages)


def _fields(file: Path) -> dict[str, int]:
    """Return the first two words of every line, a name and a number."""
    lines = (line.split() for line in file.read_text().splitlines())
    return {words[0].rstrip(":"): int(words[1]) for words in lines}
