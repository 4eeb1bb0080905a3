"""Memory: what is left on the machine and in the container, and a refusal in one sentence."""

import pytest

from plstream import memory


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Return the files that the system would write: of the machine, and the limit and the usage of a container."""
    machine, limit, used = tmp_path / "meminfo", tmp_path / "max", tmp_path / "current"
    (tmp_path / "memory.stat").write_text("anon 700000\ninactive_file 200000\nactive_file 100000\n")
    monkeypatch.setattr(memory, "_MEMINFO", machine)
    monkeypatch.setattr(memory, "_CONTAINERS", ((tmp_path, "max", "current"),))
    return machine, limit, used


def test_least_of_machine_and_container(files):
    machine, limit, used = files
    assert memory.available_bytes() is None
    machine.write_text("MemTotal:       8000 kB\nMemAvailable:   4000 kB\n")
    assert memory.available_bytes() == 4000 * 1024
    limit.write_text("3000000\n")
    used.write_text("1000000\n")
    assert memory.available_bytes() == 2300000
    used.write_text("5000000\n")
    assert memory.available_bytes() == 0
    limit.write_text("max\n")
    assert memory.available_bytes() == 4000 * 1024


def test_refusal_in_one_sentence(files):
    memory.require_memory(10**15, "A galaxy")
    files[0].write_text("MemAvailable:   4000000 kB\n")
    memory.require_memory(10**9, "A planet")
    with pytest.raises(MemoryError, match=r"^A star needs about 5\.0 GB of memory, and there are 4\.1 GB\.$"):
        memory.require_memory(5 * 10**9, "A star")
