"""Figures show the numbers of the results, without overlaps, and are reproducible byte for byte."""

import copy
import json
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plstream.experiments.drawing import STYLES, WIDTH, spread, style
from plstream.experiments.inference import exponent, interval
from plstream.experiments.outputs import figures_of
from plstream.experiments.paper import experiments
from plstream.experiments.paper.accuracy import reported
from plstream.experiments.paper.selection import REPORTED
from plstream.experiments.paper.timing import ticks_between
from plstream.plots.palette import CLASSES, FAINT, INK

from ..report.test_report import contrast, luminance

matplotlib = pytest.importorskip("matplotlib", reason="figures need plstream[plot]")


@pytest.fixture(scope="module")
def figures(results):
    return {one.name: one for one in figures_of(results)}


def cells_of(results, task, experiment, method):
    cells = results["tasks"][task]["experiments"][experiment]["cells"]
    return [cell for cell in cells if cell["method"] == method]


def lines_in(axes, method):
    """Return x and y of the lines of a method."""
    look = STYLES[method]
    found = [line for line in axes.lines if (line.get_color(), line.get_marker()) == (look.colour, look.marker)]
    # The last one is beside the name, where there are names.
    return [np.array(line.get_xydata()).T for line in found if line.get_transform() == axes.transData]


def texts_of(figure):
    """Return the texts that can be seen."""
    hidden = set()
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        ticks = zip(axis.get_majorticklabels(), axis.get_majorticklocs(), strict=True)
        hidden |= {label for label, place in ticks if not low <= place <= high}
        hidden |= {label for tick in axis.get_minor_ticks() for label in (tick.label1, tick.label2)}
    texts = figure.findobj(matplotlib.text.Text)
    return [text for text in texts if text.get_visible() and text.get_text() and text not in hidden]


def test_every_experiment_on_every_task_has_one(figures):
    assert [*figures] == [
        *(f"{name}-small{n}" for name in ("accuracy", "components", "higher-order") for n in (2, 4)),
        *("time-small2", "time-growth-small2", "time-small4"),
        *(f"{name}-small{n}" for name in ("streaming", "selection", "projection") for n in (2, 4)),
    ]
    assert all(len(one.description) > 60 for one in figures.values())


def test_accuracies_and_intervals(figures, results):
    (axes,) = figures["accuracy-small2"].figure.axes
    texts = [text.get_text() for text in axes.texts]
    for method in ("ccipca", "cipls", "pls"):
        values = [100 * cell["accuracy"] for cell in cells_of(results, "small2", "accuracy", method)]
        mean, half_width = interval(values)
        ((x, y),) = lines_in(axes, method)
        assert x == pytest.approx([mean])
        assert f"{mean:.2f}" in texts
        bars = [line.get_xdata() for line in axes.lines if line.get_color() == STYLES[method].colour]
        expected = [max(0, mean - half_width), min(100, mean + half_width)]
        assert any(len(bar) == 2 and bar == pytest.approx(expected) for bar in bars)
        label = axes.get_yticklabels()[int(y[0])].get_text()
        assert label == {"ccipca": "CCIPCA", "cipls": "CIPLS (normalized)", "pls": "PLS"}[method]


def test_reported_accuracies_are_drawn_for_data_sets_of_the_paper(figures):
    def marks(name):
        (axes,) = figures[name].figure.axes
        return sorted(
            line.get_xdata()[0]
            for line in axes.lines
            if line.get_marker() == "D" and line.get_xdata().size and line.get_color() == FAINT
        )

    theirs = [reported(method, "LFW") for method in experiments()["accuracy"].methods if method != "pls-svd"]
    assert marks("accuracy-small2") == sorted(one[0] for one in theirs if one)
    assert marks("accuracy-small4") == []
    assert len(figures["selection-small2"].figure.axes) == 2
    assert len(figures["selection-small4"].figure.axes) == 1
    # The paper's figures have the names and the styles of the variants that it may have run, not of our own.
    panel = figures["selection-small2"].figure.axes[1]
    for variant, method in (("ilfs-a", "ilfs"), ("cipls-paper-vip", "cipls-vip")):
        (theirs,) = lines_in(panel, variant)
        assert theirs.tolist() == [[10, 15, 20, 50], [*REPORTED["LFW"][method]]]
        assert lines_in(panel, method) == []
    assert not {"ILFS", "CIPLS + VIP"} & {text.get_text().strip() for text in panel.texts}


def test_lines_over_components_blocks_and_shares(figures, results):
    def means(task, experiment, method):
        rows = [cell["accuracy"] for cell in cells_of(results, task, experiment, method)]
        return 100 * np.mean(np.array(rows, dtype=float), axis=0)

    (axes,) = figures["components-small4"].figure.axes
    ((x, y),) = lines_in(axes, "cipls")
    # A model for each of four classes: four scores per component.
    assert x.tolist() == [4, 8, 12]
    assert y == pytest.approx(means("small4", "components", "cipls"))
    ((x, _),) = lines_in(axes, "pls")
    assert x.tolist() == [1, 2, 3]
    assert (axes.get_xlabel(), axes.get_xscale()) == ("Scores", "log")
    # With two classes it has one component, and null in the file for more.
    ((x, _),) = lines_in(figures["components-small2"].figure.axes[0], "sgdpls")
    assert x.tolist() == [1]
    ((x, y),) = lines_in(figures["streaming-small4"].figure.axes[0], "ipls")
    assert x.tolist() == cells_of(results, "small4", "streaming", "ipls")[0]["n_seen"]
    assert y == pytest.approx(means("small4", "streaming", "ipls"))
    ((x, y),) = lines_in(figures["selection-small4"].figure.axes[0], "ilfs")
    cells = cells_of(results, "small4", "selection", "ilfs")
    assert x == pytest.approx([100 * share for share in results["settings"]["shares"]])
    assert y[0] == pytest.approx(100 * np.mean([cell["accuracy"] for cell in cells if cell["share"] == 0.1]))


def test_higher_order(figures, results):
    (axes,) = figures["higher-order-small4"].figure.axes
    cells = cells_of(results, "small4", "higher-order", "cipls")
    shown = {line.get_xdata()[0] for line in axes.lines if line.get_color() == STYLES["cipls"].colour}
    for kind in ("accuracy", "accuracy_all", "accuracy_without_first", "accuracy_residual"):
        assert any(np.isclose(100 * np.mean([cell[kind] for cell in cells]), value) for value in shown)


def test_times_and_slopes(figures, results):
    (axes,) = figures["time-small4"].figure.axes
    ((x, _),) = lines_in(axes, "ipls")
    assert x == pytest.approx([np.median([cell["seconds"] for cell in cells_of(results, "small4", "time", "ipls")])])
    assert axes.get_xscale() == "log"
    panels = figures["time-growth-small2"].figure.axes
    growth = results["tasks"]["small2"]["experiments"]["time"]["growth"]
    for axes, varied in zip(panels, "nmc", strict=True):
        mine = [cell for cell in growth if (cell["method"], cell["varied"]) == ("ccipca", varied)]
        slope = exponent([cell["value"] for cell in mine], [cell["seconds"] for cell in mine])
        assert f"CCIPCA {slope:.2f}" in [text.get_text() for text in axes.texts]


def test_points_of_a_projection(figures, results):
    figure, cells = figures["projection-small4"].figure, cells_of(results, "small4", "projection", "cipls")
    (axes,) = [axes for axes in figure.axes if axes.get_title(loc="left") == "CIPLS (normalized)"]
    scores, labels = np.array(cells[0]["scores"]), np.array(cells[0]["labels"])
    for label, line in enumerate(axes.lines):
        assert line.get_xydata() == pytest.approx(scores[labels == label])
        assert line.get_color() == CLASSES[label]
    assert "has one component" in [text.get_text() for text in texts_of(figures["projection-small2"].figure)]


def check_texts(one):
    """Check that texts are inside of the figure, and none on top of another."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure, name = one.figure, one.name
    with style():
        FigureCanvasAgg(figure).draw()
        boxes = [(text.get_text(), text.get_window_extent()) for text in texts_of(figure)]
    for text, box in boxes:
        assert box.x0 >= -1, (name, text)
        assert box.y0 >= -1, (name, text)
        assert box.x1 <= figure.bbox.x1 + 1, (name, text)
        assert box.y1 <= figure.bbox.y1 + 1, (name, text)
    for (first, a), (second, b) in combinations(boxes, 2):
        width, height = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        # Boxes are as high as the largest letters, and may touch.
        assert width < 1 or height < 0.3 * min(a.height, b.height), (name, first, second)


def test_texts_are_inside_and_apart(figures):
    for one in figures.values():
        check_texts(one)


@pytest.mark.parametrize("seed", range(8))
def test_texts_are_inside_and_apart_whatever_the_times(results, seed):
    random, slow = np.random.default_rng(seed), copy.deepcopy(results)
    factors = {method: 10 ** random.uniform(-2, 3, 1 + seed % 2).prod() for method in STYLES}
    timed = slow["tasks"]["small2"]["experiments"]["time"]
    for cell in timed["cells"] + timed["growth"]:
        cell["seconds"] *= factors[cell["method"] if seed % 4 else "pls"] * random.uniform(0.5, 1.5)
    for one in figures_of({**slow, "tasks": {"one": slow["tasks"]["small2"]}}, "time"):
        check_texts(one)
    # Methods that take similar times.
    fastest = 10 ** random.uniform(-6, 1)
    for cell in timed["cells"]:
        cell["seconds"] = fastest * random.uniform(1, 1 + 0.1 * 2**seed)
    for one in figures_of({**slow, "tasks": {"one": slow["tasks"]["small2"]}}, "time"):
        check_texts(one)


@given(st.floats(-9, 4), st.floats(0.005, 9), st.integers(4, 6))
def test_ticks_of_times(power, decades, most):
    low, high = 10.0**power, 10.0 ** (power + decades)
    ticks = np.array(ticks_between(low, high, most))
    assert 1 <= len(ticks) <= most
    assert low <= ticks.min() <= ticks.max() <= high
    assert (np.diff(np.log(ticks)) >= np.log(high / low) / (most + 1)).all()
    assert decades < 0.8 or len(ticks) > 1
    # Three digits distinguish them.
    assert len({f"{tick:.3g}" for tick in ticks}) == len(ticks)


def test_ticks_of_usual_times():
    assert ticks_between(0.9e-4, 3.1e-3, 4) == pytest.approx([1e-4, 3e-4, 1e-3, 3e-3])
    assert ticks_between(1.9e-4, 2.7e-4, 4) == pytest.approx([2e-4, 2.2e-4, 2.4e-4, 2.6e-4])
    assert ticks_between(0.9e-6, 1.1, 4) == pytest.approx([1e-6, 1e-4, 1e-2, 1])


def test_files_are_the_same_again_whatever_is_set_elsewhere(figures, results):
    first = figures["streaming-small2"]
    with matplotlib.rc_context(
        {"font.size": 20, "svg.hashsalt": None, "svg.fonttype": "path", "axes.facecolor": "red"}
    ):
        again = next(figures_of(json.loads(json.dumps(results)), "streaming"))
        assert again.as_bytes("svg") == first.as_bytes("svg")
        assert again.as_bytes("png") == first.as_bytes("png")
    svg = first.as_bytes("svg").decode()
    assert "<dc:date>" not in svg
    assert ">IncrementalPLS</text>" in svg
    assert f'width="{72 * WIDTH:g}pt"' in svg
    assert first.as_bytes("png").startswith(b"\x89PNG")


def test_one_split_and_no_cells(results):
    few = copy.deepcopy(results)
    for experiment in few["tasks"]["small2"]["experiments"].values():
        experiment["cells"] = [cell for cell in experiment["cells"] if cell.get("split", cell.get("run", 0)) == 0]
    for experiment in few["tasks"]["small4"]["experiments"].values():
        experiment["cells"] = []
    figures = [*figures_of(few)]
    assert {one.task for one in figures} == {"small2"}
    assert "one split, and so no confidence interval" in figures[0].reading
    for one in figures:
        assert one.as_bytes("svg")


def test_a_block_without_accuracy_is_a_gap(results):
    gap = copy.deepcopy(results)
    for cell in gap["tasks"]["small2"]["experiments"]["streaming"]["cells"]:
        cell["accuracy"][0] = None
    one = next(figures_of(gap, "streaming"))
    ((x, _),) = lines_in(one.figure.axes[0], "cipls")
    assert len(x) == 3


def test_a_few_low_points_do_not_hide_the_others(results):
    low = copy.deepcopy(results)
    for cell in low["tasks"]["small4"]["experiments"]["streaming"]["cells"]:
        cell["accuracy"] = [0.1 if cell["method"] == "ipls" and i == 0 else 0.9 + 0.01 * i for i in range(4)]
    one = [*figures_of(low, "streaming")][1]
    assert 70 < one.figure.axes[0].get_ylim()[0] < 90
    assert one.reading.endswith("Lowest points below the axis: IPLS (10.00 %).")
    for cell in low["tasks"]["small4"]["experiments"]["streaming"]["cells"]:
        cell["accuracy"][0] = 0.1
    assert "below the axis" not in [*figures_of(low, "streaming")][1].reading


def test_names_of_files_are_safe_and_different(results):
    tasks = {"../../etc/pass<wd>": results["tasks"]["small2"], "..-..-etc-pass(wd)": results["tasks"]["small2"]}
    names = [one.name for one in figures_of({**results, "tasks": tasks}, "projection")]
    assert names == ["projection-etc-pass-wd", "projection-etc-pass-wd-2"]


def test_labels_are_spread():
    random = np.random.default_rng(0)
    for n in (0, 1, 2, 8):
        wanted = np.sort(random.uniform(-0.2, 1.2, n))
        places = np.array(spread(wanted, 0.1, 0, 1))
        assert len(places) == n
        assert np.all(np.diff(places) >= 0.1 - 1e-12)
        assert np.all((places >= -1e-12) & (places <= 1 + 1e-12))
    assert spread([0.2, 0.5], 0.1, 0, 1) == pytest.approx([0.2, 0.5])
    # More than there is room for.
    assert spread([0.0] * 5, 0.5, 0, 1) == pytest.approx([-0.5, 0, 0.5, 1, 1.5])


def test_every_method_has_its_own_style():
    for experiment in experiments().values():
        looks = [(STYLES[method].colour, STYLES[method].marker) for method in experiment.methods]
        assert len(looks) == len(set(looks))


# What is left of linear red, green and blue without the receptors for red, or for green (Machado et al., 2009).
_EYES = {
    "all": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}
_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colour, eyes):
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    xyz = _XYZ @ np.clip(np.asarray(eyes) @ linear, 0, 1) / (0.9505, 1, 1.089)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eyes", _EYES)
def test_colours_are_distinguishable(eyes):
    colours = {look.colour for name, look in STYLES.items() if name != "none"}
    assert len(colours) == 11
    for first, second in combinations(sorted(colours), 2):
        assert np.linalg.norm(lab(first, _EYES[eyes]) - lab(second, _EYES[eyes])) > 20, (first, second)
    for colour in colours - {INK}:
        assert contrast(luminance(colour), luminance("#ffffff")) > 2.8
        assert contrast(luminance(colour), luminance("#16191d")) > 2.8
