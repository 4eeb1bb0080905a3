"""``plstream reproduce`` on small tasks."""

import json
from pathlib import Path

import pytest

from plstream.experiments import datasets, runner, settings
from plstream.experiments.paper import timing

from ..experiments.conftest import SMALL, make_task


@pytest.fixture(autouse=True)
def _small(monkeypatch, tmp_path):
    """Data sets, settings and sizes that take no time."""
    tasks = {
        "digits": [make_task(2, kind="verification"), make_task(4)],
        "lfw": [make_task(2, name="lfw", paper="LFW")],
    }

    def load_tasks(data, **_):
        if data not in tasks:
            raise ValueError(f"There is no data set {data!r}.")
        return tasks[data]

    monkeypatch.setattr(datasets, "load_tasks", load_tasks)
    monkeypatch.setattr(settings, "Settings", lambda: SMALL)
    monkeypatch.setattr(timing, "GROWTH", {"n": (20, 40), "m": (8, 16), "c": (1, 2)})
    monkeypatch.setattr(timing, "_USUAL", {"n": 40, "m": 8, "c": 2})
    monkeypatch.chdir(tmp_path)


def test_all_experiments(done, tmp_path):
    text = done("reproduce", "--jobs", "1", "--folds", "2", "--methods", "cipls,pls,pls-vip", "-o", "out")
    assert "accuracy, small2: 2 methods, 2 splits; about 1 s" in text
    for title in ("Accuracy", "Higher-order components: all tasks", "Growth", "Feature selection", "first two scores"):
        assert title in text
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names - {"figures"} == {"results.json", "report.html", "tables.md", "tables.tex"}
    # Without matplotlib it says so.
    assert ("figures" in names) == ("No figures: " not in text)
    data = json.loads((tmp_path / "out" / "results.json").read_text())
    typed = "plstream reproduce all --methods cipls,pls,pls-vip --folds 2 --seed 0 --output out"
    assert data["commands"] == [typed]
    assert typed in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert len(data["tasks"]["small4"]["experiments"]) == 7


def test_data_may_be_repeated_and_results_are_added(done):
    done("reproduce", "selection", "--methods", "pls-vip", "--jobs", "1")
    text = done("reproduce", "selection", "--data", "lfw", "--data", "lfw", "--methods", "none", "--jobs", "1")
    assert "Paper, 10 %" in text
    with open("reproduced/results.json") as file:  # noqa: PTH123
        data = json.load(file)
    assert [*data["tasks"]] == ["small2", "small4", "lfw"]
    assert len(data["commands"]) == 2


def test_refusals(refused, done):
    assert "--methods nothing is not one of ccipca, sgdpls" in refused("reproduce", "--methods", "nothing")
    assert "There is no data set 'nothing'" in refused("reproduce", "--data", "nothing")
    refused("reproduce", "nothing")
    done("reproduce", "projection", "--methods", "pls", "--jobs", "1")
    line = refused("reproduce", "projection", "--methods", "pls", "--seed", "1", "--jobs", "1")
    assert line == (
        "plstream: reproduced/results.json has results of other seed: name another folder, or pass --force.\n"
    )
    done("reproduce", "projection", "--methods", "pls", "--seed", "1", "--jobs", "1", "--force")
    assert "is a file: name a folder" in refused("reproduce", "-o", "reproduced/results.json")


def test_budget(done):
    text = done("reproduce", "accuracy", "--methods", "pls", "--jobs", "1", "--budget", "0.00001")
    assert "only 1 of 3 splits, because there are 1e-05 min for all" in text
    assert "pls: not run, because it would take about" in text


def test_an_interrupt_says_how_to_continue(run, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(runner, "compute", interrupted)
        result = run("reproduce", "accuracy", "--methods", "pls", "--jobs", "1")
    assert (result.code, result.err) == (
        1,
        "plstream: interrupted; run the same command to resume from reproduced/results.json.\n",
    )
    assert run("reproduce", "accuracy", "--methods", "pls", "--jobs", "1").code == 0


def test_numbers_of_the_experiments_can_be_set(done):
    numbers = {"components": 2, "directions": 7, "steps": 3, "epochs": 4}
    options = [word for name, value in numbers.items() for word in (f"--{name}", value)]
    done("reproduce", "accuracy", "--methods", "ipls", "--jobs", "1", "--classifier", "perceptron", *options)
    data = json.loads(Path("reproduced/results.json").read_text())
    found = {**data["settings"], "directions": data["settings"]["ipls_directions"][0]}
    assert {name: found[name] for name in numbers} == numbers
    assert found["classifier"] == "perceptron"
    assert "--classifier perceptron --epochs 4" in data["commands"][0]
