"""Reading ahead, blocks of a given size, temporary copies and pipes."""

import io
import json
import os
import subprocess
import sys
import threading
import traceback
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from plstream import CIPLS, IncrementalPLS, open_source
from plstream._core.progress import listening
from plstream.data import reading
from plstream.data.reading import NoRoomError, read_ahead, regrouped, temporary_copy

from .formats import FORMATS, opened

rng = np.random.default_rng(3)
X = rng.normal(size=(500, 4))
Y = X[:, 0] - X[:, 3] + rng.normal(size=500)


def readers():
    """Return the threads that read ahead."""
    return {thread for thread in threading.enumerate() if thread.name == "plstream-reader"}


def test_reads_ahead_but_not_far():
    made = [threading.Event() for _ in range(10)]

    def items():
        for i, event in enumerate(made):
            event.set()
            yield i

    ahead = read_ahead(items)
    assert next(ahead) == 0
    # Before more are asked for: one waits, and one more is at hand.
    assert made[1].wait(60)
    assert made[2].wait(60)
    assert not made[3].wait(0.05)
    assert list(ahead) == list(range(1, 10))


def test_reader_works_while_its_items_are_used():
    used, read = threading.Event(), threading.Event()

    def items():
        yield 0
        assert used.wait(60)
        read.set()
        yield 1

    ahead = read_ahead(items)
    assert next(ahead) == 0
    used.set()
    # The next item comes though nobody asks.
    assert read.wait(60)
    assert list(ahead) == [1]


def test_errors_pass_over_with_their_traceback():
    def failing_reader():
        yield 0
        raise ZeroDivisionError("here")

    ahead = read_ahead(failing_reader)
    assert next(ahead) == 0
    with pytest.raises(ZeroDivisionError, match="here") as caught:
        next(ahead)
    assert "failing_reader" in "".join(traceback.format_tb(caught.tb))


def test_closing_stops_the_thread():
    closed = threading.Event()

    def items():
        try:
            while True:
                yield 0
        finally:
            closed.set()

    before = readers()
    ahead = read_ahead(items)
    next(ahead)
    (thread,) = readers() - before
    ahead.close()
    assert closed.wait(60)
    thread.join(60)
    assert not thread.is_alive()


def test_failed_fit_leaves_no_thread(tmp_path):
    before = readers()
    source = opened("csv", tmp_path, X, np.where(np.arange(500) < 20, Y, 1e200), batch_size=10)
    with pytest.raises(ValueError, match="too large"):
        IncrementalPLS(solver="gram").fit(source)
    for thread in readers() - before:
        thread.join(60)
        assert not thread.is_alive()


def test_interpreter_ends_while_a_reader_waits():
    code = (
        "import os, plstream\n"
        "end, _ = os.pipe()\n"
        "import io, threading\n"
        "from plstream.data.reading import read_ahead\n"
        "ahead = read_ahead(lambda: iter([os.read(end, 1)]))\n"
        "threading.Thread(target=lambda: next(ahead), daemon=True).start()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)  # noqa: S603


def test_regrouped():
    pieces = [(X[a:b], Y[a:b]) for a, b in ((3, 4), (4, 4), (4, 40), (40, 41), (41, 57))]
    blocks = list(regrouped(pieces, 3, 10))
    assert [len(rows) for rows, _ in blocks] == [7, 10, 10, 10, 10, 7]
    np.testing.assert_array_equal(np.concatenate([rows for rows, _ in blocks]), X[3:57])
    np.testing.assert_array_equal(np.concatenate([y for _, y in blocks]), Y[3:57])


def test_pieces_are_not_kept_while_the_next_one_is_read():
    kept = []

    def pieces():
        for start in range(0, 500, 7):
            assert not any(piece() is not None for piece in kept)
            # A view would be kept by its base.
            rows = X[start : start + 7].copy()
            kept.append(weakref.ref(rows))
            yield rows, None
            del rows

    blocks = [rows for rows, _ in regrouped(pieces(), 0, 30)]
    assert [len(rows) for rows in blocks] == [30] * 16 + [20]
    np.testing.assert_array_equal(np.concatenate(blocks), X)


@pytest.mark.parametrize(
    "parts",
    [
        [np.arange(3), np.array([0.5, 1]), np.arange(4)],
        [np.array(["a", "b"]), np.array(["longer"]), np.array(["c"] * 5)],
        [np.array([True, False]), np.arange(2)],
    ],
)
def test_targets_of_pieces_are_joined_as_by_numpy(parts):
    pieces = [(X[: len(y)], y) for y in parts]
    expected = np.concatenate(parts)
    ((_, y),) = regrouped(pieces, 0, 100)
    assert y.dtype == expected.dtype
    np.testing.assert_array_equal(y, expected)


def test_blocks_of_any_size_take_no_more_than_their_rows():
    pieces = [(X[start : start + 50], Y[start : start + 50]) for start in range(0, 500, 50)]
    ((rows, y),) = regrouped(pieces, 0, 10**15)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(y, Y)


def test_temporary_copy(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    blocks = [(X[:100].astype(np.float32), Y[:100, None]), (X[100:].astype(np.float32), Y[100:, None])]
    with temporary_copy(blocks) as (rows, y):
        assert rows.dtype == np.float32
        np.testing.assert_array_equal(rows, X.astype(np.float32))
        np.testing.assert_array_equal(y[:, 0], Y)
    assert not list(tmp_path.iterdir())


def test_slow_formats_are_copied_and_progress_says_so(tmp_path):
    steps = []
    with listening(steps.append):
        IncrementalPLS(2).fit(opened("csv", tmp_path, X, Y, batch_size=100))
    # The same step is reported again while waiting for the next block.
    told = [*dict.fromkeys((step.label, step.done) for step in steps if step.done)]
    copied = "copied to a temporary file, as it is slow to read"
    assert told[:5] == [(copied, done) for done in (100, 200, 300, 400, 500)]
    assert "read 1" in told[5][0]


@pytest.mark.parametrize("free", [0, 5000])
def test_no_room_for_a_copy(free, tmp_path, monkeypatch):
    copied = []

    def disk_usage(folder):
        copied.append(folder)
        return SimpleNamespace(total=10**6, free=max(0, free - 4000 * len(copied)))

    expected = IncrementalPLS(2).fit(X, Y).coef_
    monkeypatch.setattr(reading.shutil, "disk_usage", disk_usage)
    for name in ("csv", "npz compressed"):
        copied.clear()
        source = opened(name, tmp_path, X, Y, batch_size=100)
        np.testing.assert_array_equal(IncrementalPLS(2).fit(source).coef_, expected)
        assert copied
    with pytest.raises(NoRoomError), temporary_copy([(X, Y)], 10**9):
        pass


def csv_bytes():
    return "\n".join(
        ",".join([*map(repr, row), repr(y)]) for row, y in zip(X.tolist(), Y.tolist(), strict=True)
    ).encode()


def piped(data):
    """Return the end of a pipe that a thread writes into."""
    end, start = os.pipe()

    def write():
        with os.fdopen(start, "wb") as file:
            file.write(data)

    threading.Thread(target=write).start()
    return os.fdopen(end, "rb")


@pytest.mark.parametrize("solver", ["gram", "sketch"])
def test_pipe(solver):
    expected = IncrementalPLS(2, solver=solver).fit(X, Y)
    with piped(csv_bytes()) as file:
        source = open_source(file, target=-1, format="csv", batch_size=100)
        assert not source.rereadable
        model = IncrementalPLS(2, solver=solver).fit(source)
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
        with pytest.raises(ValueError, match="the stream can be read only once"):
            source.blocks()


def test_pipe_of_labels():
    lines = "\n".join(
        json.dumps([*row, "no" if y < 0 else "yes"]) for row, y in zip(X.tolist(), Y.tolist(), strict=True)
    )
    with piped(lines.encode()) as file:
        model = CIPLS().fit(open_source(file, target=4, format="ndjson"))
    np.testing.assert_array_equal(model.transform(X), CIPLS().fit(X, np.where(Y < 0, "no", "yes")).transform(X))


def test_pipe_of_arrow(tmp_path):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    path, _ = FORMATS["arrow stream"](tmp_path, X, Y)
    with piped(path.read_bytes()) as file:
        source = open_source(file, target="y", format="arrow", batch_size=100)
        np.testing.assert_array_equal(np.concatenate([rows for rows, _ in source.blocks()]), X)


def test_several_reads_of_a_pipe_are_refused():
    for source in (
        open_source(io.BytesIO(csv_bytes()), target=-1, format="csv"),
        open_source((X[i : i + 50], Y[i : i + 50]) for i in range(0, 500, 50)),
    ):
        with pytest.raises(
            ValueError, match=r"can be read only once, .* use solver='gram' or 'sketch', or partial_fit"
        ):
            IncrementalPLS(solver="multipass").fit(source)
        assert IncrementalPLS().partial_fit(source).n_samples_seen_ == 500


def test_unseen_label_of_a_generator():
    labels = np.repeat(["a", "b", "c"], [200, 200, 100])
    blocks = [(X[i : i + 250], labels[i : i + 250]) for i in (0, 250)]
    with pytest.raises(ValueError, match="from row 250 on: Label c is not among the classes"):
        CIPLS().fit(open_source(iter(blocks), batch_size=250))
    model = CIPLS().partial_fit(open_source(iter(blocks), batch_size=250), classes=["a", "b", "c"])
    np.testing.assert_array_equal(model.transform(X), CIPLS().fit(X, labels).transform(X))


def test_standard_input():
    code = (
        "import plstream\n"
        "source = plstream.open_source('-', target=-1, format='csv')\n"
        "print(plstream.IncrementalPLS(2, solver='gram').fit(source).coef_.tolist())"
    )
    run = [sys.executable, "-c", code]
    result = subprocess.run(run, input=csv_bytes(), capture_output=True, check=True)  # noqa: S603
    expected = IncrementalPLS(2, solver="gram").fit(X, Y).coef_
    np.testing.assert_allclose(json.loads(result.stdout), expected, rtol=1e-9)


def test_named_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    threading.Thread(target=(tmp_path / "pipe.csv").write_bytes, args=[csv_bytes()]).start()
    source = open_source(tmp_path / "pipe.csv", target=-1)
    assert not source.rereadable
    np.testing.assert_array_equal(np.concatenate([rows for rows, _ in source.blocks()]), X)
