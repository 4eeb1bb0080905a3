"""plstream fit --cluster: the same models as in one process, from workers that open the files themselves."""

import ipaddress
import os
import signal
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from plstream import load

pytest.importorskip("distributed", reason="needs a cluster of Dask")
pytest.importorskip("typer", reason="the command line needs plstream[cli]")

from plstream.cli import cluster


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    monkeypatch.setattr(cluster, "_PATIENCE", 300)


@pytest.fixture(scope="module")
def address():
    from distributed import LocalCluster

    # Threads of this process are workers enough for the command to find.
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster:
        yield cluster.scheduler_address


@pytest.mark.usefixtures("folder")
def test_a_cluster_of_processes(done):
    done("fit", "data.csv", "--target", "y", "--exclude", "kind", "-c", "3", "-o", "here.plstream")
    there = done(
        "fit", "data.csv", "--target", "y", "--exclude", "kind", "-c", "3", "--cluster", "local:1", "-o", "it.plstream"
    )
    assert "IncrementalPLS, 3 components of 5 features, 300 rows" in there
    np.testing.assert_allclose(load("it.plstream").coef_, load("here.plstream").coef_, rtol=1e-9)
    assert list(load("it.plstream").feature_names_in_) == list("abcde")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "more",
    [
        ("--target", "y.npy"),
        ("--target", "y.npy", "--one-pass"),
        ("--target", "y.npy", "--one-pass", "--sketch-size", "20", "--no-scale"),
        ("--target", "labels.npy", "--method", "incremental-pls-classifier"),
        ("--target", "labels.npy", "--method", "incremental-pls-classifier", "--one-pass"),
    ],
)
def test_a_scheduler_by_its_address(done, address, more):
    # Workers that are threads of this process have its listener for progress, and no terminal either.
    done("fit", "X.npy", *more, "-o", "here.plstream")
    done("fit", "X.npy", *more, "--cluster", address, "-o", "there.plstream")
    here, there = load("here.plstream"), load("there.plstream")
    assert type(there) is type(here)
    assert there.solver_ == here.solver_
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("option", ["--groups", "--fold-column"])
def test_folds_by_a_column_on_a_cluster(done, address, option):
    call = "fit", "data.csv", "--target", "y", "--exclude", "kind", "-c", "auto", "--folds", 3
    lines = Path("data.csv").read_text().splitlines()
    with_folds = [f"{line},{i % 7 % 3 if i else 'fold'}" for i, line in enumerate(lines)]
    Path("data.csv").write_text("\n".join(with_folds))
    done(*call, option, "fold", "-o", "here.plstream")
    done(*call, option, "fold", "--cluster", address, "-o", "there.plstream")
    here, there = (load(f"{name}.plstream").cv_results_["mean_test_rmse"] for name in ("here", "there"))
    np.testing.assert_allclose(there, here, rtol=1e-9)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--cluster", "tcp://127.0.0.1:9"], "No scheduler answers at tcp://127.0.0.1:9"),
        (["--cluster", "far away"], "--cluster is local, local:N for N processes, or the address"),
        (["--cluster", "local:0"], "--cluster is local, local:N for N processes, or the address"),
        (["--cluster", "local", "--method", "cipls"], "--cluster does not support --method cipls"),
        (["--cluster", "local", "--checkpoint", "there"], "--checkpoint is not supported with --cluster"),
        (["--cluster", "local", "--memory", "1GB"], "--memory is not supported with --cluster"),
    ],
)
def test_wrong_calls(folder, refused, more, message, monkeypatch):
    monkeypatch.setattr("plstream.cli.cluster._PATIENCE", 1)
    assert message in refused("fit", "X.npy", "--target", "y.npy", *more)
    assert not (folder / "model.plstream").exists()


def test_nobody_from_elsewhere_reaches_a_local_cluster(folder, refused, monkeypatch):
    asked = {}

    def start(**options):
        asked.update(options)
        raise OSError("no cluster today")

    monkeypatch.setattr("distributed.LocalCluster", start)
    refused("fit", "X.npy", "--target", "y.npy", "--cluster", "local")
    hosts = [asked["host"], asked["dashboard_address"].rpartition(":")[0]]
    assert all(ipaddress.ip_address(host).is_loopback for host in hosts)
    assert not (folder / "model.plstream").exists()


def test_standard_input_stays_here(folder, refused):
    piped = (folder / "data.csv").read_bytes()
    options = ("--format", "csv", "--target", "y", "--exclude", "kind", "--cluster", "local")
    assert "standard input cannot be read by the workers" in refused("fit", "-", *options, stdin=piped)


def test_interrupts_are_for_the_command_and_not_for_its_workers():
    if not hasattr(signal, "pthread_sigmask"):
        pytest.skip("signals cannot be held back here")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with cluster._without_interrupts(), get_context("spawn").Pool(1) as pool:
        assert signal.SIGINT in pool.apply(signal.pthread_sigmask, (signal.SIG_BLOCK, []))
    with pytest.raises(KeyboardInterrupt), cluster._without_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
