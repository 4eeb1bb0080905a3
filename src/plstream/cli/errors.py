"""Errors: one plain line each, and an exit code."""

from __future__ import annotations

import errno
import re
import sys

from .._core.urls import redacted

FAILED = 1
WRONG = 2

# Of calls and data that are wrong. Everything else that a system refuses is work that failed.
_WRONG_ERRORS = (
    FileExistsError,
    FileNotFoundError,
    ImportError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
    TypeError,
    ValueError,
)
_WRONG_NUMBERS = {None, errno.EINVAL, errno.ELOOP, errno.ENAMETOOLONG, errno.EROFS}
# Parameters that messages of the library name, and that are options here.
_PARAMETER = re.compile(
    r"\b(batch_size|classes|columns|dtype|exclude|format|layer|mean|memory|model|overwrite|pool|resample|size|skip_bad|"
    r"sketch_size|std|target|threads|weights)=(?=[\s.,:]|$)"
)
# Those that have another name here.
_RENAMED = {"overwrite": "force"}
# What else messages say that is for those who program.
_PROGRAMMING = {
    " in the first call of partial_fit": "",
    " in the first call": "",
    " of the first call": "",
    ", or call add_class with it": "",
    "use IncrementalPLSClassifier": "use incremental-pls-classifier",
}


def tell(line: str) -> None:
    """Write a line to standard error, without passwords of URLs."""
    # A program without a console has none.
    if sys.stderr is not None:
        sys.stderr.write(redacted(line) + "\n")
        sys.stderr.flush()


def as_options(message: str) -> str:
    """Return a message of the library in terms of the command line, in one line."""
    plain = _PARAMETER.sub(lambda match: "--" + _RENAMED.get(match[1], match[1]).replace("_", "-"), message)
    for words, others in _PROGRAMMING.items():
        plain = plain.replace(words, others)
    return " ".join("".join(character if character.isprintable() else " " for character in plain).split())


def sentence(error: Exception) -> str:
    """Return what is wrong."""
    if hasattr(error, "format_message"):
        context = getattr(error, "ctx", None)
        hint = f" See {context.command_path} --help." if context is not None else ""
        return as_options(str(error.format_message())).rstrip(".") + "." + hint
    if isinstance(error, OSError) and error.errno is not None:
        name = f"{error.filename}: " if error.filename is not None else ""
        return as_options(f"{name}{error.strerror}.")
    if isinstance(error, MemoryError) and not str(error):
        return "There is not enough memory: see --memory, or use less data."
    known = isinstance(error, (*_WRONG_ERRORS, OSError, MemoryError))
    return as_options(str(error) if known else f"{type(error).__name__}: {error}")


def exit_code(error: Exception) -> int:
    """Return 2 if the call or the data is wrong, else 1."""
    if isinstance(error, _WRONG_ERRORS) or hasattr(error, "format_message"):
        return WRONG
    return WRONG if isinstance(error, OSError) and error.errno in _WRONG_NUMBERS else FAILED
