"""The guides on plots and monitoring: their code runs, and every plot exists."""

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
def test_the_gallery_can_be_drawn():
    pytest.importorskip("pandas", reason="the gallery has names of features")
    pytest.importorskip("plotly", reason="a walk-through ends with a report")
    matplotlib = pytest.importorskip("matplotlib", reason="plots need plstream[plot]")
    matplotlib.use("Agg")
    script = runpy.run_path(str(DOCS / "draw_plots.py"))
    figures = dict(script["plots"]())
    for file, figure in figures.items():
        figure.canvas.draw()
        assert 5_000 < (DOCS / file).stat().st_size < 60_000
    # What grows with the rows is drawn from measurements, by benchmarks/growth.py.
    there = {path.name for path in (DOCS / "plots").iterdir() if path.stem != "growth"}
    assert {Path(file).name for file in figures} == there


def test_the_guide_on_monitoring_runs():
    names = {}
    for code in re.findall(r"```python\n(.*?)```", (DOCS / "monitoring.md").read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(code, "monitoring.md", "exec"), names)  # noqa: S102
    assert names["checked"].alarm.mean() == pytest.approx(0.02, abs=0.01)
    assert names["monitor"].contributions(names["fault"], "q").argmax() == 7
    assert [i for i, _ in names["tracker"].alarms_] == [50]
