"""The runner: each cell once, results independent of the number of processes, and complete files."""

import json
import re
import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import plstream
from plstream._core.progress import listening
from plstream.experiments import runner
from plstream.experiments.classifiers import linear_svm
from plstream.experiments.methods import Projection
from plstream.experiments.paper import experiments
from plstream.experiments.plan import SVM_BYTES_PER_NUMBER, CostModel, make_plan, planned_seconds, within_budget
from plstream.experiments.results import FORMAT, Results, read
from plstream.experiments.settings import Settings

from .conftest import SMALL, make_task, trial_of

METHODS = ["sgdpls", "cipls", "pls"]
# Their modules are imported here, because some tests replace the clock, and timing would import the replacement.
experiments()


def plan_of(tasks, names=("accuracy", "streaming"), **options):
    chosen = [experiments()[name] for name in names]
    known = {"methods": METHODS, "folds": None, "settings": SMALL, "seed": 0, "jobs": 1}
    return make_plan(tasks, chosen, **(known | options))


def run_in(folder, tasks, parts=None, seed=0, force=False, **options):
    results = Results(folder, seed, SMALL, force=force)
    for task in tasks:
        results.begin(task, force=force)
    runner.run(plan_of(tasks) if parts is None else parts, results, **options)
    return results


def without_times(data):
    if isinstance(data, dict):
        return {key: without_times(value) for key, value in data.items() if key != "seconds"}
    return [without_times(value) for value in data] if isinstance(data, list) else data


@pytest.fixture
def computed(monkeypatch):
    """The cells that are computed."""
    units, compute = [], runner.compute

    def counted(experiment, trial):
        units.append((experiment, trial.task.name, trial.method, trial.split))
        return compute(experiment, trial)

    monkeypatch.setattr(runner, "compute", counted)
    return units


def test_the_estimate_has_one_progress():
    steps = []
    with listening(steps.append):
        plan_of([make_task(2, kind="verification")])
    assert {step.label for step in steps} == {"estimating"}


def test_results_have_the_documented_form(tmp_path):
    task = make_task(2, kind="verification", paper="LFW", note="Made up.")
    run_in(tmp_path, [task])
    data = json.loads((tmp_path / "results.json").read_text())
    assert (data["format"], data["seed"], data["settings"]) == (1, 0, SMALL.as_dict())
    found = data["tasks"]["small2"]
    assert [found[name] for name in ("kind", "paper", "note", "n_rows", "n_features", "n_classes", "n_splits")] == [
        "verification",
        "LFW",
        "Made up.",
        120,
        6,
        2,
        3,
    ]
    accuracy = found["experiments"]["accuracy"]
    order = [(method, split) for method in METHODS for split in range(3)]
    assert [(cell["method"], cell["split"]) for cell in accuracy["cells"]] == order
    documented = {"method", "split", "n_components", "validation", "accuracy", "seconds"}
    tuned = {"ipls", "sgdpls"}
    assert all({*cell} == documented | ({"tuned"} if cell["method"] in tuned else set()) for cell in accuracy["cells"])
    assert found["experiments"]["streaming"]["skipped"] == {"pls": "it learns all rows at once"}


def test_the_same_numbers_whatever_the_number_of_processes(tmp_path):
    tasks = [make_task(2), make_task(4)]
    one, two, again = (
        run_in(tmp_path / str(i), tasks, jobs=jobs).data["tasks"]
        for i, jobs in enumerate((1, 2, 1))
        if (tmp_path / str(i)).mkdir() is None
    )
    assert without_times(one) == without_times(two) == without_times(again)


def test_another_seed_gives_other_numbers(tmp_path):
    tasks = [make_task(4)]
    for folder in "ab":
        (tmp_path / folder).mkdir()
    first, second = run_in(tmp_path / "a", tasks).data, run_in(tmp_path / "b", tasks, seed=1).data
    assert without_times(first["tasks"]) != without_times(second["tasks"])


def test_finished_cells_are_not_run_again(tmp_path, computed):
    task = make_task(2)
    run_in(tmp_path, [task], plan_of([task], folds=1))
    assert len(computed) == 5
    run_in(tmp_path, [task], plan_of([task], folds=2))
    assert len(computed) == len(set(computed)) == 10
    other = make_task(4)
    results = run_in(tmp_path, [other], plan_of([other], names=["components"], folds=1))
    # What was there of another task stays.
    assert {*results.data["tasks"]} == {"small2", "small4"}


def test_an_interrupted_run_continues(tmp_path, monkeypatch):
    task = make_task(2)
    whole = run_in(tmp_path, [task]).data
    (tmp_path / "results.json").unlink()
    compute, n_left = runner.compute, 4

    def interrupted(experiment, trial):
        nonlocal n_left
        n_left -= 1
        if n_left < 0:
            raise KeyboardInterrupt
        return compute(experiment, trial)

    monkeypatch.setattr(runner, "compute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_in(tmp_path, [task])
    cells = read(tmp_path / "results.json")["tasks"]["small2"]["experiments"]["accuracy"]["cells"]
    assert len(cells) == 4
    monkeypatch.setattr(runner, "compute", compute)
    assert without_times(run_in(tmp_path, [task]).data) == without_times(whole)


def test_results_of_something_else_are_refused(tmp_path):
    task = make_task(2)
    run_in(tmp_path, [task], plan_of([task], folds=1))
    with pytest.raises(ValueError, match=r"results of other seed: name another folder, or pass --force\."):
        Results(tmp_path, 1, SMALL)
    other = make_task(4, name="small2")
    with pytest.raises(ValueError, match="results of other data named small2"):
        Results(tmp_path, 0, SMALL).begin(other)
    begun = run_in(tmp_path, [other], plan_of([other], folds=1), force=True)
    assert begun.data["tasks"]["small2"]["n_classes"] == 4
    for text in ("{", "[]", '{"format": 0, "tasks": {}}', '{"format": 1}'):
        (tmp_path / "results.json").write_text(text)
        with pytest.raises(ValueError, match="not a file of results"):
            Results(tmp_path, 0, SMALL)


@pytest.mark.parametrize("force", [False, True])
def test_results_of_a_later_version_are_refused(tmp_path, force):
    later = {"format": FORMAT + 1, "plstream": "9.8.7", "runs": [{"method": "QuantumPLS"}]}
    (tmp_path / "results.json").write_text(json.dumps(later))
    known = rf"plstream {re.escape(plstream.__version__)}, which reads formats up to {FORMAT}: upgrade plstream\.$"
    with pytest.raises(ValueError, match=rf"written by plstream 9\.8\.7, format {FORMAT + 1}; this is {known}"):
        Results(tmp_path, 0, SMALL, force=force)
    assert json.loads((tmp_path / "results.json").read_text()) == later


def test_a_failure_is_reported_and_the_rest_continues(tmp_path, monkeypatch):
    def fails(*_):
        raise np.linalg.LinAlgError("Singular matrix")

    monkeypatch.setattr("plstream.online.CIPLS._begin", fails)
    found = run_in(tmp_path, [make_task(2)]).data["tasks"]["small2"]["experiments"]["accuracy"]
    assert found["skipped"] == {"cipls": "split 2: Singular matrix"}
    assert {cell["method"] for cell in found["cells"]} == {"sgdpls", "pls"}


def test_times(tmp_path, monkeypatch):
    monkeypatch.setattr("plstream.experiments.paper.timing.GROWTH", {"n": (20, 40), "m": (8, 16), "c": (1, 2)})
    monkeypatch.setattr("plstream.experiments.paper.timing._USUAL", {"n": 40, "m": 8, "c": 2})
    tasks = [make_task(2), make_task(4)]
    run_in(tmp_path, tasks, plan_of(tasks, names=["time"], methods=["cipls"]))
    results = run_in(tmp_path, tasks, plan_of(tasks, names=["time"], methods=["ccipca", "incremental-lda"]))
    first, second = (results.data["tasks"][name]["experiments"]["time"] for name in ("small2", "small4"))
    # In turn, so that those that were there are measured again.
    order = [(method, run) for method in ("ccipca", "incremental-lda", "cipls") for run in range(3)]
    assert [(cell["method"], cell["run"]) for cell in first["cells"]] == order
    assert all(cell["seconds"] > cell["update"] > 0 for cell in first["cells"])
    assert [cell["method"] for cell in first["growth"]] == ["cipls"] * 6 + ["ccipca"] * 6
    assert second["growth"] == []


def test_a_budget_leaves_splits_out_first():
    parts = plan_of([make_task(2), make_task(4)])
    seconds = planned_seconds(parts, 1)
    assert within_budget(parts, 2 * seconds / 60, 1) == parts
    two_thirds = within_budget(parts, 0.7 * seconds / 60, 1)
    assert {part.n_splits for part in two_thirds} == {2}
    assert all("2 of 3 splits, because" in part.note for part in two_thirds)
    least = within_budget(parts, 0.2 * seconds / 60, 1)
    assert {part.n_splits for part in least} == {1}
    assert planned_seconds(least, 1) <= 0.2 * seconds
    gone = [why for part in least for why in part.skipped.values() if why.startswith("not run")]
    assert gone
    assert all("it would take about 1 s, and there are" in why for why in gone)


def test_when_the_budget_is_used_up_the_rest_is_reported(tmp_path, computed):
    results = run_in(tmp_path, [make_task(2)], budget=0)
    assert computed == []
    skipped = results.data["tasks"]["small2"]["experiments"]["accuracy"]["skipped"]
    assert skipped == dict.fromkeys(METHODS, "split 0 and on not run, because the 0 min for all were over")


def test_an_svm_of_many_features_stops_early_and_it_is_said(tmp_path):
    said = {}
    for many in (6, 5):
        settings = replace(SMALL, many_features=many)
        task = make_task(2, n_features=6)
        results = Results(tmp_path, 0, settings, force=True)
        results.begin(task)
        parts = plan_of([task], names=["selection"], methods=["none"], settings=settings)
        runner.run(parts, results)
        said[many] = results.data["tasks"]["small2"]["experiments"]["selection"]["settings"]["classifier"]
    assert said == {6: "linear SVM", 5: "linear SVM, stopped at a tolerance of 0.1"}
    assert linear_svm(settings, 5).get_params()["tol"] == 1e-4
    assert linear_svm(settings, 6).get_params()["tol"] == 0.1


def test_no_times_are_taken_when_the_budget_is_used_up(tmp_path):
    results = run_in(tmp_path, [make_task(2)], plan_of([make_task(2)], names=["time"]), budget=0)
    place = results.data["tasks"]["small2"]["experiments"]["time"]
    assert place["cells"] == place["growth"] == []
    assert place["skipped"]["cipls"] == "not run, because the 0 min for all were over"
    assert place["skipped"]["pls"] == "it learns all rows at once"


def test_methods_that_need_too_much_memory_are_left_out(monkeypatch):
    monkeypatch.setattr("plstream.experiments.plan.available_bytes", lambda: 1000)
    part = plan_of([make_task(2)])[0]
    assert part.methods == ()
    assert part.skipped["pls"].startswith("not run, because it needs about 0.0 MB of memory, and there are 0.0 MB")


def test_estimates_grow_with_the_work():
    small, large = (plan_of([make_task(4, n_rows=n)], names=["accuracy"])[0] for n in (120, 12_000))
    assert large.total_seconds > 2 * small.total_seconds
    assert large.largest_memory > 10 * small.largest_memory / 2


@pytest.mark.parametrize(("method", "c"), [("sgdpls", 29), ("ccipca", 30), ("cipls", 1)])
def test_the_estimated_time_includes_the_fit_with_one_score_per_class(method, c, monkeypatch):
    monkeypatch.setattr(CostModel, "_seconds_to_fit", lambda _self, _method, c, n_rows: n_rows * 1e3 * c**2)
    monkeypatch.setattr("plstream.experiments.plan._multiplications_per_second", lambda: 1e12)
    task = make_task(30, n_rows=600, n_features=40)
    part = plan_of([task], names=["accuracy"], methods=[method])[0]
    costs, n = CostModel(task, SMALL, 0), len(task.splits[0][0])
    once = costs.choose(method) + costs.fit(method)
    assert part.seconds[method] == pytest.approx(once + n * 1e3 * c**2, rel=0.01)


def test_the_estimated_time_includes_the_scores(monkeypatch):
    """Of many features, they take longer to compute than methods without a model per class take to learn."""
    now = [0.0]

    def scores(_projection, X):
        now[0] += len(X)

    monkeypatch.setattr("plstream.experiments.plan.clock", lambda: now[0])
    monkeypatch.setattr("plstream.experiments.plan._multiplications_per_second", lambda: 1e9)
    monkeypatch.setattr(Projection, "scores", scores)
    costs = CostModel(make_task(4), SMALL, 0)
    assert costs.fit("ccipca") == pytest.approx(costs.n)


def test_few_epochs_take_less_time():
    task = make_task(4, n_rows=12_000)
    by_epochs = {n: CostModel(task, replace(SMALL, epochs=n), 0) for n in (1, 20, 100)}
    for costs in by_epochs.values():
        costs.speed, costs._perceptron_per_row = 1e10, lambda: 2e-6
    seconds = {n: costs.classify("cipls") for n, costs in by_epochs.items()}
    assert seconds[100] == seconds[20] > 10 * seconds[1]


def test_the_steps_of_a_perceptron_are_timed():
    costs = CostModel(make_task(4), SMALL, 0)
    now = iter(range(100))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("plstream.experiments.plan.clock", lambda: 3000.0 * next(now))
        assert costs._measured_perceptron() == pytest.approx(1.0)


class SVMByTheClock:
    """An SVM that takes a second per number of its features, of a clock of its own."""

    def __init__(self):
        self.now, self.n_fits = 0.0, 0

    def fit(self, X, y):
        assert np.array_equal(np.unique(y), [False, True])
        self.now += X.size
        self.n_fits += 1


@pytest.mark.parametrize(("n_classes", "n_svms"), [(2, 1), (4, 4)])
@pytest.mark.parametrize("n_features", [6, 1500])
def test_the_time_of_a_selection_is_that_of_its_svms(n_classes, n_svms, n_features, monkeypatch):
    svm = SVMByTheClock()
    monkeypatch.setattr("plstream.experiments.plan.clock", lambda: svm.now)
    monkeypatch.setattr("plstream.experiments.plan.linear_svm", lambda *_: svm)
    monkeypatch.setattr("plstream.experiments.plan._multiplications_per_second", lambda: 1e12)
    task = make_task(n_classes, n_features=n_features)
    part = plan_of([task], names=["selection"], methods=["none", "random", "pls-vip"])[0]
    numbers = len(task.splits[0][0]) * n_features * n_svms
    assert part.seconds["none"] == pytest.approx(numbers, rel=0.01)
    assert part.seconds["random"] == pytest.approx(sum(SMALL.shares) * numbers, rel=0.01)
    assert part.seconds["pls-vip"] == pytest.approx(part.seconds["random"], rel=0.01)
    # Measured once for all methods, and for a few classes.
    assert svm.n_fits == (1 if n_classes == 2 else 3)


def test_an_svm_out_of_the_cache_takes_twice_as_long(monkeypatch):
    monkeypatch.setattr("plstream.experiments.plan._SVM_BYTES_IN_CACHE", 1000)
    task = make_task(2)
    costs = CostModel(task, SMALL, 0)
    costs._svm_per_number = lambda: 1.0
    numbers = len(task.splits[0][0]) * task.n_features
    share = 500 / (SVM_BYTES_PER_NUMBER * numbers)
    assert costs.classify_features(share) == pytest.approx(share * numbers, rel=0.01)
    assert costs.classify_features() == pytest.approx(2 * numbers, rel=0.01)


@pytest.mark.parametrize("method", ["inffs", "pls-vip", "none"])
def test_the_memory_of_a_selection(method):
    task = make_task(2, n_rows=1500, n_features=3000)
    part = plan_of([task], names=["selection"], methods=[method])[0]
    tracemalloc.start()
    try:
        runner.compute("selection", trial_of(task, method))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # What liblinear stores is not traced.
    assert 0.3 * part.largest_memory < peak < 1.1 * part.largest_memory


def test_the_graph_of_25088_features_needs_no_square_of_them():
    rows, features = 4500, 25_088
    task = SimpleNamespace(n_features=features, n_classes=10, X=np.empty(0, np.float32))
    costs = SimpleNamespace(task=task, n=rows, bytes_of_rows=4 * rows * features, settings=Settings())
    needed = experiments()["selection"].memory(costs, "inffs")
    assert needed < 8 * features**2 < 8e9


def test_overflow_is_told_in_a_few_words():
    task = make_task(2)
    outcome = runner.compute("accuracy", trial_of(replace(task, X=1e30 * task.X), "olpls-released"))
    assert (outcome.cells, outcome.why) == ([], "split 0: component 1 is no longer finite")
