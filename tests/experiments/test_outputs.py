"""Outputs of results: tables, figures and the report."""

import copy
import re
import sys

import pytest

from plstream.experiments.outputs import figures_of, findings_of, page_of, tables_of, write_outputs
from plstream.report.html import escape

from ..browser import check_page, check_widths
from ..report.test_report import HOSTILE


@pytest.fixture(scope="module")
def written(results, tmp_path_factory):
    pytest.importorskip("matplotlib", reason="figures need plstream[plot]")
    folder = tmp_path_factory.mktemp("written")
    return folder, write_outputs(results, folder)


def read(results):
    """Return the page of results without figures, as text."""
    return " ".join(check_page(page_of(results).html()).texts)


def test_files(written, results):
    folder, (files, missing) = written
    assert missing == ""
    assert {path for path in folder.rglob("*") if path.is_file()} == {*files}
    names = [f"{figure.name}.{kind}" for figure in figures_of(results) for kind in ("png", "svg")]
    assert [file.name for file in files] == ["report.html", "tables.md", "tables.tex", *names]
    markdown, latex = ((folder / name).read_text(encoding="utf-8") for name in ("tables.md", "tables.tex"))
    for table in tables_of(results):
        assert f"## {table.title}" in markdown
    assert latex.count(r"\begin{table}") == len(tables_of(results))
    assert "The paper's LFW." in markdown


def test_the_page_has_all_of_it(written, results, tmp_path):
    html = (written[0] / "report.html").read_text(encoding="utf-8")
    page = check_page(html)
    assert len(html) < 3_000_000
    assert page.tags.count("svg") == len([*figures_of(results)])
    text = " ".join(page.texts)
    # Three sentences and a figure come first, and only then tables.
    assert len(page_of(results).lead) == 3
    assert html.index("<svg") < html.index("<table")
    for table in tables_of(results):
        for row in table.rows:
            assert all(entry in text for entry in row)
        assert all(note in text for note in table.notes)
    for finding in findings_of(results):
        assert finding.text in text
    # By which margins the claims are judged.
    assert "within one point, and as equally fast if it is within a tenth of the time." in text
    check_widths(html, tmp_path)


def test_without_matplotlib(results, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    files, missing = write_outputs(results, tmp_path)
    assert [file.name for file in files] == ["report.html", "tables.md", "tables.tex"]
    assert missing == "Drawing figures requires the package matplotlib: pip install 'plstream[plot]'."
    assert escape(missing) in files[0].read_text(encoding="utf-8")


def test_names_are_text(results):
    hostile = copy.deepcopy(results)
    hostile["tasks"] = {HOSTILE: hostile["tasks"]["small2"] | {"title": HOSTILE, "note": HOSTILE, "paper": HOSTILE}}
    hostile["commands"] = [HOSTILE]
    hostile["tasks"][HOSTILE]["experiments"]["accuracy"]["skipped"]["pls-svd"] = HOSTILE
    assert read(hostile).count(HOSTILE) > 20


def test_the_first_words_are_those_of_the_results(results):
    told = copy.deepcopy(results)
    accuracies = {"cipls": [0.8, 0.9], "incremental-pls": [0.7, 0.7], "pls": [0.7, 0.7]}
    told["tasks"]["small2"]["experiments"]["accuracy"]["cells"] = [
        {"method": method, "split": split, "accuracy": value, "n_components": 1}
        for method, values in accuracies.items()
        for split, value in enumerate(values)
    ]
    text = read(told)
    assert "2 classes: most accurate of 3 is CIPLS (normalized) with 85.00 ± 63.53 % (2 splits)." in text
    assert "That is 15.00 points above PLS (too few splits for a test)." in text
    assert "IncrementalPLS (one pass) has 70.00 %, in all splits the same as PLS." in text
    assert "2 classes (120 rows, 6 features, 2 classes; the paper's LFW)" in text


def test_the_first_words_compare_equal_numbers_of_scores(results):
    told = copy.deepcopy(results)
    cell = {"split": 0, "n_components": 2, "n_scores": 4}
    told["tasks"]["small4"]["experiments"]["accuracy"]["cells"] = [
        cell | {"method": "cipls", "accuracy": 0.9, "accuracy_equal": 0.6},
        cell | {"method": "pls", "accuracy": 0.7, "accuracy_equal": 0.65},
    ]
    text = read(told)
    assert "CIPLS has 8 scores there, and PLS 2; with 4 scores each, CIPLS has 60.00 %, and PLS 65.00 %." in text
    # With two classes a component is a score.
    assert text.count("scores each") == 1


@pytest.mark.parametrize("name", ["accuracy", "time", "projection"])
def test_experiments_without_cells(results, name):
    few = copy.deepcopy(results)
    del few["tasks"]["small4"]
    few["tasks"]["small2"]["experiments"] = {name: few["tasks"]["small2"]["experiments"][name]}
    assert read(few)
    few["tasks"]["small2"]["experiments"][name] |= {"cells": [], "growth": [], "skipped": {"cipls": "it is late"}}
    assert "it is late" in read(few)
    few["tasks"]["small2"]["experiments"] = {}
    assert "no methods" in read(few)
    assert "Data: none." in read({**few, "tasks": {}})


def test_a_single_check_is_counted_in_the_singular(results):
    one = copy.deepcopy(results)
    del one["tasks"]["small4"]
    experiments = one["tasks"]["small2"]["experiments"]
    one["tasks"]["small2"]["experiments"] = {"projection": experiments["projection"]}
    assert re.search(r"Of 1 check .*, 1 (holds|does not hold)\.$", page_of(one).lead[2])


def test_commands_are_reported(results):
    told = results | {"commands": ["plstream reproduce all --output 'a b'"]}
    assert "plstream reproduce all --output 'a b'" in read(told)
    assert read({key: value for key, value in told.items() if key != "commands"})
