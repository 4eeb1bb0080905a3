"""Available memory, given the limits of machine, control groups and process, and errors if it is insufficient."""

import resource
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from plstream._core import memory


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Return the folder of the files that the system would write: none yet."""
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_OWN_PAGES", tmp_path / "statm")
    monkeypatch.setattr(memory, "_OWN_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "_GROUPS", tmp_path / "groups")
    return tmp_path


def write_group(folder, limit, used, names=("memory.max", "memory.current")):
    folder.mkdir(parents=True, exist_ok=True)
    for name, number in zip(names, (limit, used), strict=True):
        (folder / name).write_text(f"{number}\n")
    (folder / "memory.stat").write_text("anon 700000\ninactive_file 200000\nactive_file 100000\n")


@pytest.mark.usefixtures("system")
def test_unknown_memory_allows_everything():
    assert memory.available_bytes() is None
    memory.require_memory(10**15, "A galaxy")


def test_machine(system):
    (system / "meminfo").write_text("MemTotal:       8000 kB\nMemAvailable:   4000 kB\n")
    assert memory.available_bytes() == 4000 * 1024


def test_groups_within_groups(system):
    (system / "cgroup").write_text("0::/jobs/mine\n")
    write_group(system / "groups" / "jobs" / "mine", "max", 0)
    assert memory.available_bytes() is None
    write_group(system / "groups" / "jobs", 3_000_000, 1_000_000)
    assert memory.available_bytes() == 2_300_000
    write_group(system / "groups" / "jobs" / "mine", 2_000_000, 1_500_000)
    assert memory.available_bytes() == 800_000
    write_group(system / "groups", 1_000_000, 5_000_000)
    assert memory.available_bytes() == 0


def test_groups_of_version_1(system):
    (system / "cgroup").write_text("4:cpu,cpuacct:/mine\n3:memory:/mine\n")
    names = "memory.limit_in_bytes", "memory.usage_in_bytes"
    write_group(system / "groups" / "memory" / "mine", 3_000_000, 1_000_000, names)
    assert memory.available_bytes() == 2_300_000


def test_limit_of_the_address_space(system, monkeypatch):
    (system / "statm").write_text("100 50 10 1 0 60 0\n")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (150 * resource.getpagesize(), -1))
    assert memory.available_bytes() == 50 * resource.getpagesize()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, -1))
    assert memory.available_bytes() is None


def test_refusal_in_one_sentence(system):
    (system / "meminfo").write_text("MemAvailable:   4000000 kB\n")
    memory.require_memory(10**9, "A planet")
    with pytest.raises(
        MemoryError, match=r"^A star requires about 5\.0 GB of memory, but only 4\.1 GB is available: use less data"
    ):
        memory.require_memory(5 * 10**9, "A star")
    (system / "meminfo").write_text("MemAvailable:   40 kB\n")
    with pytest.raises(MemoryError, match=r"about 2\.5 MB of memory, but only 0\.0 MB is available"):
        memory.require_memory(2_500_000, "A pebble")


def test_a_budget_is_never_exceeded():
    budget, taken, most = memory.MemoryBudget(10), [], []

    def take(n_bytes):
        with budget.taking(n_bytes):
            taken.append(n_bytes)
            most.append(sum(taken))
            time.sleep(0.001)
            taken.remove(n_bytes)

    with ThreadPoolExecutor(6) as threads:
        # Whoever wants more than all is alone.
        list(threads.map(take, [3, 4, 5, 30, 2, 7, 1, 30, 6, 4]))
    assert max(total for total in most if total != 30) <= 10
    assert most.count(30) == 2
    with pytest.raises(KeyError), budget.taking(10):
        raise KeyError
    with budget.taking(10):
        pass
