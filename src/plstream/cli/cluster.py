"""Fits on the workers of a Dask cluster, which may be processes of this machine."""

from __future__ import annotations

import logging
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

from .._core.errors import import_optional
from ..data import Source
from .errors import tell
from .methods import Method, reads_again
from .progress import is_shown

_LOCAL = re.compile(r"local(?::([1-9]\d*))?")
# Nothing more is an address for Dask, which would quote the rest in its errors, passwords too.
_ADDRESS = re.compile(r"[a-z0-9+.-]+://[^\s@?#]+")
# Seconds to wait for a scheduler.
_PATIENCE = 10


def require_for_cluster(method: Method, source: Source, **unused: Any) -> None:
    """Raise ValueError if something cannot be done on a cluster; ``unused`` are options that are not for it."""
    for name, value in unused.items():
        if value is not None:
            raise ValueError(f"--{name.replace('_', '-')} is not for --cluster: leave one of them out.")
    if not reads_again(method):
        raise ValueError(f"--cluster is not for --method {method}, which learns row after row: leave it out.")
    if not source.rereadable:
        raise ValueError(f"{source.name} can be read only here and once, not by the workers of a cluster: use files.")


@contextmanager
def workers_of(address: str) -> Iterator[None]:
    """Let Dask use the workers of a scheduler, or of a cluster of processes for the time being."""
    distributed = import_optional("distributed", "A fit on a cluster", "distributed")
    local = _LOCAL.fullmatch(address)
    if local is None:
        if not _ADDRESS.fullmatch(address):
            raise ValueError(
                "--cluster is local, local:N for N processes, or the address of a scheduler such as tcp://host:8786, "
                "without a user or password: Dask's configuration has the certificates for tls://."
            )
        with _client(distributed, address):
            yield
        return
    if is_shown():
        tell("starting workers")
    with _without_interrupts():
        cluster = distributed.LocalCluster(
            n_workers=None if local[1] is None else int(local[1]),
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.ERROR,
        )
    with cluster, _client(distributed, cluster):
        yield


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait, and for ever in the threads and processes that are started: who starts them ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Where it is started first, it takes signals again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _client(distributed: Any, address: Any) -> Iterator[None]:
    try:
        client = distributed.Client(address, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise ConnectionError(f"No scheduler answers at {address}: is it running, and is that its address?") from error
    with client:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise ConnectionError(f"The scheduler at {address} has no workers: start some.")
        yield


def fit_on_workers(model: Any, source: Source, *, one_pass: bool, classes: Any) -> Any:
    """Fit a model to files that the workers read."""
    from ..distributed import OnWorkers

    rows = OnWorkers(source)
    if not one_pass:
        return model.fit(rows)
    return model.partial_fit(rows) if classes is None else model.partial_fit(rows, classes=classes)
