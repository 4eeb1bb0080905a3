"""``--config``: options of commands in a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from .options import quoted

Defaults = dict[str, dict[str, Any]]


def defaults_from(path: Path, commands: Mapping[str, Any]) -> Defaults:
    """Return the options in a file, by command and parameter, as defaults for the parser.

    Options before the first table apply to every command that has them; those of a table, such as ``[fit]``, apply to
    that command, and take precedence. ``commands`` are the parser's commands by name.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}.") from None
    known = {name: _options_of(command) for name, command in commands.items()}
    tables = {key: value for key, value in given.items() if isinstance(value, dict)}
    shared = {key: value for key, value in given.items() if key not in tables}
    _require(shared, {option for options in known.values() for option in options}, path, "option")
    _require(tables, known, path, "command")
    found: Defaults = {}
    for command, options in known.items():
        own = tables.get(command, {})
        _require(own, options, path, f"option of plstream {command}")
        chosen = {key: value for key, value in shared.items() if key in options} | own
        found[command] = {options[key].name: _as_default(key, chosen[key], options[key], path) for key in chosen}
    return found


def _options_of(command: Any) -> dict[str, Any]:
    """Return the parameters of a command by option name, without leading dashes."""
    options = {
        name.removeprefix("--"): parameter
        for parameter in command.params
        for name in parameter.opts
        if name.startswith("--") or parameter.param_type_name == "argument"
    }
    return {name: parameter for name, parameter in options.items() if name != "help"}


def _require(keys: Iterable[str], known: Collection[str], path: Path, what: str) -> None:
    """Raise ValueError for the first key that is not known."""
    for key in keys:
        if key not in known:
            close = get_close_matches(key, list(known), 1)
            hint = f"did you mean {close[0]!r}?" if close else "see plstream --help."
            raise ValueError(f"{path} has {key!r}, which is not a known {what}: {hint}")


def _as_default(key: str, value: Any, option: Any, path: Path) -> Any:
    """Return a TOML value as written on the command line."""
    is_flag = bool(getattr(option, "is_flag", False))
    entries = value if isinstance(value, list) else [value]
    if is_flag != isinstance(value, bool) or any(isinstance(entry, bool | dict | list) for entry in entries) != is_flag:
        kind = "true or false" if is_flag else "a string, a number or a list of these"
        raise ValueError(f"{path} has {value!r} for {key!r}, which must be {kind}.")
    if is_flag:
        return value
    # An entry of a list is one column, even with a comma in its name; a string is written as on the command line.
    texts = [quoted(str(entry)) if isinstance(value, list) else str(entry) for entry in entries]
    return texts if getattr(option, "multiple", False) else ",".join(texts)
