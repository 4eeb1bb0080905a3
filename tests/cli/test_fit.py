"""plstream fit: the same models as those of the library."""

import io
import json
import os
import signal
import sys
import threading
import warnings

import numpy as np
import pytest

import plstream
from plstream import (
    CCIPCA,
    CIPLS,
    IPLS,
    OLPLS,
    SGDPLS,
    IncrementalLDA,
    IncrementalPLS,
    IncrementalPLSClassifier,
    load,
    open_source,
    save,
)
from plstream.cli import progress


def assert_same(model, expected):
    assert list(getattr(model, "feature_names_in_", [])) == list(getattr(expected, "feature_names_in_", []))
    np.testing.assert_array_equal(model.coef_, expected.coef_)


def contents(path):
    """The header, whose keys are in any order, and the bytes of all arrays."""
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]


@pytest.mark.parametrize(
    "method", ["incremental-pls", "incremental-pls-classifier", "cipls", "olpls", "incremental-lda"]
)
@pytest.mark.parametrize("one_pass", [False, True])
def test_models_of_the_library_byte_for_byte(folder, done, method, one_pass):
    X = np.random.default_rng(0).normal(size=(500, 8))
    np.save("wide.npy", X)
    np.save("numbers.npy", (X[:, 0] > X[:, 1]).astype(int))
    done("fit", "wide.npy", "--target", "numbers.npy", "--method", method, *["--one-pass"] * one_pass)
    source = open_source("wide.npy", target="numbers.npy")
    models = {
        "incremental-pls": IncrementalPLS(),
        "incremental-pls-classifier": IncrementalPLSClassifier(),
        "cipls": CIPLS(),
        "olpls": OLPLS(),
        "incremental-lda": IncrementalLDA(),
    }
    expected = models[method]
    (expected.partial_fit if one_pass else expected.fit)(source)
    # It is solved before it is saved.
    assert expected.n_components_ > 0
    save(expected, "expected.plstream")
    assert contents(folder / "expected.plstream") == contents(folder / "model.plstream")


@pytest.mark.usefixtures("folder")
def test_exact_by_default(done):
    out = done("fit", "data.csv", "--target", "y", "--exclude", "kind", "-c", 3)
    assert out == (
        "model.plstream: IncrementalPLS, 3 components of 5 features, 300 rows, multipass, explains 99.8% of y\n"
    )
    assert list(load("model.plstream").feature_names_in_) == list("abcde")


@pytest.mark.parametrize("solver", ["gram", "sketch"])
@pytest.mark.usefixtures("folder")
def test_one_pass(done, solver):
    sketch = ["--sketch-size", 8] if solver == "sketch" else []
    done("fit", "X.npy", "--target", "y.npy", "--one-pass", "--no-scale", "--forgetting", 0.99, *sketch)
    parameters = {"solver": "sketch", "sketch_size": 8} if sketch else {}
    expected = IncrementalPLS(scale=False, forgetting=0.99, **parameters)
    expected.partial_fit(open_source("X.npy", target="y.npy"))
    model = load("model.plstream")
    assert model.solver_ == solver
    assert_same(model, expected)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cipls", CIPLS(2)),
        ("ccipca", CCIPCA(2)),
        ("ipls", IPLS(2, n_pca_components=20)),
        ("olpls", OLPLS(2)),
        ("sgdpls", SGDPLS(2, random_state=0)),
        ("incremental-lda", IncrementalLDA()),
        ("incremental-pls-classifier", IncrementalPLSClassifier()),
    ],
)
@pytest.mark.usefixtures("folder")
def test_methods(run, name, expected):
    assert run("fit", "X.npy", "--target", "labels.npy", "--method", name).code == 0
    model = load("model.plstream")
    assert type(model) is type(expected)
    assert model.n_samples_seen_ == 300
    with warnings.catch_warnings(action="ignore"):
        expected.fit(open_source("X.npy", target="labels.npy"))
        X = np.load("X.npy")
        assert np.allclose(model.transform(X), expected.transform(X), rtol=1e-9, atol=1e-12)


def test_seeds(folder, run, refused):
    np.save("many.npy", np.arange(300) % 5)

    def fitted(*options):
        assert run("fit", "X.npy", "-t", "many.npy", "--method", "sgdpls", *options, "--force").code == 0
        return (folder / "model.plstream").read_bytes()

    first = fitted()
    assert fitted() == fitted("--seed", 0) == first
    assert fitted("--seed", 7) == fitted("--seed", 7) != first
    assert load("model.plstream").random_state == 7
    assert "--seed is not an option of --method cipls, only of sgdpls" in refused(
        "fit", "X.npy", "-t", "many.npy", "--method", "cipls", "--seed", 7, "--force"
    )


def test_labels_from_the_beginning_to_the_end(folder, done, arrays):
    """A classifier of text, from files and from a pipe, and what the other commands make of it."""
    options = ["--target", "kind", "--exclude", "y", "--method", "incremental-pls-classifier", "-c", 3]
    out = done("fit", "data.csv", *options)
    assert out.startswith("model.plstream: IncrementalPLSClassifier, 3 components of 5 features, 300 rows, multi")
    assert ", 2 classes, explains" in out
    expected = IncrementalPLSClassifier(3).fit(arrays.X, arrays.labels)
    predicted = done("predict", "model.plstream", "data.csv").split()
    assert predicted == ["prediction", *expected.predict(arrays.X)]
    table = done("evaluate", "model.plstream", "data.csv", "--target", "kind").splitlines()
    assert float(table[1].split(",")[-1]) == pytest.approx(expected.score(arrays.X, arrays.labels))
    assert "classes:    high, low" in done("info", "model.plstream")
    lines = (folder / "data.csv").read_text().splitlines()
    # The first line has one label alone.
    pipe = "\n".join([lines[0], *sorted(lines[1:], key=lambda line: line.rsplit(",")[-1])]).encode()
    pipe_options = ["-", "--format", "csv", *options, "-o", "pipe.plstream"]
    done("fit", *pipe_options, "--classes", "low,high,middle", stdin=pipe)
    model = load("pipe.plstream")
    assert list(model.classes_) == ["high", "low", "middle"]
    assert (model.predict(open_source("data.csv", columns=list("abcde"))) == expected.predict(arrays.X)).all()
    done("fit", "data.csv", *options, "--forgetting", 0.9, "--force")
    assert load("model.plstream").forgetting == 0.9


@pytest.mark.parametrize("one_pass", [False, True])
@pytest.mark.usefixtures("folder")
def test_memory_for_classes(run, one_pass):
    result = run(
        *("fit", "X.npy", "--target", "labels.npy", "--method", "incremental-pls-classifier", "--memory", "100MB"),
        *["--one-pass"] * one_pass,
    )
    assert result.code == 0
    assert "for the model and" in result.err


@pytest.mark.usefixtures("folder")
def test_several_targets_by_number_and_range(done):
    done("fit", "data.csv", "--target", "5,4", "--columns", "0:3")
    expected = IncrementalPLS().fit(open_source("data.csv", target=["y", "e"], columns=["a", "b", "c"]))
    assert_same(load("model.plstream"), expected)


@pytest.mark.usefixtures("folder")
def test_numbers_that_are_names(done, arrays):
    np.savetxt("wide.csv", arrays.X, delimiter=",", header="1100,1102,3,1,x", comments="")
    done("fit", "wide.csv", "--target", "3", "--exclude", "4")
    assert list(load("model.plstream").feature_names_in_) == ["1100", "1102", "1"]


@pytest.mark.parametrize("target", ["0:1", "0,1"])
@pytest.mark.usefixtures("folder")
def test_target_of_two_dimensions(done, arrays, target):
    done("fit", "X.npy", "--target", target)
    n_targets = len(range(*slice(*map(int, target.split(":"))).indices(5))) if ":" in target else 2
    assert load("model.plstream").predict(arrays.X[:, n_targets:]).shape == (300, n_targets)


def test_standard_input(folder, done, arrays):
    done("fit", "-", "--format", "csv", "-t", "y", "--exclude", "kind", stdin=(folder / "data.csv").read_bytes())
    expected = IncrementalPLS().partial_fit(open_source("data.csv", target="y", exclude="kind"))
    assert_same(load("model.plstream"), expected)
    lines = [json.dumps({"x": row, "y": y}) for row, y in zip(arrays.X.tolist(), arrays.y.tolist(), strict=True)]
    done("fit", "-", "--format", "ndjson", "-t", "y", "-o", "nd.plstream", stdin="\n".join(lines).encode())
    assert np.allclose(load("nd.plstream").coef_, expected.coef_, rtol=1e-12)


@pytest.mark.usefixtures("folder")
def test_arrow_on_standard_input(done, arrays):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({name: arrays.X[:, j] for j, name in enumerate(arrays.names)} | {"y": arrays.y})
    sink = io.BytesIO()
    with arrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    done("fit", "-", "--format", "arrow", "-t", "y", stdin=sink.getvalue())
    assert load("model.plstream").n_samples_seen_ == 300


def test_labels_on_standard_input(folder, run, refused):
    content = (folder / "data.csv").read_bytes()
    call = "fit", "-", "--format", "csv", "-t", "kind", "--exclude", "y", "--method", "cipls"
    # One of the classes has no rows, which raises a warning.
    assert run(*call, "--classes", "high,low,other", stdin=content).code == 0
    assert list(load("model.plstream").classes_) == ["high", "low", "other"]
    message = refused(*call, "--classes", "high,other", "--force", stdin=content)
    assert "Label low is not among the classes" in message
    assert "--classes" in message


def test_existing_output_is_kept(folder, done, refused):
    (folder / "model.plstream").write_text("mine")
    message = refused("fit", "X.npy", "-t", "y.npy")
    assert message == "plstream: model.plstream exists already: pass --force to replace it, or another name.\n"
    assert (folder / "model.plstream").read_text() == "mine"
    done("fit", "X.npy", "-t", "y.npy", "--force")
    assert load("model.plstream").n_samples_seen_ == 300


@pytest.mark.usefixtures("folder")
def test_memory_is_printed_and_bounded(run, refused):
    result = run("fit", "X.npy", "-t", "y.npy", "--one-pass", "--memory", "2MB")
    assert result.code == 0
    assert result.err.startswith("memory: 0.3 MB for the model and ")
    assert result.err.count("\n") == 1
    assert "allow --memory 1MB" in refused("fit", "X.npy", "-t", "y.npy", "-o", "m", "--one-pass", "--memory", "1kB")
    assert "not an amount of memory" in refused("fit", "X.npy", "-t", "y.npy", "-o", "m", "--memory", "lots")


@pytest.mark.usefixtures("folder")
def test_memory_that_a_smaller_sketch_fits(run, refused):
    rng = np.random.default_rng(0)
    np.save("wide.npy", rng.normal(size=(40, 3000)))
    message = refused("fit", "wide.npy", "-t", "0", "--one-pass", "--memory", "14MB")
    assert "pass --one-pass --sketch-size 32, or leave out --one-pass, or allow --memory" in message
    result = run("fit", "wide.npy", "-t", "0", "--one-pass", "--memory", "14MB", "--sketch-size", 32)
    assert result.code == 0
    assert load("model.plstream").solver_ == "sketch"


@pytest.mark.usefixtures("folder")
def test_smaller_blocks_change_nothing_but_rounding(run):
    run("fit", "X.npy", "-t", "y.npy", "--one-pass", "-o", "small", "--memory", "400kB")
    run("fit", "X.npy", "-t", "y.npy", "--one-pass", "-o", "large")
    assert np.allclose(load("small").coef_, load("large").coef_, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["X.npy"], "--target"),
        (["X.npy", "-t", "y.npy", "--method", "cipls", "--scale"], "--scale is not an option of --method cipls"),
        (["X.npy", "-t", "y.npy", "--classes", "a,b"], "--classes is not an option of --method incremental-pls"),
        (["X.npy", "-t", "y.npy", "--sketch-size", "50"], "pass --one-pass as well"),
        (["X.npy", "-t", "y.npy", "--one-pass", "--max-reads", "2"], "for fits that read the data several times"),
        (["X.npy", "-t", "y.npy", "-c", "0"], "neither a number of 1 or more nor auto"),
        (["X.npy", "-t", "y.npy", "-c", "9"], "Got 9 instead"),
        (["X.npy", "-t", "y.npy", "--method", "pcr"], "pcr"),
        (["X.npy", "-t", "y.npy", "--forgetting", "2"], "forgetting"),
        (["X.npy", "-t", "y.npy", "-o", "no/model"], "There is no folder"),
        (["X.npy", "-t", "y.npy", "-o", "."], "is a folder"),
        (["X.npy", "-t", "y.npy", "--unknown"], "No such option"),
        (["missing.csv", "-t", "y"], "There is no file missing.csv"),
        (["data.csv", "-t", "z"], "There is no column 'z'"),
        (["data.csv", "-t", "y"], "leave such columns out by --columns or --exclude"),
        (["data.csv", "-t", "kind", "--exclude", "y"], "y must hold numbers"),
        (["-", "-t", "y"], "Pass --format for standard input"),
        ([], "DATA"),
    ],
)
def test_wrong_calls(folder, refused, arguments, words):
    message = refused("fit", *arguments)
    assert any(word in message for word in words.split("|"))
    assert not (folder / "model.plstream").exists()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.usefixtures("folder")
def test_progress_and_running_error_on_a_terminal(run, monkeypatch):
    run("fit", "X.npy", "-t", "y.npy", "--one-pass", "--memory", "400kB", "-o", "silent")
    terminal = Terminal()
    monkeypatch.setattr(progress, "WAIT", 0.0)
    # Blocks of a few rows.
    monkeypatch.setattr(plstream.data.source, "_BLOCKS_UNDER_WAY", 64)
    with monkeypatch.context() as context:
        context.setattr(sys, "stderr", terminal)
        assert run("fit", "X.npy", "-t", "y.npy", "--one-pass", "--memory", "400kB").code == 0
    text = terminal.getvalue()
    assert "read 1 of 1, error " in text
    assert "/s [" in text
    assert "s left" in text
    # Watching changes nothing.
    assert np.allclose(load("silent").coef_, load("model.plstream").coef_, rtol=1e-12)


def test_running_error_is_that_before_learning(arrays):
    error, model, parts = progress.RunningError(), IncrementalPLS(), []
    for start in range(0, 300, 100):
        rows = slice(start, start + 100)
        X, y = arrays.X[rows], arrays.y[rows]
        if start:
            error(model, X, y)
            parts.append((y, model.predict(X)))
        model.partial_fit(X, y)
    y, predicted = (np.concatenate(part) for part in zip(*parts, strict=True))
    expected = np.sqrt(np.square(y - predicted).sum() / np.square(y - y.mean()).sum())
    assert str(error) == f"error {expected:.1%}"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_fit_that_is_interrupted_resumes_from_its_checkpoint(folder, run, monkeypatch, number):
    X = np.random.default_rng(0).normal(size=(500, 64))
    np.save("wide.npy", X)
    np.save("wide_y.npy", X[:, 0] - X[:, 1])
    # Blocks of a few rows.
    monkeypatch.setattr(plstream.data.source, "_BLOCKS_UNDER_WAY", 1 << 12)
    command = "fit", "wide.npy", "-t", "wide_y.npy", "--one-pass", "--checkpoint", "checkpoint"
    calls, learn = [], IncrementalPLS.partial_fit

    def interrupted(model, *arguments, **options):
        calls.append(1)
        if len(calls) == 3:
            os.kill(os.getpid(), number)
        return learn(model, *arguments, **options)

    with monkeypatch.context() as context:
        context.setattr(IncrementalPLS, "partial_fit", interrupted)
        result = run(*command)
        assert result.code == 1
        assert result.err == "plstream: interrupted; the same command resumes from the checkpoint in checkpoint.\n"
        assert len(calls) == 3
        assert not (folder / "model.plstream").exists()
        assert run(*command).code == 0
    n_blocks = len(list(open_source("wide.npy", target="wide_y.npy").blocks()))
    assert len(calls) == n_blocks
    assert not list((folder / "checkpoint").iterdir())
    resumed = contents(folder / "model.plstream")
    assert run(*command[:-2], "--force").code == 0
    assert contents(folder / "model.plstream") == resumed


@pytest.mark.usefixtures("folder")
def test_a_checkpoint_of_other_parameters_is_refused(run, refused, monkeypatch):
    monkeypatch.setattr(plstream.data.source, "_BLOCKS_UNDER_WAY", 1 << 16)
    command = ["fit", "X.npy", "-t", "y.npy", "--one-pass", "--checkpoint", "checkpoint", "--every-rows", 1]
    with monkeypatch.context() as context:
        context.setattr(plstream.files.checkpoints.CheckpointFolder, "remove", lambda _: None)
        assert run(*command).code == 0
    assert "n_components" in refused(*command, "-c", 3, "--force")


def test_text_without_names_and_with_other_delimiters(folder, done, refused):
    rows = np.random.default_rng(0).normal(size=(60, 3))
    np.savetxt("plain.csv", rows, delimiter=";")
    (folder / "labels.csv").write_text("\n".join(np.where(rows[:, 0] > 0, "a", "b")))
    call = "fit", "plain.csv", "--delimiter", ";", "--method", "cipls"
    done(*call, "-t", "labels.csv", "--no-header")
    assert load("model.plstream").classes_.tolist() == ["a", "b"]
    assert "a different number of rows" in refused(*call, "-t", "labels.csv", "--force")
    done("fit", "plain.csv", "--delimiter", ";", "-t", "-1", "--columns", "0:2", "--force")


def test_columns_of_arrays_by_number(folder, done):
    rows = np.random.default_rng(0).normal(size=(60, 4))
    np.savez(folder / "one.npz", A=rows)
    done("fit", "one.npz", "-t", "3")
    assert load("model.plstream").n_features_in_ == 3


def test_models_with_names_like_numbers(folder, run, done, refused):
    rows = np.random.default_rng(0).normal(size=(60, 4))
    np.savetxt("named.csv", rows, delimiter=",", header="1,2,3,y", comments="")
    done("fit", "named.csv", "-t", "y")
    np.save(folder / "four.npy", rows)
    np.save(folder / "three.npy", rows[:, :3])
    assert "4 features" in refused("predict", "model.plstream", "four.npy")
    assert run("predict", "model.plstream", "three.npy", "-o", "p.npy").code == 0
    expected = IncrementalPLS().fit(rows[:, :3], rows[:, 3]).predict(rows[:, :3])
    np.testing.assert_allclose(np.load("p.npy"), expected)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_is_opened_once(folder, run, done):
    rows = np.random.default_rng(0).normal(size=(400, 3))
    np.savetxt("named.csv", rows, delimiter=",", header="a,b,y", comments="")
    done("fit", "named.csv", "-t", "y")
    os.mkfifo(folder / "pipe")
    text = "".join(f"{a!r},{b!r}\n" for a, b in rows[:, :2].tolist())
    writer = threading.Thread(target=lambda: (folder / "pipe").write_text(text))
    writer.start()
    assert run("predict", "model.plstream", "pipe", "--format", "csv", "-o", "p.npy").code == 0
    writer.join()
    assert len(np.load("p.npy")) == 400


def test_memory_of_many_labels(folder, run, refused):
    rng = np.random.default_rng(0)
    np.save(folder / "wide.npy", rng.normal(size=(300, 400)))
    np.save(folder / "many.npy", np.arange(300) % 100)
    call = "fit", "wide.npy", "-t", "many.npy", "--method", "cipls", "-c", 1, "--memory"
    assert "is not enough" in refused(*call, "1MB")
    assert run(*call, "1GB").code == 0


@pytest.mark.usefixtures("folder")
def test_options_that_would_be_ignored(refused):
    assert "--checkpoint" in refused("fit", "X.npy", "-t", "y.npy", "--every-rows", 5)
    assert "--method vip" in refused("select", "X.npy", "--method", "inffs", "-c", 3)
    assert "standard output" in refused("fit", "X.npy", "-t", "y.npy", "-o", "-")
    assert "not an amount of memory" in refused("fit", "X.npy", "-t", "y.npy", "--memory", "9" * 400)


def test_standard_output_as_output(folder, done, refused):
    call = "select", "X.npy", "-t", "y.npy", "--keep", 2
    assert done(*call, "-o", "-") == done(*call)
    for name in ("m.plstream", "n.plstream"):
        done("fit", "X.npy", "-t", "y.npy", "-o", name)
    for command in (
        ("merge", "m.plstream", "n.plstream"),
        ("export", "m.plstream"),
        ("update", "m.plstream", "X.npy", "-t", "y.npy"),
    ):
        assert "standard output" in refused(*command, "-o", "-")
    assert not (folder / "-").exists()


@pytest.mark.usefixtures("folder")
def test_a_few_reads(done):
    done("fit", "X.npy", "-t", "y.npy", "-c", 3, "--read-tol", "1e-3", "--max-reads", 4)
    model = load("model.plstream")
    assert (model.read_tol, model.max_reads) == (1e-3, 4)
    assert model.n_reads_ <= 4
