"""Databases for tests: files of SQLite and DuckDB, and a PostgreSQL of its own on a free port, if it is installed."""

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest


def _binaries():
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@contextmanager
def postgresql():
    """Give the address of a server that is removed afterwards; skip where there is none."""
    pytest.importorskip("adbc_driver_postgresql", reason="needs the extra sql")
    binaries = _binaries()
    if binaries is None:
        pytest.skip("needs PostgreSQL: apt-get install postgresql")
    # It does not run as root.
    is_root = os.getuid() == 0
    prefix = ["runuser", "-u", "postgres", "--"] if is_root else []
    folder = Path(tempfile.mkdtemp(prefix="plstream-postgres-"))
    folder.chmod(0o777)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]

    def run(*command):
        # The server keeps what it inherits open: its output goes nowhere.
        with (folder / "output").open("w") as output:
            done = subprocess.run(  # noqa: S603
                [*prefix, *map(str, command)], check=False, stdout=output, stderr=output, timeout=60, cwd="/"
            )
        if done.returncode:
            pytest.skip(f"PostgreSQL does not start here: {(folder / 'output').read_text().strip()[-200:]}")

    try:
        (folder / "password").write_text("open sesame")
        (folder / "password").chmod(0o644)
        data = folder / "data"
        run(
            binaries / "initdb",
            "-D",
            data,
            "-U",
            "tester",
            "-A",
            "scram-sha-256",
            "--pwfile",
            folder / "password",
            "-N",
        )
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
        run(binaries / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
        try:
            yield f"postgresql://tester:open%20sesame@127.0.0.1:{port}/postgres"
        finally:
            run(binaries / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
