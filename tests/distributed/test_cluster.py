"""A cluster of processes: the same results, also if workers are killed, within the stated memory."""

import os
import signal
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

from plstream import IncrementalPLS, IncrementalPLSClassifier, IncrementalPLSClassifierCV
from plstream._core.progress import listening
from plstream.distributed import map_reduce
from tests.oracles import regression_data, relative_error

dask = pytest.importorskip("dask", reason="needs Dask")
da = pytest.importorskip("dask.array", reason="needs Dask")
distributed = pytest.importorskip("distributed", reason="needs a cluster of Dask")

X, Y = regression_data(900, 12, 2)
WORKER_MEMORY = 400_000_000


# All tests: with a client, Dask's work is done by its cluster.
@pytest.fixture(scope="module", autouse=True)
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=WORKER_MEMORY, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def rows_of(array):
    return da.from_array(array, chunks=(50, -1))


@pytest.mark.parametrize(("solver", "forgetting"), [("auto", 1.0), ("auto", 0.99), ("gram", 0.99), ("sketch", 1.0)])
def test_results(solver, forgetting):
    expected = IncrementalPLS(3, solver=solver, forgetting=forgetting).fit(X, Y)
    model = IncrementalPLS(3, solver=solver, forgetting=forgetting).fit(rows_of(X), rows_of(Y))
    assert relative_error(model.coef_, expected.coef_) < 1e-9
    np.testing.assert_allclose(model.predict(rows_of(X)).compute(), expected.predict(X))


def test_cross_validation_of_labels():
    labels = np.where(Y[:, 0] > 0, "above", "below")
    expected = IncrementalPLSClassifierCV(4).fit(X, labels)
    model = IncrementalPLSClassifierCV(4).fit(rows_of(X), da.from_array(labels, chunks=70))
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], rtol=1e-9)
    np.testing.assert_array_equal(model.predict(rows_of(X)).compute(), expected.predict(X))
    exact = IncrementalPLSClassifier(3, class_weight="balanced").fit(rows_of(X), labels)
    alone = IncrementalPLSClassifier(3, class_weight="balanced").fit(X, labels)
    np.testing.assert_allclose(exact.predict_proba(rows_of(X)).compute(), alone.predict_proba(X), rtol=1e-9)


def test_chunks_that_are_in_the_workers_memory():
    rows, targets = dask.persist(rows_of(X), rows_of(Y))
    expected = IncrementalPLS(3).fit(X, Y)
    for solver in ("auto", "gram"):
        assert relative_error(IncrementalPLS(3, solver=solver).fit(rows, targets).coef_, expected.coef_) < 1e-9
        shifted = IncrementalPLS(3, solver=solver).fit(rows - rows.mean(axis=0), targets)
        assert relative_error(shifted.coef_, expected.coef_) < 1e-9


def test_dataframes():
    pandas = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe", reason="needs Dask's dataframes")
    table = dd.from_pandas(pandas.DataFrame(np.column_stack([X, Y[:, 0]])).add_prefix("c"), npartitions=7)
    expected = IncrementalPLS(3).fit(X, Y[:, 0])
    for frame in (table, table.persist()):
        names = list(frame.columns)
        model = IncrementalPLS(3).fit(frame[names[:12]], frame[names[12]])
        assert relative_error(model.coef_, expected.coef_) < 1e-9


def test_map_reduce():
    blocks = [dask.delayed(pow)(i, 2) for i in range(50)]
    assert map_reduce(blocks, lambda block: [block], lambda a, b: a + b) == [i**2 for i in range(50)]


def test_progress():
    steps = []
    with listening(steps.append):
        IncrementalPLS(2).fit(rows_of(X), rows_of(Y))
    assert [step.label for step in steps if step.finished] == ["read 1 of 3", "read 2 of 3", "read 3 of 3"]
    assert steps[0].done < 900


def test_errors_come_from_the_worker():
    bad = X.copy()
    bad[620, 3] = np.nan
    for listener in (None, lambda _: None):
        with (
            listening(listener),
            pytest.raises(ValueError, match=r"In block 12 \(rows from 600 on\): .*row 20, column 3"),
        ):
            IncrementalPLS(2).fit(rows_of(bad), rows_of(Y))


@pytest.mark.parametrize("bad", [False, True])
def test_blocks_do_not_stay_on_the_workers(client, bad):
    """Not even while somebody looks at the error."""
    rows = X.copy()
    rows[-1, 0] = np.nan if bad else 0.0
    before = len(client.futures)
    error = None
    try:
        IncrementalPLS(3).fit(rows_of(rows), rows_of(Y))
    except ValueError as raised:
        error = raised
    assert (error is not None) == bad
    end = time.monotonic() + 60
    while len(client.futures) > before:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_memory_is_checked_first():
    wide = da.zeros((100_000, 1000), chunks=(20_000, 1000))
    with pytest.raises(MemoryError, match=r"only 280.0 MB may be used: use smaller chunks or fewer threads per worker"):
        IncrementalPLS(2).fit(wide, wide[:, 0])
    with pytest.raises(MemoryError, match="or solver='sketch'"):
        IncrementalPLS(2, solver="gram").fit(da.zeros((100_000, 3000), chunks=(100, 3000)), wide[:, 0])


@pytest.mark.parametrize("solver", ["auto", "gram"])
def test_a_worker_is_killed(client, solver, tmp_path):
    """With a real SIGKILL in mid-read: what it had done is done again elsewhere."""
    killed = tmp_path / "killed"
    rows = rows_of(X).map_blocks(_kill_once, str(killed), dtype=X.dtype, meta=X[:0])
    model = IncrementalPLS(3, solver=solver).fit(rows, rows_of(Y))
    assert relative_error(model.coef_, IncrementalPLS(3).fit(X, Y).coef_) < 1e-9
    client.wait_for_workers(2)
    assert int(killed.read_text()) not in client.run(os.getpid).values()


def _kill_once(block, path, block_info=None):
    """Return the block; but the first time that it is the one in the middle, kill the worker."""
    if block_info[0]["chunk-location"][0] == 9:
        with suppress(FileExistsError), open(path, "x") as file:  # noqa: PTH123
            file.write(str(os.getpid()))
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_memory_of_workers_and_client(client):
    """Data larger than the memory of all workers together, which is never there as a whole."""
    n = 250_000
    rng = da.random.default_rng(0)
    rows = rng.random((n, 500), chunks=(5_000, 500))
    targets = rng.random(n, chunks=5_000)
    assert rows.nbytes == 1.25 * 2 * WORKER_MEMORY
    before = _resident_bytes()
    peak, done = [before], threading.Event()

    def watch():
        while not done.wait(0.02):
            peak.append(_resident_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        model = IncrementalPLS(1).fit(rows, targets)
    finally:
        done.set()
        watcher.join()
    assert model.n_samples_seen_ == n
    assert max(peak) - before < 60_000_000
    assert max(client.run(_peak_bytes).values()) < WORKER_MEMORY


def _resident_bytes():
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def _peak_bytes():
    # That of getrusage may be from before the program was loaded, when the process was a copy of this one.
    with open("/proc/self/status") as file:  # noqa: PTH123
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))
