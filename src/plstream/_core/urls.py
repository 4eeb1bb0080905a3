"""URLs as names: shown without their secrets, and refused where only a path is allowed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

HIDDEN = "***"
# At least two letters, because "C:/" is a path. pathlib reduces two slashes to one.
_SCHEME = r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]{1,30}:/+)"
# A colon and a port number, which is not a password.
_PORT = r":\d{1,5}(?=[/?#,;:.)'\"\]\s]|$)"
# User and password, up to the last "@". Unquoted passwords may contain anything, including slashes and spaces; without
# a password, the only "@" is that before the host.
_USER = re.compile(rf"{_SCHEME}(?!\*\*\*@)(?P<user>[^\s/:]*(?!{_PORT}):[^@]*@(?:[^\s@]*@)*|[^\s/:]*:\S*@|[^\s/?#]*@)")
# Parameters, any of which may be a token or a signature. A "?" alone is part of a pattern. Punctuation after a name
# in a sentence is kept.
_QUERY = re.compile(rf"{_SCHEME}(?P<place>[^\s?#]*)[?#]\S*?=\S*?(?=['\"`)\]>,.;:]*(?:\s|$))")
# A URL, possibly after the name of a cache or archive, as in "simplecache::https://...".
_BEGIN = re.compile(rf"(?:\w+::)*{_SCHEME}")
# Shorter secrets would match unrelated words.
_SHORTEST_SECRET = 4


def redacted(text: str, names: Iterable[str] = ()) -> str:
    """Return a text with users, passwords and parameters of URLs hidden.

    Parameters
    ----------
    text : str
        Any text that will be shown or written to a file.
    names : iterable of str
        Names whose secrets are hidden anywhere in the text, because libraries also quote parts of a URL.

    Examples
    --------
    >>> from plstream._core.urls import redacted
    >>> redacted("There is no file https://me:secret@host/x.csv?sig=abc.")
    'There is no file https://***@host/x.csv?***.'
    >>> redacted("invalid address 'me:secret@host'", ["tcp://me:secret@host"])
    "invalid address 'me:***@host'"
    """
    # The longest first, because one may be part of another.
    for secret in sorted({secret for name in names for secret in _secrets_in(name)}, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return _QUERY.sub(rf"\g<scheme>\g<place>?{HIDDEN}", _USER.sub(rf"\g<scheme>{HIDDEN}@", text))


def shown(name: str | os.PathLike[str]) -> str:
    """Return the name of a file or other data, possibly a URL, as shown in messages."""
    text = os.fspath(name)
    if not is_url(text):
        return text
    # In a sentence, a name ends at a space, and pathlib removes a slash.
    return redacted(re.sub(r":/(?!/)", "://", re.sub(r"\s", "%20", text), count=1))


def local_path(name: str | os.PathLike[str]) -> Path:
    """Return the path of a file or folder; raise ValueError for a URL."""
    if is_url(os.fspath(name)):
        raise ValueError(
            f"{shown(name)} is a URL, but a local path is required here: download the file first, or write to a path "
            "and upload the result."
        )
    return Path(name)


def is_url(name: str) -> bool:
    """Return whether a name is a URL rather than a path."""
    begin = _BEGIN.match(name)
    # A folder may also have such a name.
    return begin is not None and not Path(begin[0]).is_dir()


def _secrets_in(name: str) -> Iterator[str]:
    found = []
    for match in _USER.finditer(name):
        user, _, password = match["user"].removesuffix("@").partition(":")
        found.append(password or user)
    if re.search(_SCHEME, name):
        found += [parameter.partition("=")[2] for parameter in re.split("[?#&]", name)[1:]]
    for secret in found:
        yield from (each for each in (secret, unquote(secret)) if len(each) >= _SHORTEST_SECRET)
