"""Fits on a Dask cluster, which may consist of local processes."""

from __future__ import annotations

import logging
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from .._core.errors import import_optional
from ..data import Source
from ..distributed import OnWorkers
from .errors import tell
from .methods import reads_again
from .options import Method
from .progress import is_shown, shown

_LOCAL = re.compile(r"local(?::([1-9]\d*))?")
# Dask would quote anything else in its errors, including passwords.
_ADDRESS = re.compile(r"[a-z0-9+.-]+://[^\s@?#]+")
_HERE = "127.0.0.1"
# Seconds to wait for a scheduler.
_PATIENCE = 10


def fit_on_cluster(
    address: str,
    method: Method,
    model: Any,
    source: Source,
    memory: str | None,
    checkpoint: Path | None,
    *,
    one_pass: bool,
    classes: Any,
) -> Any:
    """Fit a model to files that the workers read; raise ValueError for options that a cluster does not support."""
    for name, value in {"memory": memory, "checkpoint": checkpoint}.items():
        if value:
            raise ValueError(f"--{name} is not supported with --cluster: leave one of them out.")
    if not reads_again(method):
        raise ValueError(f"--cluster does not support --method {method}, which learns row by row: leave it out.")
    if not source.rereadable:
        raise ValueError(f"{source.name} cannot be read by the workers of a cluster: use files.")
    with shown(), _workers_of(address):
        rows = OnWorkers(source)
        targets = {} if classes is None else {"classes": classes}
        if one_pass:
            model.partial_fit(rows, **targets)
        else:
            model._fit(rows, **targets)
    return model


@contextmanager
def _workers_of(address: str) -> Iterator[None]:
    """Let Dask use the workers of a scheduler, or of a temporary local cluster."""
    distributed = import_optional("distributed", "A fit on a cluster", "distributed")
    local = _LOCAL.fullmatch(address)
    if local is None and not _ADDRESS.fullmatch(address):
        raise ValueError(
            "--cluster is local, local:N for N processes, or the address of a scheduler such as tcp://host:8786, "
            "without a user or password: Dask's configuration has the certificates for tls://."
        )
    with ExitStack() as stack:
        scheduler: Any = address
        if local is not None:
            if is_shown():
                tell("starting workers")
            with _without_interrupts():
                scheduler = distributed.LocalCluster(
                    n_workers=None if local[1] is None else int(local[1]),
                    threads_per_worker=1,
                    processes=True,
                    # Neither the scheduler nor its dashboard authenticates: bind them to this machine.
                    host=_HERE,
                    dashboard_address=f"{_HERE}:0",
                    silence_logs=logging.ERROR,
                )
            stack.enter_context(scheduler)
        try:
            client = stack.enter_context(distributed.Client(scheduler, timeout=_PATIENCE))
        except (OSError, ValueError) as error:
            raise ConnectionError(
                f"No scheduler answers at {scheduler}: check that it is running, and its address."
            ) from error
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise ConnectionError(f"The scheduler at {scheduler} has no workers: start at least one.")
        yield


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block SIGINT here and in started threads and processes, which this process ends."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # If it were started later, it would unblock signals.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
