"""Passwords in URLs given as arguments appear neither in outputs nor with ``--debug``."""

import pytest

from ..core.test_urls import SECRET, URLS, no_network

__all__ = ["no_network"]
pytestmark = pytest.mark.usefixtures("folder")
COMMANDS = {
    "fit": ("fit", "URL", "--target", "y"),
    "fit, target": ("fit", "data.csv", "--target", "URL"),
    "fit, output": ("fit", "data.csv", "--target", "y", "--exclude", "kind", "-o", "URL"),
    "fit, checkpoint": ("fit", "data.csv", "--target", "y", "--exclude", "kind", "--checkpoint", "URL"),
    "fit, cluster": ("fit", "data.csv", "--target", "y", "--exclude", "kind", "--cluster", "URL"),
    "fit, method": ("fit", "data.csv", "--target", "y", "--method", "URL"),
    "fit, too much": ("fit", "data.csv", "URL"),
    "fit, option": ("fit", "data.csv", "--URL"),
    "transform": ("transform", "URL", "data.csv"),
    "predict": ("predict", "URL", "data.csv"),
    "evaluate": ("evaluate", "URL", "data.csv"),
    "select": ("select", "URL", "--target", "y"),
    "info": ("info", "URL"),
    "report": ("report", "URL"),
    "export": ("export", "URL"),
    "features": ("features", "URL", "--weights", "data.csv"),
    "features, weights": ("features", "data.csv", "--weights", "URL"),
    "features, model": ("features", "data.csv", "--model", "URL"),
    "features, output": ("features", "data.csv", "--weights", "data.csv", "-o", "URL"),
    "reproduce": ("reproduce", "--data", "URL"),
    "reproduce, output": ("reproduce", "-o", "URL"),
    "command": ("URL",),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_shows_it(command, run, folder):
    before = {*folder.iterdir()}
    for number, url in enumerate(URLS):
        for debug in ((), ("--debug",))[: 1 + (number % 4 == 0)]:
            result = run(*(word.replace("URL", url) for word in COMMANDS[command]), *debug)
            # A list of targets has no line breaks.
            assert result.code == (1 if command == "fit, target" and "\n" in url else 2), result.err
            assert SECRET not in result.out + result.err
            assert result.err.count("\n") == 1 or debug
    assert {*folder.iterdir()} == before


def test_causes_that_quote_a_part(run, monkeypatch):
    """As a library does that has taken a URL apart."""

    def fail(*_, **__):
        cause = OSError(f"invalid port {SECRET!r}")
        cause.add_note(f"while {SECRET} was sent")
        raise TimeoutError("No answer.") from cause

    monkeypatch.setattr("plstream.cli.output.require_inputs", lambda *_: None)
    monkeypatch.setattr("plstream.data.open_source", fail)
    result = run("fit", f"https://user:{SECRET}@host/x.csv", "--target", "y", "--debug")
    assert result.code == 2
    assert "invalid port '***'" in result.err
    assert "while *** was sent" in result.err
    assert "TimeoutError: No answer." in result.err
    assert SECRET not in result.err


def test_scheduler_addresses(refused):
    for address in (f"tcp://user:{SECRET}@host:8786", f"user:{SECRET}@host:8786", f"tls://host?token={SECRET}", "host"):
        message = refused("fit", "data.csv", "--target", "y", "--exclude", "kind", "--cluster", address)
        assert "--cluster is local, local:N for N processes, or the address of a scheduler such as tcp://" in message
