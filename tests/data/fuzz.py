"""Data files with random changes: whatever a file holds, reading it ends in one sentence or in finite rows.

``python -m tests.data.fuzz 20000 0`` makes so many rounds from that seed, with names of formats only those of these,
and ``python -m tests.data.fuzz 1 0 123`` makes round 123 alone, in this process. Files with unusual features are also
read as they are. Each format has a process of its own, with limited memory, and limited time for each round: libraries
in C may end the process, and then it is known which file did that, and another process goes on.
"""

import faulthandler
import gc
import json
import os
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from collections import Counter
from contextlib import closing, suppress
from importlib import import_module
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from plstream import CIPLS, IncrementalPLS, open_source
from plstream.data import DataError
from tests.fuzzing import PATIENCE, SECONDS, keep, limit_memory, pick, require_sentence

from .features import FEATURES
from .formats import FORMATS, NAMES
from .mutations import MARKER, changes_of

N_ROWS = 40
# Of what says that it has more rows than this, some are read: a store may well have more rows than bytes.
MOST_ROWS = 100_000
# Seconds by the clock.
THREAD_PATIENCE = 60
MODELS = [IncrementalPLS(1), IncrementalPLS(1, solver="gram"), IncrementalPLS(1, solver="sketch"), CIPLS(1)]


def _hdf5_in_chunks(folder, X, _):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(folder / "chunks.h5", "w", libver="latest") as file:
        file.create_dataset("X", data=np.column_stack([X, np.arange(len(X))]), chunks=(7, 5))
    return folder / "chunks.h5", {"target": 4}


def _ndjson_arrays(folder, X, y):
    lines = [json.dumps([*row, label]) for row, label in zip(X.tolist(), y.tolist(), strict=True)]
    (folder / "arrays.jsonl").write_text("\n".join(lines))
    return folder / "arrays.jsonl", {"target": -1}


def _quoted(folder, X, y):
    lines = [",".join([*(f'"{name}"' for name in NAMES), '"y ""z"""'])]
    lines += [",".join([*map(repr, row), f'"{label}"']) for row, label in zip(X.tolist(), y.tolist(), strict=True)]
    (folder / "quoted.csv").write_text("\n".join(lines))
    return folder / "quoted.csv", {"target": -1}


def _npy_with_csv(folder, X, y):
    np.save(folder / "X.npy", np.asfortranarray(X))
    (folder / "y.csv").write_text("\n".join(map(str, y.tolist())))
    return folder / "X.npy", {"target": folder / "y.csv"}


IN_MEMORY = {"array", "pandas", "polars", "arrow in memory", "blocks"}
FILES = {name: write for name, write in FORMATS.items() if name not in IN_MEMORY} | {
    "csv quoted": _quoted,
    "ndjson arrays": _ndjson_arrays,
    "hdf5 in chunks": _hdf5_in_chunks,
    "npy with csv": _npy_with_csv,
}


FILES |= {f"{kind} features": features for kind, features in FEATURES.items()}
# How many files with unusual features are not changed.
UNCHANGED_SHARE = 0.3


class Original:
    """Files of one format, which are put back after every change."""

    def __init__(self, write, folder, X, y):
        self.folder = folder
        folder.mkdir()
        self.data, self.options, *outcome = write(folder, X, y)
        self.is_unusual = bool(outcome)
        self.contents = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}

    def change(self, rng):
        """Change a file; return how."""
        path = pick(rng, list(self.contents))
        chance = rng.random()
        if chance < 0.01:
            path.unlink()
            return "removed"
        if chance < 0.02:
            path.write_bytes(pick(rng, list(self.contents.values())))
            return "exchanged"
        content = self.contents[path]
        names = []
        for _ in range(1 if chance < 0.8 else 2):
            change = pick(rng, changes_of(path.relative_to(self.folder).as_posix()))
            names.append(change.__name__)
            try:
                changed = change(content, rng)
            except Exception:
                if len(names) == 1:
                    raise
                break  # The first change left nothing that the second knows how to change.
            content = changed
        path.write_bytes(content)
        return "+".join(names)

    def restore(self):
        """Put back what was changed; raise AssertionError if there is anything else."""
        found = {path for path in self.folder.rglob("*") if path.is_file()}
        assert found <= set(self.contents), f"a file was left behind: {found - set(self.contents)}"
        for path, content in self.contents.items():
            path.write_bytes(content)


def originals(name, folder):
    """Return the same rows with labels, with text and with values, or with one unusual feature each."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, len(NAMES)))
    labels = np.arange(N_ROWS) % 3
    write = FILES[name]
    if isinstance(write, dict):
        return [Original(feature, folder / place, X, labels) for place, feature in write.items()]
    return [
        Original(write, folder / "labels", X, labels),
        Original(write, folder / "text", X.astype(np.float32), np.array(["no", "yes", "maybe"])[labels]),
        Original(write, folder / "values", X, X[:, 0] - X[:, 1]),
    ]


def blocks_of(source, start, n_rows):
    """Read rows, at least so many if there are; all that can be seen of them is right."""
    rows, targets, n_read = [], [], 0
    with closing(source.blocks(start)) as blocks:
        for X, y in blocks:
            assert X.ndim == 2, X.shape
            assert X.shape[1] == source.n_columns, X.shape
            assert X.dtype == source.dtype, X.dtype
            assert len(X) <= source.block_rows, len(X)
            assert np.isfinite(X).all()
            if source.n_targets:
                assert y.shape == (len(X),) if source.target_is_vector else (len(X), source.n_targets), y.shape
                assert y.dtype.kind in "biufSU", y.dtype
                assert y.dtype.kind in "SU" or np.isfinite(y).all()
            else:
                assert y is None
            rows.append(np.array(X))
            targets.append(y)
            n_read += len(X)
            if n_read >= n_rows:
                break
    return np.concatenate(rows) if rows else np.empty((0, source.n_columns)), targets


def read(data, options, rng):
    """Read a source from the beginning and from some row; fit a model to it now and then; return what came of it."""
    source = open_source(data, **options)
    assert source.fingerprint() == open_source(data, **options).fingerprint()
    X, _ = blocks_of(source, 0, MOST_ROWS)
    if source.n_rows is None or source.n_rows <= MOST_ROWS:
        assert len(X) == (source.n_rows or source.count())
        start = int(rng.integers(len(X) + 3))
        np.testing.assert_array_equal(blocks_of(source, start, MOST_ROWS)[0], X[start:])
    else:
        blocks_of(source, source.n_rows - 3, 3)
    if rng.random() < 0.7 or len(X) > 10 * N_ROWS or source.n_columns > 1000 or not source.n_targets:
        return "read"
    try:
        clone(pick(rng, MODELS)).fit(source)
    except DataError:
        raise
    except (ValueError, TypeError) as error:
        require_sentence(error)
        return "read, and the model says why it does not fit"
    return "read and fitted"


def outcome_of(original, rng):
    """Read the changed file; raise any error other than the documented ones."""
    try:
        outcome = read(original.data, original.options, rng)
    except (DataError, OSError) as error:
        # Of the system's errors only those that say what they are about.
        require_sentence(error)
        outcome, text = "refused", str(error)
    assert outcome != "refused" or str(original.folder) in text, f"which file? {text}"
    assert not Path(os.environ[MARKER]).exists(), "a pickle was run"
    for thread in threading.enumerate():
        if thread.name.startswith("plstream"):
            thread.join(THREAD_PATIENCE)
            assert not thread.is_alive(), f"a thread is left: {thread.name}"
    return outcome


def change_and_read(number, seed, files, log):
    """Make one round; return what was changed, and what came of it."""
    rng = np.random.default_rng([seed, number])
    original = pick(rng, files)
    options = original.options
    if rng.random() < 0.5:
        original.options = {**options, "batch_size": int(pick(rng, [1, 7, 1000]))}
    if rng.random() < 0.1:
        original.options = {key: value for key, value in original.options.items() if key != "target"}
    change = "none" if original.is_unusual and rng.random() < UNCHANGED_SHARE else original.change(rng)
    # Unlike handlers in Python these also end what hangs in a thread or in C: one what works, one what waits.
    faulthandler.register(signal.SIGPROF, log, chain=True)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    faulthandler.dump_traceback_later(PATIENCE, exit=True, file=log)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = outcome_of(original, rng)
    faulthandler.cancel_dump_traceback_later()
    signal.setitimer(signal.ITIMER_PROF, 0)
    original.options = options
    original.restore()
    return change, outcome


def prepare():
    """Load packages and compile loops, once for all processes and before time counts."""
    for name in ("pyarrow.parquet", "pyarrow.csv", "h5py", "zarr"):
        with suppress(ImportError):
            import_module(name)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for original, model in product(originals("npy", Path(folder)), MODELS):
            with suppress(ValueError):
                clone(model).fit(open_source(original.data, **original.options))
    # What is there by now is looked through no more.
    gc.freeze()


def n_open_files():
    gc.collect()
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0  # noqa: PTH208


def work(name, numbers, seed, folder, tell):
    """Make the rounds of one format, and tell of each what came of it; after an error there is nothing more."""
    os.environ[MARKER] = str(folder / "marker")
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None
    try:
        files = originals(name, folder)
    except pytest.skip.Exception as reason:
        tell([None, "", str(reason)])
        return
    limit_memory()
    n_open = None
    log = (folder / "log").open("wb")
    faulthandler.enable(log)
    for number in numbers:
        try:
            _, outcome = change_and_read(number, seed, files, log)
            tell([number, outcome, ""])
            if n_open is None:
                n_open = n_open_files()
        except BaseException as error:  # noqa: BLE001
            tell([number, "", f"{type(error).__name__}: {str(error)[:300]}\n{traceback.format_exc()}"])
            return
    more = n_open_files() - (n_open or 0)
    if more > 5:
        tell([numbers[-1], "", f"{more} files were not closed"])


def start(name, numbers, seed, folder):
    """Return the id of a process that makes rounds, and a file that says what comes of them."""
    come, go = os.pipe()
    process = os.fork()
    if process:
        os.close(go)
        return process, os.fdopen(come, "rb")
    os.close(come)
    try:
        work(name, numbers, seed, folder, lambda entry: os.write(go, json.dumps(entry).encode() + b"\n"))
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        os._exit(0)


def fuzz_format(name, numbers, seed):
    """Make the rounds of one format; return how many ended how, and what went wrong."""
    outcomes, faults, numbers = Counter(), [], list(numbers)
    while numbers:
        with tempfile.TemporaryDirectory() as folder:
            process, pipe = start(name, numbers, seed, Path(folder))
            number, text = None, None
            with pipe:
                for number, outcome, text in map(json.loads, pipe):  # noqa: B007
                    if text:
                        break
                    outcomes[outcome] += 1
                    numbers.pop(0)
            _, status = os.waitpid(process, 0)
            if number is None and text:
                # The package that reads them is not there.
                return Counter({text: len(numbers)}), []
            if not text and not numbers:
                break
            if not text:
                code = os.waitstatus_to_exitcode(status)
                number, text = numbers[0], f"the process ended ({code}): {Path(folder, 'log').read_text()}"
            if limit := limit_of_library(name, text):
                outcomes[limit] += 1
            else:
                outcomes["FAULT"] += 1
                faults.append(f"{name}, round {number}, files in {keep(folder, seed, number)}: {text}")
                print(faults[-1], file=sys.stderr, flush=True)  # noqa: T201
            numbers = numbers[1:]
    return outcomes, faults


def limit_of_library(name, text):
    """Return what docs/data.md says of a library that no check of ours can do anything about, if this is it."""
    if name.startswith("hdf5") and text.startswith(f"the process ended ({-signal.SIGPROF})") and "h5py" in text:
        return "HDF5 does not come back"
    return None


def fuzz(n_rounds, seed=0, names=()):
    """Read so many files that have been changed; return how many of each format ended how, and what went wrong."""
    outcomes, faults = {}, []
    prepare()
    for index, name in enumerate(FILES):
        if names and name not in names:
            continue
        outcomes[name], found = fuzz_format(name, range(index, n_rounds, len(FILES)), seed)
        faults += found
        print(f"{name}: {dict(outcomes[name])}", flush=True)  # noqa: T201
    return outcomes, faults


def one_round(number, seed):
    with tempfile.TemporaryDirectory() as folder:
        os.environ[MARKER] = str(Path(folder, "marker"))
        print(change_and_read(number, seed, originals(list(FILES)[number % len(FILES)], Path(folder)), sys.stderr))  # noqa: T201


if __name__ == "__main__":
    n_rounds, seed, *rest = [*sys.argv[1:], "0"][: max(2, len(sys.argv) - 1)]
    if rest and rest[0].isdigit():
        one_round(int(rest[0]), int(seed))
    else:
        outcomes, faults = fuzz(int(n_rounds), int(seed), rest)
        print(dict(sum(outcomes.values(), Counter())))  # noqa: T201
        sys.exit(len(faults) > 0)
