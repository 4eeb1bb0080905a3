"""Fits interrupted at any moment end with a bit-identical model."""

import errno
import multiprocessing
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

import plstream
from plstream import (
    CCIPCA,
    CIPLS,
    OLPLS,
    SGDPLS,
    IncrementalPLS,
    IncrementalPLSCV,
    InfFS,
    VIPSelector,
    load,
    open_source,
    pls,
    save,
)
from plstream.data import DataError
from plstream.data.reading import NoRoomError
from plstream.files import CheckpointError, ModelFileError, Stopped, files, fit_source
from plstream.files.checkpoints import Checkpoint, CheckpointFolder
from plstream.files.files import replacing

from .forge import put_together, take_apart
from .models import assert_identical, data, learn

N, BLOCK_ROWS = 60, 15
MODELS = {
    "multipass": (IncrementalPLS(3), "values"),
    "forgetting": (IncrementalPLS(2, solver="multipass", forgetting=0.95), "value"),
    "few reads": (IncrementalPLS(3, solver="multipass", sketch_size=5, max_reads=3), "values"),
    "few reads, gram": (IncrementalPLS(3, read_tol=1e-16), "value"),
    "gram": (IncrementalPLS(2, solver="gram", forgetting=0.99), "value"),
    "sketch": (IncrementalPLS(2, solver="sketch", sketch_size=8), "values"),
    # Without the solver, fit would read the data again, which fits with checkpoints do not.
    "cross-validation": (IncrementalPLSCV(3, cv=3, solver="gram"), "value"),
    "cipls": (CIPLS(3), "many"),
    "olpls": (OLPLS(), "value"),
    "sgdpls": (SGDPLS(2, random_state=np.random.RandomState(1)), "two"),
    "ccipca": (CCIPCA(), "value"),
    "vip": (VIPSelector(CIPLS(), n_features_to_select=3), "two"),
    "exact vip": (VIPSelector(IncrementalPLS(3)), "value"),
}
each_model = pytest.mark.parametrize("name", MODELS)
some_models = pytest.mark.parametrize("name", ["multipass", "few reads", "gram", "sketch", "cipls"])


class PowerCut(BaseException):
    """The end of a process, as far as a test in the same process can have it."""


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch):
    """Let small data be read several times, as large data is."""
    for module in ("plstream.rows.blocks", "plstream.rows.sources"):
        monkeypatch.setattr(f"{module}.SMALL_BYTES", 1000)


def opened(name, **options):
    X, y = data(MODELS[name][1], n=N)
    return open_source(X, target=y, **{"batch_size": BLOCK_ROWS} | options)


def run(name, source, **options):
    with warnings.catch_warnings():
        # Few rows for so many components, and a small sketch.
        warnings.simplefilter("ignore")
        return fit_source(clone(MODELS[name][0]), source, **options)


def plain(name, source):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(MODELS[name][0]).fit(source)


def stopping_after(n):
    """Return a function that says when to stop: after so many blocks."""
    answers = iter([False] * (n - 1) + [True])
    return lambda: next(answers)


def fit_by_steps(name, source, folder, n_blocks):
    """Return a model that was fitted by many calls, each of which was stopped after some blocks."""
    for _ in range(200):
        try:
            return run(name, source, checkpoint=folder, stop=stopping_after(n_blocks))
        except Stopped:
            assert [*folder.glob("checkpoint-*.plstream")]
        except StopIteration:
            raise AssertionError from None
    raise AssertionError("the fit does not come to an end")


@each_model
def test_a_fit_without_checkpoints_is_that_of_the_model(name):
    assert_identical(run(name, opened(name)), plain(name, opened(name)))


@each_model
def test_a_fit_stopped_after_every_block(name, tmp_path):
    model = fit_by_steps(name, opened(name), tmp_path, 1)
    assert_identical(model, plain(name, opened(name)))
    assert not [*tmp_path.iterdir()]


@some_models
@pytest.mark.parametrize("complete", [False, True])
def test_a_power_cut_at_every_write(name, complete, tmp_path, monkeypatch):
    expected = plain(name, opened(name))
    put = files.put_in_place
    n_writes, cut_at = 0, 1

    def cut(*arguments, **options):
        nonlocal n_writes
        n_writes += 1
        if n_writes != cut_at or complete:
            put(*arguments, **options)
        if n_writes == cut_at:
            raise PowerCut

    monkeypatch.setattr(files, "put_in_place", cut)
    while True:
        n_writes, folder = 0, tmp_path / str(cut_at)
        try:
            run(name, opened(name), checkpoint=folder, every_rows=1)
        except PowerCut:
            n_writes = cut_at
            assert_identical(run(name, opened(name), checkpoint=folder), expected)
            cut_at += 1
        else:
            break
    assert cut_at > (4 if name == "multipass" else 1) * N // BLOCK_ROWS


@pytest.mark.parametrize("room", [True, False])
def test_an_exact_fit_of_a_slow_format_with_and_without_room_for_a_copy(room, tmp_path, monkeypatch):
    X, Y = data("values", n=N)
    path = tmp_path / "data.csv"
    np.savetxt(path, np.column_stack([X, Y[:, 0]]), delimiter=",")
    source = open_source(path, target=X.shape[1], batch_size=BLOCK_ROWS)
    expected = plain("multipass", source)
    if not room:

        def full(*_):
            raise NoRoomError

        monkeypatch.setattr("plstream.data.reading._require_room", full)
    # The copy asks, too, for each of four blocks.
    model = fit_by_steps("multipass", source, tmp_path / "checkpoints", 6)
    assert_identical(model, expected)


@pytest.mark.parametrize("solver", ["gram", "multipass"])
def test_weights_of_a_source_count(solver, tmp_path):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(N, 4)), rng.uniform(0.1, 3.0, size=N)
    y = X[:, 0] + X[:, 1] ** 2
    rows, header = np.column_stack([X, y, weight]), "a,b,c,d,y,w"
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header=header, comments="")
    source = open_source(tmp_path / "rows.csv", target="y", weight="w")
    model = fit_source(IncrementalPLS(solver=solver), source, checkpoint=tmp_path / "checkpoints")
    np.testing.assert_allclose(model.coef_, IncrementalPLS().fit(X, y, sample_weight=weight).coef_, rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in MODELS if MODELS[name][1].startswith("value") and name[0] in "mfgs"])
@pytest.mark.parametrize("is_copied", [False, True])
def test_rows_of_weight_zero_in_a_stopped_fit(name, is_copied, tmp_path, monkeypatch):
    X, y = data(MODELS[name][1], n=N)
    weight = np.tile([0.0, 1.0, 2.0], N // 3)
    # A whole block, and the last rows.
    weight[BLOCK_ROWS : 2 * BLOCK_ROWS] = weight[-4:] = 0.0
    Y = y.reshape(N, -1)
    names = [f"x{j}" for j in range(X.shape[1])] + [f"y{j}" for j in range(Y.shape[1])] + ["w"]
    rows = np.column_stack([X, Y, weight])
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header=",".join(names), comments="")
    targets = names[X.shape[1] : -1]
    source = open_source(tmp_path / "rows.csv", target=targets, weight="w", batch_size=BLOCK_ROWS)
    if not is_copied:
        monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(total=0, free=0))
    # A fit that is stopped while it copies the file has to copy it again.
    n_copied = N // BLOCK_ROWS + 1 if is_copied else 0
    found = fit_by_steps(name, source, tmp_path / "checkpoints", n_copied + 1)
    assert_identical(found, plain(name, source))
    present = weight > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = clone(MODELS[name][0]).fit(X[present], Y[present], sample_weight=weight[present])
    assert found.n_samples_seen_ == expected.n_samples_seen_ == present.sum()
    if name != "sketch":
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("solver", ["gram", "sketch"])
def test_rows_without_a_response_in_a_stopped_fit(solver, tmp_path, monkeypatch):
    X, y = data("value", n=N)
    y = np.where(np.arange(N) % 3 == 1, np.nan, y)
    y[BLOCK_ROWS : 2 * BLOCK_ROWS] = np.nan
    monkeypatch.setitem(MODELS, "missing", (IncrementalPLS(2, solver=solver, missing="model"), "value"))
    source = open_source(X, target=y, batch_size=BLOCK_ROWS)
    found = fit_by_steps("missing", source, tmp_path, 1)
    assert_identical(found, plain("missing", source))
    assert found.n_samples_seen_ == np.isfinite(y).sum()


def test_one_pass_is_partial_fit(tmp_path):
    X, y = data(n=N)
    source = open_source(X, target=y, batch_size=BLOCK_ROWS)
    model = fit_source(IncrementalPLS(), source, one_pass=True, checkpoint=tmp_path, every_rows=20)
    assert model.solver_ == "gram"
    np.testing.assert_array_equal(model.coef_, IncrementalPLS().partial_fit(source).coef_)
    with pytest.raises(ValueError, match="for partial_fit use solver"):
        fit_source(IncrementalPLS(solver="multipass"), source, one_pass=True)


def test_a_stream_that_can_be_read_once_comes_again(tmp_path):
    X, labels = data("two", n=N)
    blocks = [(X[i : i + 15], labels[i : i + 15]) for i in range(0, N, 15)]
    options = {"checkpoint": tmp_path, "classes": ["no", "yes"]}
    with pytest.raises(Stopped):
        fit_source(CIPLS(), open_source(iter(blocks), batch_size=15), stop=stopping_after(2), **options)
    model = fit_source(CIPLS(), open_source(iter(blocks), batch_size=15), **options)
    assert_identical(model, CIPLS().fit(open_source(X, target=labels, batch_size=15)))


@some_models
@pytest.mark.parametrize("damage", ["cut", "bit", "empty", "other"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(name, damage, tmp_path):
    with pytest.raises(Stopped):
        run(name, opened(name), checkpoint=tmp_path, every_rows=1, stop=stopping_after(4))
    older, newest = sorted(tmp_path.glob("checkpoint-*"))
    content = bytearray(newest.read_bytes())
    if damage == "bit":
        content[-5] ^= 1
    newest.write_bytes({"cut": content[:-9], "bit": content, "empty": b"", "other": b"x" * 100}[damage])
    assert older.read_bytes() != bytes(content)
    assert_identical(run(name, opened(name), checkpoint=tmp_path), plain(name, opened(name)))
    with pytest.raises(Stopped):
        run(name, opened(name), checkpoint=tmp_path, every_rows=1, stop=stopping_after(4))
    for path in tmp_path.glob("checkpoint-*"):
        path.write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"All checkpoints in .* are damaged: .* delete this one"):
        run(name, opened(name), checkpoint=tmp_path)


def test_changes_are_named(tmp_path):
    source = opened("gram")
    with pytest.raises(Stopped):
        run("gram", source, checkpoint=tmp_path, stop=stopping_after(2))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for model, changed in (
        (IncrementalPLS(3, solver="gram", forgetting=0.99), r"n_components \(2, now 3\)"),
        (IncrementalPLS(2, forgetting=0.99), r"solver \('gram', now 'auto'\)"),
        (CIPLS(), r"the method \(IncrementalPLS, now CIPLS\)"),
    ):
        with pytest.raises(CheckpointError, match=rf"{changed}: choose another folder, or delete"):
            fit_source(model, source, checkpoint=tmp_path)
    for other in (opened("gram", batch_size=10), opened("cipls")):
        with pytest.raises(CheckpointError, match=r"which differs in the data.*: choose another folder"):
            run("gram", other, checkpoint=tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before

    path = tmp_path / "auto"
    with pytest.raises(Stopped):
        fit_source(IncrementalPLS(), source, checkpoint=path, one_pass=True, stop=stopping_after(2))
    with pytest.raises(CheckpointError, match="whether the data is read once or several times"):
        fit_source(IncrementalPLS(), source, checkpoint=path)


def test_a_journal_of_other_numbers_is_refused(tmp_path, monkeypatch):
    with pytest.raises(Stopped):
        run("multipass", opened("multipass"), checkpoint=tmp_path, stop=stopping_after(10))
    solve = pls.dominant_left_vector
    monkeypatch.setattr(pls, "dominant_left_vector", lambda C: np.nextafter(solve(C), 1))
    with pytest.raises(CheckpointError, match="round differently: continue with those, or delete"):
        run("multipass", opened("multipass"), checkpoint=tmp_path)


@some_models
def test_a_full_disk_is_a_warning_and_keeps_the_checkpoint_before(name, tmp_path, monkeypatch):
    with pytest.raises(Stopped):
        run(name, opened(name), checkpoint=tmp_path, every_rows=1, stop=stopping_after(2))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    seen = []

    def full(_path):
        seen.append({path.name: path.read_bytes() for path in tmp_path.glob("checkpoint-*")})
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "_flush", full)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit_source(clone(MODELS[name][0]), opened(name), checkpoint=tmp_path, every_rows=1)
    told = [str(entry.message) for entry in caught if "checkpoint" in str(entry.message)]
    assert len(told) == 1
    assert told[0].startswith("No checkpoint could be written; the fit continues without it: [Errno 28] No space")
    assert all(found == before for found in seen)
    assert len(seen) > 1
    assert_identical(model, plain(name, opened(name)))

    # But who stops a fit relies on the last checkpoint.
    with pytest.raises(OSError, match="No space left"):
        run(name, opened(name), checkpoint=tmp_path, stop=stopping_after(3))


@pytest.mark.parametrize("error", [MemoryError(), MemoryError("Unable to allocate 1 GiB"), ValueError("too young")])
def test_a_checkpoint_that_cannot_be_written_is_a_warning(error, tmp_path, monkeypatch):
    def fail(*_arguments, **_options):
        raise error

    monkeypatch.setattr("plstream.files.checkpoints.write_object", fail)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit_source(CIPLS(3), opened("cipls"), checkpoint=tmp_path, every_rows=1)
    reason = str(error) or "there is not enough memory"
    assert [str(entry.message) for entry in caught] == [
        f"No checkpoint could be written; the fit continues without it: {reason}."
    ]
    assert_identical(model, plain("cipls", opened("cipls")))


def forged(path, change):
    """Change a document, and make the hashes right again."""
    document, tensors = take_apart(path.read_bytes())
    change(document["checkpoint"]["fields"])
    path.write_bytes(put_together(document, tensors))


FORGERIES = {
    "rows": lambda fields: fields.update(n_rows=fields["n_rows"] - 15),
    "rows of other sources": lambda fields: fields.update(n_rows_before=fields["n_rows"] + 15),
    "parameters": lambda fields: fields["model"]["parameters"].update(amnesic=1.0),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_a_model_of_another_fit_in_a_checkpoint(what, tmp_path):
    with pytest.raises(Stopped):
        run("cipls", opened("cipls"), checkpoint=tmp_path, every_rows=1, stop=stopping_after(3))
    older, newest = sorted(tmp_path.glob("checkpoint-*"))
    forged(newest, FORGERIES[what])
    before = older.read_bytes()
    # The one before is taken, and if that is no better, none.
    assert_identical(run("cipls", opened("cipls"), checkpoint=tmp_path), plain("cipls", opened("cipls")))
    older.write_bytes(before)
    forged(older, FORGERIES[what])
    with pytest.raises(CheckpointError, match=r"All checkpoints in .* are damaged"):
        run("cipls", opened("cipls"), checkpoint=tmp_path)


def test_a_model_of_another_class_in_a_checkpoint(tmp_path):
    """A whole model, which is not the one that the fit began with."""
    X, y = data("many", n=N)
    fields = {"n_rows": 30, "source": opened("cipls").fingerprint(), "version": plstream.__version__}
    for model in (CCIPCA(), CIPLS(2), SGDPLS(2)):
        checkpoint = Checkpoint(CIPLS(3), model=learn(model, X[:30], y[:30]), **fields)
        CheckpointFolder(tmp_path, 1, None).write(checkpoint)
        with pytest.raises(CheckpointError, match=r"All checkpoints in .* are damaged"):
            run("cipls", opened("cipls"), checkpoint=tmp_path)


def test_a_checkpoint_beyond_the_end_of_the_data(tmp_path):
    X, y = data("many", n=N)
    model = CIPLS(3).partial_fit(np.vstack([X, X]), np.hstack([y, y]))
    fields = {"n_rows": 2 * N, "source": opened("cipls").fingerprint(), "version": plstream.__version__}
    CheckpointFolder(tmp_path, 1, None).write(Checkpoint(CIPLS(3), model=model, **fields))
    with pytest.raises(CheckpointError, match=r"All checkpoints in .* are damaged"):
        run("cipls", opened("cipls"), checkpoint=tmp_path)


@pytest.mark.parametrize(
    "change", [{"n_rows": 2 * N}, {"n_rows": 3}, {"n_reads": 0, "n_rows": 15, "actions": []}], ids=str
)
def test_a_journal_of_other_rows_in_a_checkpoint(change, tmp_path):
    with pytest.raises(Stopped):
        run("multipass", opened("multipass"), checkpoint=tmp_path, stop=stopping_after(6))
    (path,) = tmp_path.glob("checkpoint-*")
    document, tensors = take_apart(path.read_bytes())
    journal = document["checkpoint"]["fields"]["journal"]["fields"]
    assert journal["n_reads"] == 1
    if "actions" in change:
        tensors = {name: entry for name, entry in tensors.items() if "actions" not in name}
    if change == {"n_rows": 3}:
        journal["moments"]["fields"]["n_rows"] = 3
    else:
        journal.update(change)
    path.write_bytes(put_together(document, tensors))
    with pytest.raises(CheckpointError, match=r"All checkpoints in .* are damaged"):
        run("multipass", opened("multipass"), checkpoint=tmp_path)


def test_two_fits_in_one_folder(tmp_path):
    begun, ended = threading.Event(), threading.Event()

    def wait(*_):
        begun.set()
        ended.wait()

    options = {"checkpoint": tmp_path, "on_block": wait}
    first = threading.Thread(target=run, args=("cipls", opened("cipls")), kwargs=options)
    first.start()
    assert begun.wait(600)
    try:
        with pytest.raises(CheckpointError, match="is in use by another fit: wait until"):
            run("cipls", opened("cipls"), checkpoint=tmp_path)
        # Of another process, too.
        code = "from plstream.files.checkpoints import CheckpointFolder\n"
        code += f"with CheckpointFolder({str(tmp_path)!r}, 1, 1).locked(): pass"
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
        assert "is in use by another fit" in result.stderr
    finally:
        ended.set()
        first.join()
    assert not [*tmp_path.iterdir()]


def test_the_lock_and_the_unfinished_file_of_a_dead_process_do_not_matter(tmp_path):
    for name in ("lock", ".checkpoint-0123456789abcdef.tmp"):
        (tmp_path / name).write_bytes(b"1")
    run("cipls", opened("cipls"), checkpoint=tmp_path)
    assert not [*tmp_path.iterdir()]


@some_models
def test_a_fit_that_fails_or_is_stopped_leaves_the_model_unchanged(name, tmp_path):
    model = plain(name, opened(name, batch_size=30))
    before = dict(vars(model))
    for options in ({}, {"checkpoint": tmp_path}):
        with pytest.raises(Stopped, match=r"stopped: repeat the call" if options else r"stopped\.$"):
            fit_source(model, opened(name), stop=stopping_after(3), **options)
        assert vars(model) == before
    # What the model was before does not matter.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_source(model, opened(name), checkpoint=tmp_path)
    assert_identical(model, plain(name, opened(name)))


def test_a_bad_row_is_named_wherever_the_fit_begins(tmp_path):
    path = tmp_path / "data.csv"
    X, y = data(n=N)
    rows = [",".join(map(repr, map(float, row))) for row in np.column_stack([X, y])]
    path.write_text("\n".join([*rows[:50], rows[50].replace(rows[50].split(",")[3], "nan"), *rows[51:]]))
    source = open_source(path, target=10, batch_size=BLOCK_ROWS)
    for model in (IncrementalPLS(solver="gram"), IncrementalPLS(), CIPLS()):
        folder = tmp_path / "checkpoints"
        for _ in range(2):
            with pytest.raises(DataError, match=r"row 50, column 3"):
                fit_source(model, source, checkpoint=folder, every_rows=1)
        for left in folder.glob("*"):
            left.unlink()


def test_the_model_is_saved_before_its_checkpoints_are_removed(tmp_path):
    out, folder = tmp_path / "model", tmp_path / "checkpoints"
    kept = []

    def keep(model):
        save(model, out)
        kept.extend(folder.glob("checkpoint-*"))

    model = run("cipls", opened("cipls"), checkpoint=folder, every_rows=1, on_fitted=keep)
    assert len(kept) == 2
    assert not [*folder.iterdir()]
    assert_identical(load(out), model)


def test_checkpoints_are_no_models(tmp_path):
    with pytest.raises(Stopped):
        run("cipls", opened("cipls"), checkpoint=tmp_path, stop=stopping_after(1))
    (path,) = tmp_path.iterdir()
    with pytest.raises(ModelFileError, match="is a checkpoint, not a model"):
        load(path)


def test_blocks_are_shown_before_they_are_learnt():
    seen = []
    run("gram", opened("gram"), on_block=lambda model, X, y: seen.append((hasattr(model, "solver_"), X.shape, y.shape)))
    assert seen == [(n > 0, (15, 10), (15,)) for n in range(N // 15)]


def test_checkpoints_are_written_in_time(tmp_path, monkeypatch):
    now = 0.0
    monkeypatch.setattr("plstream.files.checkpoints.time.monotonic", lambda: now)
    folder = CheckpointFolder(tmp_path, 100, 30)
    assert [folder.is_due(n) for n in (60, 39, 1)] == [False, False, True]
    folder = CheckpointFolder(tmp_path, None, 30)
    now = 29.0
    assert not folder.is_due(10**9)
    now = 30.0
    assert folder.is_due(1)
    # Writing took five seconds: not before fifty.
    folder._seconds_to_write = 5.0
    now = 49.0
    assert not folder.is_due(1)
    now = 50.0
    assert folder.is_due(1)
    assert not CheckpointFolder(tmp_path, None, None).is_due(10**9)


def test_models_that_cannot_be_fitted_to_a_source():
    X, y = data(n=N)
    source = open_source(X, target=y)
    with pytest.raises(TypeError, match="InfFS requires all rows in memory"):
        fit_source(InfFS(), source)
    with pytest.raises(TypeError, match=r"requires a source returned by plstream.open_source, not a ndarray"):
        fit_source(CIPLS(), X)
    with pytest.raises(TypeError, match="Only estimators of plstream can be fitted, not a dict"):
        fit_source({}, source)
    with pytest.raises(ValueError, match="IncrementalPLS does not learn labels: leave out classes"):
        fit_source(IncrementalPLS(), source, classes=[0, 1])


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.parametrize("kinds", [("gram",), pytest.param(("multipass", "sketch", "cipls"), marks=pytest.mark.slow)])
def test_kills_at_random_moments(kinds):
    # ``make kill`` does more of it.
    command = [sys.executable, "-m", "tests.files.kills", "3", "0", *kinds]
    result = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)  # noqa: S603
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("'kills': 3") == len(kinds)


# Changes, each with the model that resumes from a checkpoint of the earlier data.


def stopped_after(blocks):
    left = iter(range(blocks))
    return lambda: next(left, None) is None


def stop_midway(model, source, folder, **options):
    with pytest.raises(Stopped):
        fit_source(model, source, checkpoint=folder, stop=stopped_after(2), **options)


def change_zarr(path, X):
    zarr = pytest.importorskip("zarr")
    zarr.open_array(str(path), mode="r+")[:] = 3 * X


def write_zarr(path, X):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(store=str(path), shape=X.shape, chunks=(50, 8), dtype=X.dtype)[:] = X


def change_silently(path, X):
    status = path.stat()
    np.save(path, 3 * X)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize(
    ("name", "write", "change"), [("X.zarr", write_zarr, change_zarr), ("X.npy", np.save, change_silently)]
)
def test_data_that_changed_in_place_is_refused(tmp_path, name, write, change):
    X = np.random.default_rng(0).normal(size=(300, 8))
    path, y = tmp_path / name, X[:, 0].copy()
    write(path, X)
    stop_midway(IncrementalPLS(solver="gram"), open_source(path, y, batch_size=50), tmp_path / "c")
    change(path, X)
    with pytest.raises(CheckpointError, match="the data"):
        fit_source(IncrementalPLS(solver="gram"), open_source(path, y, batch_size=50), checkpoint=tmp_path / "c")


@pytest.mark.parametrize("kind", ["array", "frame", "arrow"])
def test_data_in_memory_that_changed_is_refused(tmp_path, kind):
    X = np.random.default_rng(0).normal(size=(300, 8))
    y, changed = X[:, 0].copy(), X.copy()
    changed[201] *= 2
    if kind == "frame":
        pd = pytest.importorskip("pandas")
        X, changed = pd.DataFrame(X).rename(columns=str), pd.DataFrame(changed).rename(columns=str)
    elif kind == "arrow":
        pa = pytest.importorskip("pyarrow")
        X, changed = (pa.table({f"x{j}": column for j, column in enumerate(data.T)}) for data in (X, changed))
    stop_midway(CIPLS(), open_source(X, y, batch_size=50), tmp_path)
    with pytest.raises(CheckpointError, match="the data"):
        fit_source(CIPLS(), open_source(changed, y, batch_size=50), checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="the data"):
        fit_source(CIPLS(), open_source(X, y[:, None], batch_size=50), checkpoint=tmp_path)
    fit_source(CIPLS(), open_source(X, y, batch_size=50), checkpoint=tmp_path)


@pytest.mark.filterwarnings("ignore:The rows so far have only")
def test_another_version_or_other_classes_are_refused(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 8))
    source = open_source(X, np.where(X[:, 0] > 0, "a", "b"), batch_size=50)
    stop_midway(CIPLS(), source, tmp_path, classes=["a", "b", "c"])
    with pytest.raises(CheckpointError, match="the classes"):
        fit_source(CIPLS(), source, checkpoint=tmp_path)
    with monkeypatch.context() as context:
        context.setattr(plstream, "__version__", "99.0")
        with pytest.raises(CheckpointError, match=r"the version of plstream \(.*, now 99.0\)"):
            fit_source(CIPLS(), source, checkpoint=tmp_path, classes=["a", "b", "c"])
    model = fit_source(CIPLS(), source, checkpoint=tmp_path, classes=["a", "b", "c"])
    assert model.classes_.tolist() == ["a", "b", "c"]


@pytest.mark.filterwarnings("ignore:The rows so far have only")
def test_a_stopped_fit_leaves_generators_output_and_notes_alone(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 8))
    source = open_source(X, X[:, 0].copy(), batch_size=50)
    model = SGDPLS(random_state=np.random.RandomState(0))
    stop_midway(model, source, tmp_path)
    fit_source(model, source, checkpoint=tmp_path)
    fresh = fit_source(SGDPLS(random_state=np.random.RandomState(0)), source)
    np.testing.assert_array_equal(model.x_weights_, fresh.x_weights_)
    model.note = "mine"
    assert fit_source(model, source).note == "mine"
    with pytest.raises(ValueError, match="'note'"):
        fit_source(model, source, checkpoint=tmp_path)
    stop_midway(CIPLS().set_output(transform="pandas"), source, tmp_path)
    assert isinstance(fit_source(CIPLS(), source, checkpoint=tmp_path).transform(X), np.ndarray)


def test_values_that_cannot_be_written_are_refused_at_once(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 8))
    rows = []
    with pytest.raises(ValueError, match="cannot be saved"):
        fit_source(
            SGDPLS(random_state=np.random.RandomState(np.random.PCG64(0))),
            open_source(X, X[:, 0].copy(), batch_size=50),
            checkpoint=tmp_path,
            on_block=lambda *block: rows.append(block),
        )
    assert not rows


@pytest.mark.parametrize(
    "options",
    [{"every_rows": 0}, {"every_rows": 1.5}, {"every_rows": True}, {"every_seconds": -1}, {"every_seconds": np.nan}],
)
def test_when_to_write_is_checked(tmp_path, options):
    X = np.ones((3, 2))
    with pytest.raises(ValueError, match=next(iter(options))):
        fit_source(CIPLS(), open_source(X, X[:, 0]), checkpoint=tmp_path, **options)


def test_folders_without_locks(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    X = np.random.default_rng(0).normal(size=(300, 8))
    monkeypatch.setattr(files.fcntl, "flock", no_locks)
    with pytest.warns(UserWarning, match="There are no locks"):
        fit_source(CIPLS(), open_source(X, X[:, 0].copy()), checkpoint=tmp_path)


def test_without_memory_for_a_checkpoint_the_fit_continues(tmp_path, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    X = np.random.default_rng(0).normal(size=(300, 8))
    monkeypatch.setattr(plstream.files.checkpoints, "write_object", full)
    with pytest.warns(UserWarning, match="not enough memory"):
        model = fit_source(CIPLS(), open_source(X, X[:, 0].copy(), batch_size=50), checkpoint=tmp_path, every_rows=1)
    assert model.n_samples_seen_ == 300


def test_files_that_others_are_writing_are_left_alone(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 8))
    with replacing(tmp_path / "other") as file:
        file.write(b"x")
        fit_source(CIPLS(), open_source(X, X[:, 0].copy()), checkpoint=tmp_path)
    assert (tmp_path / "other").read_bytes() == b"x"


def test_the_reader_ends_when_a_fit_is_stopped(tmp_path):
    rows = "\n".join(",".join(map(repr, row)) for row in np.random.default_rng(0).normal(size=(3000, 3)).tolist())
    (tmp_path / "data.csv").write_text(rows)
    try:
        fit_source(CIPLS(), open_source(tmp_path / "data.csv", target=2, batch_size=50), stop=stopped_after(2))
    except Stopped:
        assert not [thread for thread in threading.enumerate() if thread.name == "plstream-reader"]
    else:
        pytest.fail("it was not stopped")


def test_epochs_are_not_for_checkpoints():
    X, y = data()
    with pytest.raises(ValueError, match="reads the data only once for this model"):
        fit_source(SGDPLS(n_epochs=2), open_source(X, y))
