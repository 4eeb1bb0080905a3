"""The audit of dependencies: a known vulnerability is an error, and a missing network is not."""

import runpy
from importlib.metadata import version
from pathlib import Path

import pytest

AUDIT = runpy.run_path(str(Path(__file__).parents[1] / ".ci" / "audit.py"))


def known(name, number):
    """A database with one vulnerability more than the release that must have some."""
    if (name, number) in {AUDIT["KNOWN"], ("numpy", version("numpy"))}:
        entry = {"id": "CVE-1", "fixed_in": ["99.1"], "withdrawn": None}
        return [entry]
    if name == "scipy":
        raise OSError("404")
    return []


def test_a_known_vulnerability(capsys):
    assert AUDIT["main"](known) == 1
    lines = capsys.readouterr().out.splitlines()
    assert f"numpy {version('numpy')}: CVE-1, fixed in 99.1" in lines
    assert f"scipy {version('scipy')}: not found in the database" in lines


def test_none(capsys):
    assert AUDIT["main"](lambda *release: known(*release) if release == AUDIT["KNOWN"] else []) == 0
    assert "installed releases have no known vulnerability." in capsys.readouterr().out


@pytest.mark.parametrize("answer", [OSError("no network"), ValueError("no JSON"), KeyError("vulnerabilities"), None])
def test_no_database(answer, capsys):
    asked = []

    def look_up(*release):
        asked.append(release)
        if answer is not None:
            raise answer
        return []

    assert AUDIT["main"](look_up) == 0
    assert len(asked) == 1
    assert "cannot be reached: dependencies are not audited" in capsys.readouterr().out
