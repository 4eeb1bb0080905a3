"""The application with all commands, which reports errors as one line and an exit code."""

from __future__ import annotations

import logging
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import Any

import typer

import plstream

from .._core.urls import redacted
from . import errors
from .config import defaults_from
from .options import expanded

# Otherwise completion works only for the current shell, and fails without one.
os.environ.setdefault("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
# Exit code of typer after Ctrl-C.
_INTERRUPTED = 130

app = typer.Typer(name="plstream", rich_markup_mode=None, pretty_exceptions_enable=False)
# Each command is a function in the module of the same name.
_COMMANDS = (
    "fit",
    "update",
    "merge",
    "predict",
    "transform",
    "evaluate",
    "monitor",
    "report",
    "select",
    "info",
    "export",
    "features",
    "reproduce",
)
for _name in _COMMANDS:
    _command = expanded(getattr(import_module(f".{_name}", __package__), _name))
    # Given explicitly, because typer would truncate it.
    _short = (getdoc(_command) or "").split("\n\n")[0].replace("\n", " ")
    app.command(short_help=_short, epilog="--config FILE, --verbose and --debug: see plstream --help.")(_command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"plstream {plstream.__version__}")
        raise typer.Exit


@app.callback(epilog="Exit codes: 0 success, 1 the work failed, 2 wrong arguments or data, 3 monitor found alarms.")
def _all(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
    # These three are removed before parsing, and are here only for the help.
    config: str | None = typer.Option(
        None, "--config", metavar="FILE", help="Options in a TOML file. Also after a command."
    ),
    verbose: bool = typer.Option(False, "--verbose", help="Log each read of the data. Also after a command."),
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error. Also after a command."),
) -> None:
    """Partial least squares of files and streams of any size.

    Data is a file (.npy, .npz, .csv, .tsv, .ndjson, .parquet, .arrow, .h5, .zarr), a folder or pattern of such files,
    or - for standard input.

    \b
    plstream fit spectra.csv --target moisture -c 5 -o moisture.plstream
    plstream evaluate moisture.plstream new.csv --target moisture
    plstream predict moisture.plstream new.csv -o predictions.csv
    """


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code; errors are one line on standard error."""
    # Global options may appear anywhere, even after a command.
    debug, verbose = "--debug" in arguments, "--verbose" in arguments
    arguments = [argument for argument in arguments if argument not in {"--debug", "--verbose"}]
    if sys.stdout is None and os.name != "nt":
        # Otherwise the next file would get its descriptor. On Windows, programs without a console have none.
        errors.tell("plstream: Standard output is closed: leave it open, or send it to a file with > FILE.")
        return errors.WRONG
    try:
        with _plain_warnings(), _logged(verbose), errors.terminated_as_interrupted():
            command: Any = typer.main.get_command(app)
            config, arguments = _without_config(arguments)
            defaults = None if config is None else defaults_from(config, command.commands)
            code = command.main(
                arguments or ["--help"], prog_name="plstream", standalone_mode=False, default_map=defaults
            )
            if sys.stdout is not None:
                sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe, as with "| head": report nothing, also when Python flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return errors.FAILED
    except SystemExit as end:
        # Shell completion ends this way.
        return end.code if isinstance(end.code, int) else errors.FAILED
    except Exception as error:  # noqa: BLE001
        line = traceback.format_exc().rstrip() if debug else f"plstream: {errors.sentence(error, _options())}"
        # Libraries may quote parts of a URL in chained exceptions.
        errors.tell(redacted(line, arguments))
        return errors.exit_code(error)
    if code == _INTERRUPTED:
        errors.tell("plstream: interrupted; nothing was written.")
        return errors.FAILED
    return code if isinstance(code, int) else 0


def _without_config(arguments: list[str]) -> tuple[Path | None, list[str]]:
    """Return the file given by --config, if any, and the other arguments."""
    config, others, rest = None, [], iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name != "--config":
            others.append(argument)
            continue
        file = value if equals else next(rest, "")
        if not file or config is not None:
            raise ValueError("--config names one TOML file, such as --config fit.toml.")
        config = Path(file)
    return config, others


@contextmanager
def _logged(verbose: bool) -> Iterator[None]:
    """Write the log of the library to standard error, if requested."""
    if not verbose:
        yield
        return
    logger, handler = logging.getLogger("plstream"), _Lines()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


class _Lines(logging.Handler):
    """Writes log messages to standard error, one per line."""

    def emit(self, record: logging.LogRecord) -> None:
        errors.tell(self.format(record))


@cache
def _options() -> dict[str, str]:
    """Return the options of all commands by the corresponding parameters of the library."""
    commands: Any = typer.main.get_command(app)
    parameters = [parameter for command in commands.commands.values() for parameter in command.params]
    options = [option for parameter in parameters for option in parameter.opts if option.startswith("--")]
    return {option[2:].replace("-", "_"): option for option in options} | {"overwrite": "--force"}


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Format each warning as one line, and show only those for the user."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        errors.tell(f"plstream: warning: {errors.as_options(str(message), _options())}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("once", UserWarning)
        warnings.showwarning = show
        yield
