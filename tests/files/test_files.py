"""Atomic writes: a failure at any point leaves existing files unchanged."""

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from plstream import IncrementalPLS, load, save
from plstream.files import container, files, replacing


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out.bin"


def only_file_in(folder):
    (entry,) = folder.iterdir()
    return entry


def test_new_and_replaced(path):
    for content in (b"one", b"two"):
        with replacing(path) as file:
            file.write(content)
            assert Path(file.name).parent == path.parent
        assert path.read_bytes() == content
    assert only_file_in(path.parent) == path


def test_writes_to_the_path_of_a_file(path):
    with replacing(path) as file:
        Path(file.name).unlink()
        Path(file.name).write_bytes(b"written by another library")
    assert path.read_bytes() == b"written by another library"


@pytest.mark.parametrize(
    "failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), ValueError()]
)
@pytest.mark.parametrize("existing", [True, False])
def test_failure_while_writing(path, failure, existing):
    if existing:
        path.write_bytes(b"old")

    def write():
        with replacing(path) as file:
            file.write(b"half")
            raise failure

    with pytest.raises(type(failure)):
        write()
    assert [entry.read_bytes() for entry in path.parent.iterdir()] == [b"old"] * existing


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("failure", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
def test_failure_at_the_end(path, step, failure, monkeypatch):
    path.write_bytes(b"old")

    def fail(*_arguments):
        raise failure

    if step == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(type(failure)), replacing(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"old"
    assert only_file_in(path.parent) == path


class FullDisk:
    """A file on a disk with room for a few bytes."""

    def __init__(self, file):
        self.file = file

    def __getattr__(self, name):
        return getattr(self.file, name)

    def write(self, content):
        self.file.write(content[:10])
        raise OSError(errno.ENOSPC, "No space left on device")


def test_save_to_a_full_disk(path, monkeypatch):
    save(IncrementalPLS(3), path)
    real = files.replacing

    class Full:
        def __init__(self, *arguments, **options):
            self.inner = real(*arguments, **options)

        def __enter__(self):
            return FullDisk(self.inner.__enter__())

        def __exit__(self, *error):
            return self.inner.__exit__(*error)

    monkeypatch.setattr(container, "replacing", Full)
    with pytest.raises(OSError, match=r"No space left on device: .*out\.bin"):
        save(IncrementalPLS(5), path)
    assert load(path).n_components == 3
    assert only_file_in(path.parent) == path


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_not_a_regular_file(tmp_path):
    with pytest.raises(OSError, match="Not a regular file: '/dev/full'"), replacing("/dev/full"):
        pass
    with pytest.raises(IsADirectoryError, match="Not a regular file"), replacing(tmp_path):
        pass


def test_kept_if_not_to_be_overwritten(path):
    path.write_bytes(b"old")
    with pytest.raises(FileExistsError, match=r"overwriting was not requested: .*out\.bin"):
        save(IncrementalPLS(), path, overwrite=False)
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("links", [True, False])
def test_file_created_in_the_meantime(path, links, monkeypatch):
    if not links:
        monkeypatch.setattr(os, "link", no_links)

    def write():
        with replacing(path, overwrite=False) as file:
            file.write(b"mine")
            path.write_bytes(b"theirs")

    with pytest.raises(FileExistsError, match=r"out\.bin"):
        write()
    assert path.read_bytes() == b"theirs"
    assert only_file_in(path.parent) == path


def no_links(*_arguments):
    raise OSError(errno.EPERM, "Operation not permitted")


def test_without_links(path, monkeypatch):
    monkeypatch.setattr(os, "link", no_links)
    with replacing(path, overwrite=False) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert only_file_in(path.parent) == path


def test_one_of_many_wins(path):
    start, outcomes = threading.Barrier(8), []

    def write(number):
        start.wait()
        try:
            with replacing(path, overwrite=False) as file:
                file.write(bytes([number]) * 1000)
        except FileExistsError:
            outcomes.append(None)
        else:
            outcomes.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [number for number in outcomes if number is not None]
    assert path.read_bytes() == bytes([winner]) * 1000
    assert only_file_in(path.parent) == path


def test_permissions_and_links_are_kept(path, tmp_path):
    path.write_bytes(b"old")
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name == "nt", reason="needs permissions")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400, 0o755])
def test_never_more_readable_than_what_it_replaces(path, mode):
    path.write_bytes(b"old")
    path.chmod(mode)
    before = os.umask(0)
    try:
        with replacing(path) as file:
            assert not stat.S_IMODE(Path(file.name).stat().st_mode) & ~mode
            file.write(b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_temporary_files_are_removed_when_a_process_ends(path):
    path.write_bytes(b"old")

    def write():
        with replacing(path) as file:
            file.write(b"half")
            files.remove_unfinished()
            assert only_file_in(path.parent) == path

    with pytest.raises(FileNotFoundError):
        write()
    assert path.read_bytes() == b"old"
    assert not files._unfinished


def test_the_longest_name(tmp_path):
    path = tmp_path / ("n" * 255)
    with replacing(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"


def test_no_folder(tmp_path):
    path = tmp_path / "missing" / "out.bin"
    with pytest.raises(FileNotFoundError, match=r"missing/out\.bin"):
        save(IncrementalPLS(), path)
