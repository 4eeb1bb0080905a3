"""Tables: all rows of the paper's tables, its figures next to ours, and three formats."""

import json

import numpy as np
import pytest

from plstream.experiments.claims import p_sentence
from plstream.experiments.inference import exponent, interval
from plstream.experiments.methods import METHODS, SELECTORS, TITLES
from plstream.experiments.outputs import tables_of
from plstream.experiments.paper import accuracy, experiments, higher_order, selection, timing
from plstream.experiments.plan import format_duration
from plstream.experiments.tables import NOTHING, Table, format_number, format_p


def table_of(results, name, number=0):
    return tables_of(results, name)[number]


def row_of(table, method):
    (row,) = [row for row in table.rows if row[0] == TITLES[method]]
    return row


def test_every_method_has_a_row(results):
    for name, experiment in experiments().items():
        for table in tables_of(results, name):
            if "all tasks" in table.title or "Growth" in table.title or "equal number" in table.title:
                continue
            assert [row[0] for row in table.rows] == [TITLES[method] for method in experiment.methods]
            # What was not run says why.
            for row in table.rows:
                was_run = {*row[1:]} != {"-"}
                assert was_run or any(note.startswith(f"{row[0]}: ") for note in table.notes)


def test_accuracy_table(results):
    table, cells = table_of(results, "accuracy"), results["tasks"]["small2"]["experiments"]["accuracy"]["cells"]
    by_method = {
        method: [100 * cell["accuracy"] for cell in cells if cell["method"] == method] for method in ("cipls", "pls")
    }
    mean, half_width = interval(by_method["cipls"])
    row = row_of(table, "cipls")
    assert row[1] == f"{mean:.2f} ± {half_width:.2f}"
    # Of fewer than five splits there is no test.
    assert row[3:7] == ["-"] * 4
    # The paper's figure is next to the variants that it may have run, not to our own.
    assert row[7] == "-"
    assert row_of(table, "cipls-paper")[7] == row_of(table, "cipls-released")[7] == "91.78 [91.08, 92.47]"
    assert any(note.startswith("PLS-SVD: with two classes") for note in table.notes)
    header = table_of(results, "accuracy", 1).header
    assert "Paper, %" not in header
    assert header[2:4] == ["c", "Scores"]


def test_equal_numbers_of_scores(results):
    (table,) = [table for table in tables_of(results, "accuracy") if "equal number" in table.title]
    scores = {row[0]: row[1] for row in table.rows}
    # Four classes: a component of a model for each, or as many components as there can be.
    assert scores["CIPLS (normalized)"] == scores["PLS"] == scores["CCIPCA"] == "4"
    assert scores["SGDPLS"] == scores["PLS-SVD"] == "3"
    cells = results["tasks"]["small4"]["experiments"]["accuracy"]["cells"]
    mine = [cell["accuracy_equal"] for cell in cells if cell["method"] == "cipls"]
    assert row_of(table, "cipls")[2].startswith(f"{100 * np.mean(mine):.2f}")
    # Two classes have as many scores as components.
    assert not any("n_scores" in cell for cell in results["tasks"]["small2"]["experiments"]["accuracy"]["cells"])


def test_methods_not_run_keep_the_figure_of_the_paper(results):
    left_out = json.loads(json.dumps(results))
    found = left_out["tasks"]["small2"]["experiments"]["accuracy"]
    found["cells"] = [cell for cell in found["cells"] if cell["method"] != "pls"]
    found["skipped"]["pls"] = "not run, because it needs about 300 GB of memory"
    row = row_of(table_of(left_out, "accuracy"), "pls")
    assert row[1:-1] == ["-"] * (len(row) - 2)
    assert row[-1] == "92.47 [91.87, 93.05]"


def test_figures_of_the_paper(results):
    rows = [row_of(table_of(results, "accuracy"), _here(method)) for method in accuracy.REPORTED]
    assert [row[-1][:5] for row in rows] == ["89.87", "90.60", "90.30", "91.78", "92.47"]
    averages = next(table for table in tables_of(results, "higher-order") if "all tasks" in table.title)
    assert row_of(averages, "cipls")[-1] == "-"
    assert {method: row_of(averages, _here(method))[-1] for method in higher_order.REPORTED} == {
        "ccipca": "63.48",
        "sgdpls": "58.41",
        "ipls": "50.76",
        "cipls": "83.24",
    }
    assert row_of(table_of(results, "selection"), "inffs-s")[-4:] == ["91.80", "91.62", "91.62", "92.33"]
    growth = next(table for table in tables_of(results, "time") if "Growth" in table.title)
    assert row_of(growth, "ipls")[-1] == "O(nLm + c^2 m)"
    cells = results["tasks"]["small2"]["experiments"]["time"]["growth"]
    for varied, method, column in (("L", "ipls", 4), ("T", "sgdpls-steps", 5)):
        # Of one method each.
        assert {cell["method"] for cell in cells if cell["varied"] == varied} == {method}
        mine = [cell for cell in cells if cell["varied"] == varied]
        slope = exponent([cell["value"] for cell in mine], [cell["seconds"] for cell in mine])
        assert row_of(growth, method)[column] == format_number(slope)
    assert row_of(growth, "sgdpls-steps")[1:5] == [NOTHING] * 4
    assert row_of(growth, "sgdpls-steps")[-1] == "O(Tcm)"
    # Variants have the figures of the method that they are of.
    assert row_of(table_of(results, "accuracy"), "ipls-released")[-1][:5] == "90.30"
    of_selection = table_of(results, "selection")
    for variant, method in (("ilfs-a", "ilfs"), ("cipls-paper-vip", "cipls-vip")):
        assert row_of(of_selection, variant)[-4:] == [f"{x:.2f}" for x in selection.REPORTED["LFW"][method]]
        assert row_of(of_selection, method)[-4:] == ["-"] * 4
    assert row_of(of_selection, "random")
    assert {*accuracy.REPORTED, *higher_order.REPORTED, *timing.COMPLEXITY} <= {*METHODS}
    assert all({*rows} <= {*SELECTORS} for rows in selection.REPORTED.values())


def _here(method):
    """Return the name here of a method of the paper."""
    return "cipls-paper" if method == "cipls" else method


def test_differences_that_the_text_of_the_paper_states():
    def of(method, data_set):
        return accuracy.reported(_here(method), data_set)[0]

    assert of("cipls", "LFW") - of("sgdpls", "LFW") == pytest.approx(1.18)
    assert of("cipls", "YTF") - of("ipls", "YTF") == pytest.approx(1.88)
    assert of("cipls", "ImageNet 224x224") - of("ipls", "ImageNet 224x224") == pytest.approx(1.35)
    assert of("pls", "LFW") - of("cipls", "LFW") == pytest.approx(0.69)
    assert higher_order.REPORTED["cipls"] - higher_order.REPORTED["ipls"] == pytest.approx(32.48)
    lfw = {method: np.array(row) for method, row in selection.REPORTED["LFW"].items()}
    for method, difference in {"inffs": 0.15, "ilfs": 0.25, "inffs-s": 0.05, "inffs-u": 0.26, "pls-vip": 0.26}.items():
        # Means to two digits, which the paper truncates.
        assert (lfw[method] - lfw["cipls-vip"]).mean() == pytest.approx(difference, abs=0.011)


def test_components_outside_the_range_are_refused(results):
    row = row_of(table_of(results, "components"), "sgdpls")
    assert row[1] != "-"
    assert row[2:] == ["-", "-"]


def test_numbers_as_text():
    assert [format_p(p) for p in (0.0001, 0.25, np.nan)] == ["< 0.001", "0.250", "-"]
    assert [p_sentence(p) for p in (0.0001, 0.25)] == ["p < 0.001", "p = 0.250"]
    assert [format_duration(seconds) for seconds in (0.4, 75, 600, 9000)] == ["1 s", "75 s", "10 min", "2.5 h"]
    times = [timing.format_time(seconds) for seconds in (2.5e-6, 0.0123, 0.9996, 9000)]
    assert times == ["2.5 µs", "12.3 ms", "1 s", "2.5 h"]


def test_as_text_markdown_and_latex():
    table = Table("Errors in %", ["Method", "a_b"], [["one", "1.0 ± 0.1"], ["other | two", "-"]], ["Only 5 %."])
    assert table.as_text() == (
        "Errors in %\nMethod             a_b\n----------------------\none          1.0 ± 0.1\nother | two          -\n"
        "Only 5 %.\n"
    )
    assert "| other \\| two | - |" in table.as_markdown()
    latex = table.as_latex()
    assert r"one & 1.0 $\pm$ 0.1 \\" in latex
    assert r"a\_b" in latex
    assert r"Errors in \%. Only 5 \%." in latex
    assert latex.count("%") == latex.count(r"\%")
