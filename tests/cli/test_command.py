"""The command as a whole: help, errors and exit codes, pipes, interrupts, a shell."""

import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

import plstream
from plstream import IncrementalPLS, load, open_source, save
from plstream.cli import errors, main
from plstream.files.checkpoints import CheckpointFolder

COMMANDS = [
    *("fit", "update", "merge", "predict", "transform", "evaluate", "monitor", "report", "select", "info", "export"),
    *("features", "reproduce"),
]
GUIDE = Path(__file__).parents[2] / "docs" / "command_line.md"


def in_shell(line, folder, **options):
    """Run a line in a shell where plstream is a command."""
    command = f'plstream() {{ {shlex.quote(sys.executable)} -m plstream "$@"; }}\n{line}'
    source = str(Path(plstream.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source}
    return subprocess.run(  # noqa: S603
        ["/bin/bash", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(done, command):
    assert f"plstream {command} " in done(command, "--help").split("Arguments:")[0].split("\n", 1)[1]


def test_help_of_all(done):
    text = done("--help")
    assert all(f"  {command} " in text for command in COMMANDS)
    assert "Exit codes" in text
    # No description is truncated.
    assert "..." not in text.split("Commands:")[1]
    assert done() == text
    assert done("--version") == f"plstream {plstream.__version__}\n"


def test_help_is_quick():
    code = (
        "import sys; from plstream.cli import main; main(['fit', '--help']); "
        "print(*{'numpy', 'sklearn', 'scipy', 'numba', 'rich'} & {*sys.modules}, file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert result.stderr.strip() == ""


def test_commands_load_neither_plots_nor_reports(folder):
    code = (
        "import sys\n"
        "from plstream.cli import main\n"
        "assert main(['fit', 'data.csv', '--target', 'y', '--exclude', 'kind', '-o', 'light.plstream']) == 0\n"
        "assert main(['evaluate', 'light.plstream', 'data.csv', '--target', 'y']) == 0\n"
        "print([name for name in sys.modules if name.startswith(('plstream.plots', 'plstream.report', 'matplotlib'))])"
    )
    result = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=folder
    )
    assert result.stdout.splitlines()[-1] == "[]"


def test_without_the_extra():
    code = "import sys; sys.modules['typer'] = None; from plstream.cli import main; sys.exit(main([]))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "The command plstream requires extra packages: pip install 'plstream[cli]'.\n"


@pytest.mark.parametrize("arguments", [["nothing"], ["--nothing"], ["fit", "a", "b"], ["fit", "a", "--target"]])
def test_usage_errors_are_one_line(refused, arguments):
    refused(*arguments)


def test_completion(done, monkeypatch, capsys):
    assert "complete_bash" in done("--show-completion", "bash")
    monkeypatch.setenv("_PLSTREAM_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "plstream pre")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert main([]) == 0
    assert capsys.readouterr().out.split() == ["predict"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.csv", b""),
        ("header.csv", b"a,b,y\n"),
        ("nan.csv", b"a,b,y\n1,2,3\n1,nan,3\n2,3,4\n"),
        ("inf.csv", b"a,b,y\n1,2,3\n1,inf,3\n2,3,4\n"),
        ("ragged.csv", b"a,b,y\n1,2,3\n1,3\n"),
        ("text.csv", b"a,b,y\n1,2,3\n1,x\x1b[31m,3\n"),
        ("twice.csv", b"a,a,y\n1,2,3\n"),
        ("bytes.csv", b"a,b,y\n\xff\xfe\x00,2,3\n"),
        ("cut.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (5, 3), }"),
        ("not.parquet", b"PAR1 nothing"),
        ("not.h5", b"nothing"),
        ("not.csv.gz", b"nothing"),
        ("bad.ndjson", b'{"a": 1, "y": 2}\n{"a": \n'),
        ("what.bin", b"\x00\x01\x02"),
        ("one\nline.csv", b"a,b,y\n1,2,x\n"),
    ],
)
@pytest.mark.parametrize("one_pass", [True, False])
def test_hostile_files(folder, refused, name, content, one_pass):
    (folder / name).write_bytes(content)
    refused("fit", name, "--target", "y", *["--one-pass"] * one_pass)
    assert not (folder / "model.plstream").exists()


@pytest.mark.parametrize("change", [lambda b: b[:-9], lambda b: b[:40] + b"x" + b[41:], lambda _: b"", lambda b: b * 2])
def test_damaged_models(folder, refused, arrays, change):
    save(IncrementalPLS().fit(arrays.X, arrays.y), "model.plstream")
    (folder / "model.plstream").write_bytes(change((folder / "model.plstream").read_bytes()))
    for command in (["info", "model.plstream"], ["predict", "model.plstream", "X.npy"]):
        refused(*command)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (OSError(28, "No space left on device", "model"), 1, "model: No space left on device."),
        (OSError(5, "Input/output error"), 1, "Input/output error."),
        (MemoryError(), 1, "not enough memory"),
        (MemoryError("needs 5 GB"), 1, "needs 5 GB"),
        (KeyboardInterrupt(), 1, "interrupted; nothing was written."),
        (RuntimeError("odd"), 1, "RuntimeError: odd"),
        (ValueError("two\nlines"), 2, "two lines"),
    ],
)
def test_failures(folder, refused, monkeypatch, error, code, words):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("plstream.files.fit_source", fail)
    assert words in refused("fit", "X.npy", "-t", "y.npy", code=code)
    assert not (folder / "model.plstream").exists()


@pytest.mark.parametrize("place", [0, 2, 4])
@pytest.mark.usefixtures("folder")
def test_debug_shows_the_traceback(run, place):
    arguments = ["fit", "X.npy", "-t", "none"]
    result = run(*arguments[:place], "--debug", *arguments[place:])
    assert result.code == 2
    assert "Traceback" in result.err


def test_exit_codes_of_systems():
    assert errors.exit_code(FileNotFoundError(2, "No such file", "x")) == 2
    assert errors.exit_code(OSError("x is a device")) == 2
    assert errors.exit_code(OSError(28, "No space left")) == 1


def test_pipes(folder, arrays):
    save(IncrementalPLS().fit(arrays.X, arrays.y), folder / "model.plstream")
    line = "cat data.csv | plstream predict model.plstream - --format csv --columns 0:5 2> errors | head -n 2"
    result = in_shell(line, folder)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines()[0] == "prediction"
    assert len(result.stdout.splitlines()) == 2
    assert (folder / "errors").read_text().count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
def test_closed_standard_output(folder, arrays):
    save(IncrementalPLS().fit(arrays.X, arrays.y), folder / "model.plstream")
    result = in_shell("plstream predict model.plstream X.npy >&-", folder)
    assert result.returncode == 2
    assert result.stderr == "plstream: Standard output is closed: leave it open, or send it to a file with > FILE.\n"


NATIVE = """
import hashlib, os, signal, sys, threading
from plstream.cli import errors
from plstream.files import replacing

errors.GRACE = 0.1
begun = threading.Event()

def terminate():
    begun.wait()
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=terminate, daemon=True).start()
with errors.terminated_as_interrupted(), replacing("out.bin") as file:
    file.write(b"half")
    # The other thread comes to its turn when the lock of the interpreter is free, and so not before the loop runs.
    sys.setswitchinterval(600)
    begun.set()
    # Compiled, for a quarter of an hour, and without that lock.
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
"""


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_termination_of_compiled_code(tmp_path):
    (tmp_path / "out.bin").write_bytes(b"old")
    environment = {**os.environ, "PYTHONPATH": str(Path(plstream.__file__).parents[1])}
    ended = subprocess.run([sys.executable, "-c", NATIVE], cwd=tmp_path, env=environment, timeout=600, check=False)  # noqa: S603
    assert ended.returncode == errors.TERMINATED == 143
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("out.bin", b"old")]


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_a_request_is_not_a_termination(monkeypatch):
    """The first signal to a fit with checkpoints may wait for the end of its block, whatever that takes."""
    ended = []
    monkeypatch.setattr(errors, "GRACE", 0.01)
    monkeypatch.setattr(os, "_exit", ended.append)
    with errors.terminated_as_interrupted(), errors.signals_to_stop() as stop:
        assert not stop()
        signal.raise_signal(signal.SIGTERM)
        assert stop()
        time.sleep(0.1)
        assert not ended
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        while not ended:
            time.sleep(0.01)
    assert ended == [143]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_standard_output(folder, refused, arrays, monkeypatch):
    save(IncrementalPLS().fit(arrays.X, arrays.y), folder / "model.plstream")
    full = open("/dev/full", "w")  # noqa: PTH123, SIM115
    with monkeypatch.context() as context:
        context.setattr(sys, "stdout", full)
        assert refused("predict", "model.plstream", "X.npy", code=1) == "plstream: No space left on device.\n"
    with suppress(OSError):
        full.close()


def follow(text, number, *options, until):
    """Fit a pipe that text comes from and that stays open, and send a signal once something has happened."""
    command = [sys.executable, "-m", "plstream", "fit", "-", "--format", "csv", "--target", "y", "--exclude", "kind"]
    environment = {**os.environ, "PYTHONPATH": str(Path(plstream.__file__).parents[1])}
    with subprocess.Popen(  # noqa: S603
        [*command, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        process.stdin.write(text)
        process.stdin.flush()
        while not until():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        process.send_signal(number)
        out, error = process.stdout.read(), process.stderr.read()
        process.stdin.close()
    return process.returncode, out, error


@contextmanager
def open_pipe(text):
    """Give standard input with a text in it to which more may come."""
    end, start = os.pipe()
    with os.fdopen(end, "r") as pipe:
        try:
            os.write(start, text.encode())
            yield pipe
        finally:
            os.close(start)


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_a_pipe_that_never_ends(folder, run, monkeypatch):
    """Rows are learnt as they arrive, an interrupt ends the fit with a model, and the next fit resumes."""
    header, *rows = (folder / "data.csv").read_text().splitlines(keepends=True)
    options = "--checkpoint", "checkpoint", "--every-rows", "20"

    def learnt(n_rows):
        found = CheckpointFolder("checkpoint", None, None).latest()
        return found is not None and found.n_rows == n_rows

    code, out, error = follow(header + "".join(rows[:100]), signal.SIGINT, *options, until=lambda: learnt(100))
    assert error == "plstream: interrupted; the same command resumes from the checkpoint in checkpoint, with --force.\n"
    assert code == 0
    assert out.startswith("model.plstream: ")
    assert load("model.plstream").n_samples_seen_ == 100
    # It begins again: rows that were learnt are skipped. What is less than a block is learnt when nothing comes.
    learn = IncrementalPLS.partial_fit

    def terminated_after_165(model, *arguments, **more):
        learn(model, *arguments, **more)
        if model.n_samples_seen_ == 165:
            signal.raise_signal(signal.SIGTERM)
        return model

    with open_pipe(header + "".join(rows[:165])) as pipe, monkeypatch.context() as context:
        context.setattr(IncrementalPLS, "partial_fit", terminated_after_165)
        context.setattr(sys, "stdin", pipe)
        result = run("fit", "-", "--format", "csv", "--target", "y", "--exclude", "kind", *options, "--force")
    assert result.code == 0
    assert load("model.plstream").n_samples_seen_ == 165
    # It resumes: all rows are new.
    (folder / "rest.csv").write_text(header + "".join(rows[165:]))
    line = f"cat rest.csv | plstream fit - --format csv -t y --exclude kind {' '.join(options)} --force"
    result = in_shell(line, folder)
    assert (result.returncode, result.stderr) == (0, "")
    assert not [*Path("checkpoint").iterdir()]
    expected = IncrementalPLS(solver="gram").fit(open_source("data.csv", target="y", exclude=["kind"]))
    model = load("model.plstream")
    assert model.n_samples_seen_ == len(rows)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_interrupt_before_there_are_rows(folder):
    header = (folder / "data.csv").read_text().splitlines(keepends=True)[0]
    # More than a pipe holds: when all is written, it is being read.
    code, out, error = follow(header + "\n" * 500_000, signal.SIGTERM, until=lambda: True)
    assert (code, out, error) == (1, "", "plstream: interrupted; nothing was written.\n")
    assert sorted(path.name for path in folder.iterdir()) == ["X.npy", "data.csv", "labels.npy", "y.npy"]


def test_interrupt_of_a_process(folder, refused, monkeypatch):
    monkeypatch.setattr("plstream.files.fit_source", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    assert "interrupted" in refused("fit", "X.npy", "-t", "y.npy", code=1)
    assert not (folder / "model.plstream").exists()


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("options", [[], ["--checkpoint", "checkpoint"]])
def test_ignored_signals_stay_ignored(folder, done, monkeypatch, number, options):
    """As under nohup, and in a shell that starts jobs in the background."""
    fit_source, reached = plstream.files.fit_source, []

    def signalled(*arguments, **more):
        signal.raise_signal(number)
        reached.append(more["stop"] is None or not more["stop"]())
        return fit_source(*arguments, **more)

    monkeypatch.setattr("plstream.files.fit_source", signalled)
    before = signal.signal(number, signal.SIG_IGN)
    try:
        done("fit", "X.npy", "-t", "y.npy", *options)
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)
    assert reached == [True]
    assert (folder / "model.plstream").exists()


def test_guide_as_a_new_user(tmp_path, monkeypatch, done):
    """The session in the guide, in an empty folder."""
    text = GUIDE.read_text(encoding="utf-8").split("## A first session")[1].split("```console\n")[1].split("```")[0]
    commands = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
    assert len(commands) >= 4
    monkeypatch.chdir(tmp_path)
    written = ""
    for program, *arguments in map(shlex.split, commands):
        if program == "plstream":
            written += done(*arguments)
        else:
            subprocess.run([sys.executable, *arguments], check=True)  # noqa: S603
    assert written.splitlines() == [line for line in text.splitlines() if not line.startswith("$ ")]
    assert np.isfinite(load(tmp_path / "model.plstream").coef_).all()
