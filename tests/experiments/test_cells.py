"""Cells of the experiments against plain loops, and that test rows do not influence training."""

import dataclasses
import hashlib
from pathlib import Path

import numpy as np
import pytest
from sklearn.cross_decomposition import PLSRegression
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from plstream import CIPLS, ILFS, IPLS, SGDPLS, InfFS, VIPSelector
from plstream.experiments import paper
from plstream.experiments.paper import experiments
from plstream.experiments.paper.higher_order import largest_cosine, regress_on_first
from plstream.experiments.protocol import choose, hold_out
from plstream.experiments.runner import compute
from plstream.experiments.settings import Settings
from plstream.experiments.task import Task

from .conftest import SMALL, make_task, trial_of

CELLS = [name for name, experiment in experiments().items() if experiment.cells]


def cells_of(experiment, task, method, **options):
    outcome = compute(experiment, trial_of(task, method, **options))
    assert outcome.why == ""
    return outcome.cells


def test_held_out_rows_are_a_share_of_every_class():
    y = np.repeat([0, 1, 2], [50, 30, 1])
    rows = np.random.default_rng(0).permutation(81)
    left, held = hold_out(y, rows, 0.1, seed=3, split=1)
    assert sorted([*left, *held]) == list(range(81))
    assert np.bincount(y[held], minlength=3).tolist() == [5, 3, 0]
    # Both in the order in which a stream brings them.
    for part in (left, held):
        assert [row for row in rows if row in part] == part.tolist()
    other = hold_out(y, rows, 0.1, seed=3, split=2)[1]
    assert held.tolist() == hold_out(y, rows, 0.1, seed=3, split=1)[1].tolist() != other.tolist()


def test_accuracy_of_two_classes_by_a_plain_loop():
    task = make_task(2, n_rows=200)

    def accuracy_of(rows, others, c):
        pls = PLSRegression(c, scale=False).fit(task.X[rows], np.where(task.y[rows] == 1, 1.0, -1.0))
        scaler = StandardScaler().fit(pls.transform(task.X[rows]))
        S, S_others = (scaler.transform(pls.transform(task.X[part])) for part in (rows, others))
        svm = LinearSVC(C=0.1, dual=False, random_state=1227).fit(S, task.y[rows])
        return np.mean(svm.predict(S_others) == task.y[others])

    train, test = task.splits[1]
    left, held = hold_out(task.y, train, 0.1, seed=5, split=1)
    validation = [accuracy_of(left, held, c) for c in (1, 2, 3)]
    chosen = max((1, 2, 3), key=lambda c: (validation[c - 1], -c))
    (cell,) = cells_of("accuracy", task, "pls", split=1, seed=5)
    assert cell["validation"] == pytest.approx(validation)
    assert cell["n_components"] == chosen
    assert cell["accuracy"] == pytest.approx(accuracy_of(train, test, chosen))
    (every,) = cells_of("components", task, "pls", split=1, seed=5)
    assert every["accuracy"] == pytest.approx([accuracy_of(train, test, c) for c in (1, 2, 3)])


@pytest.mark.filterwarnings("ignore")
def test_accuracy_of_several_classes_by_a_plain_loop():
    task = make_task(4, n_rows=200)
    train, test = task.splits[0]
    left, held = hold_out(task.y, train, 0.1, seed=0, split=0)

    def scores(rows, others, c):
        model = SGDPLS(c, random_state=0).fit(task.X[rows], task.y[rows])
        scaler = StandardScaler().fit(model.transform(task.X[rows]))
        return [scaler.transform(model.transform(task.X[part])) for part in (rows, others)]

    validation = []
    for c in (1, 2, 3):
        S, S_held = scores(left, held, c)
        quick = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.001).fit(S, task.y[left])
        validation.append(np.mean(quick.predict(S_held) == task.y[held]))
    chosen = int(np.argmax(validation)) + 1
    S, S_test = scores(train, test, chosen)
    options = {"learning_rate_init": 0.005, "n_iter_no_change": 5, "max_iter": 5, "random_state": 0}
    perceptron = MLPClassifier((100,), early_stopping=True, **options).fit(S, task.y[train])
    (cell,) = cells_of("accuracy", task, "sgdpls")
    assert cell["validation"] == pytest.approx(validation)
    assert (cell["n_components"], cell["accuracy"]) == (chosen, perceptron.score(S_test, task.y[test]))


def test_among_equals_the_smallest_number_of_components_is_chosen(task, monkeypatch):
    monkeypatch.setattr("plstream.experiments.protocol.accuracy", lambda *_, **__: 0.5)
    assert choose(trial_of(task, "cipls"))[1:3] == (1, [0.5, 0.5, 0.5])
    assert choose(trial_of(task, "cipls"), least=2)[1:3] == (2, [None, 0.5, 0.5])
    # And the first of equal values of what else is chosen.
    assert choose(trial_of(task, "ipls")).tuned == {"tuned": 20}
    only = dataclasses.replace(SMALL, ipls_directions=(5,))
    assert choose(trial_of(task, "ipls", settings=only)).tuned == {}


def noisy_task(*, hidden):
    """Two classes that differ in one feature of forty; or hidden in noise that other features have, with variances."""
    random = np.random.default_rng(0)
    y = np.arange(600) % 2
    Z = random.normal(size=(600, 6)) * [6, 5, 4, 3, 2, 1]
    X = np.hstack([Z + y[:, None], Z + 0.1 * random.normal(size=Z.shape)])
    if not hidden:
        X = random.normal(size=(600, 40)) + 3 * np.outer(y, np.arange(40) == 0)
    rows = random.permutation(600)
    return Task(name="noisy", title="", kind="classification", X=X, y=y, splits=((rows[:400], rows[400:]),))


@pytest.mark.filterwarnings("ignore:The rows so far have only")
@pytest.mark.parametrize(
    ("method", "setting", "values", "best"),
    [
        ("ipls", "ipls_directions", (1, 12), 12),
        ("ipls", "ipls_directions", (12, 1), 12),
        ("sgdpls", "sgdpls_rates", (1e-9, 0.3), 0.3),
        ("sgdpls-released", "sgdpls_released_rates", (1e-9, 0.001), 0.001),
        # Numbers overflow with too large a step.
        ("sgdpls-released", "sgdpls_released_rates", (0.001, 1e30), 0.001),
        ("sgdpls-released", "sgdpls_released_rates", (1e30, 0.001), 0.001),
    ],
)
def test_directions_and_steps_are_chosen_on_validation_rows(method, setting, values, best):
    task, settings = noisy_task(hidden=method == "ipls"), dataclasses.replace(SMALL, **{setting: values})
    train, test = task.splits[0]
    rows = hold_out(task.y, train, 0.1, seed=0, split=0)

    def accuracy_of(value, c, rows, others):
        options = {"n_pca_components": value} if method == "ipls" else {"eta0": value, "random_state": 0}
        options |= {"variant": "released", "n_epochs": 2} if method == "sgdpls-released" else {}
        model = (IPLS if method == "ipls" else SGDPLS)(c, **options).fit(task.X[rows], task.y[rows])
        scaler = StandardScaler().fit(model.transform(task.X[rows]))
        S, S_others = (scaler.transform(model.transform(task.X[part])) for part in (rows, others))
        svm = LinearSVC(C=0.1, dual=False, random_state=1227).fit(S, task.y[rows])
        return np.mean(svm.predict(S_others) == task.y[others])

    (cell,) = cells_of("accuracy", task, method, settings=settings)
    c = cell["n_components"]
    assert cell["tuned"] == best
    others = [value for value in values if value not in {best, 1e30}]
    assert all(accuracy_of(best, c, *rows) > accuracy_of(value, c, *rows) for value in others)
    assert cell["accuracy"] == pytest.approx(accuracy_of(best, c, train, test))
    for name in ("higher-order", "streaming"):
        if method in experiments()[name].methods and not experiments()[name].why_not(method, task):
            (cell,) = cells_of(name, task, method, settings=settings)
            assert cell["tuned"] in values


@pytest.mark.parametrize("sizes", [(50,), (20, 20, 10), (1, 2, 47)])
def test_controls_of_higher_order_components(sizes):
    random = np.random.default_rng(0)
    S, S_test = random.normal(size=(50, 3, 4)), random.normal(size=(7, 3, 4))
    regression = regress_on_first(lambda: np.split(S, np.cumsum(sizes)[:-1]), len(S))
    R, R_test = regression.residuals(S), regression.residuals(S_test)
    correlations = np.corrcoef(S[:, :, 0].T, S[:, :, 1:].reshape(50, -1).T)[:3, 3:]
    assert regression.largest_correlation == pytest.approx(np.abs(correlations).max())
    A, A_test = (np.column_stack([np.ones(len(scores)), scores[:, :, 0]]) for scores in (S, S_test))
    for j, (k, i) in enumerate((k, i) for k in range(3) for i in range(1, 4)):
        solution = np.linalg.lstsq(A, S[:, k, i], rcond=None)[0]
        np.testing.assert_allclose(R[:, j], S[:, k, i] - A @ solution, atol=1e-12)
        np.testing.assert_allclose(R_test[:, j], S_test[:, k, i] - A_test @ solution, atol=1e-12)
    W = random.normal(size=(2, 3, 5))
    cosines = [abs(w[0] @ v) / np.linalg.norm(w[0]) / np.linalg.norm(v) for w in W for u in W for v in u[1:]]
    assert largest_cosine(W) == pytest.approx(max(cosines))


@pytest.mark.parametrize("n_blocks", [1, 4])
def test_copies_of_another_model_are_found_out(n_blocks):
    random = np.random.default_rng(0)
    firsts = random.normal(size=(60, 2))
    S = np.stack([firsts, firsts[:, ::-1]], axis=2)
    regression = regress_on_first(lambda: np.split(S, n_blocks), len(S))
    np.testing.assert_allclose(regression.residuals(S), 0, atol=1e-12)
    np.testing.assert_allclose(regression.residuals(2 * S), 0, atol=1e-12)


@pytest.mark.parametrize("n_blocks", [1, 4])
def test_first_scores_that_add_up_to_zero_have_small_slopes(n_blocks):
    # As those of one model per class, whose responses add up to a constant.
    firsts = np.random.default_rng(0).normal(size=(60, 2))
    firsts = np.column_stack([firsts, -firsts.sum(axis=1)])
    S = np.stack([firsts, firsts[:, ::-1]], axis=2)
    regression = regress_on_first(lambda: np.split(S, n_blocks), len(S))
    assert np.abs(regression.slopes).max() < 10
    np.testing.assert_allclose(regression.residuals(S), 0, atol=1e-12)


def test_copies_of_the_first_component_are_found_out():
    task = make_task(2, n_rows=600)
    (paper,), (pls,) = (cells_of("higher-order", task, method) for method in ("cipls-released", "pls"))
    assert paper["largest_correlation"] > 0.9 > pls["largest_correlation"]
    assert paper["accuracy"] > pls["accuracy"] + 0.1
    # Orthogonal to the difference of the means, class means are equal, so a linear classifier is at chance.
    assert max(paper["accuracy_without_first"], pls["accuracy_without_first"]) < 0.65


def test_a_stream_ends_where_a_fit_to_all_rows_does(task):
    (stream,), (every,) = (cells_of(name, task, "cipls") for name in ("streaming", "components"))
    assert stream["n_seen"] == [20, 40, 60, 80]
    assert stream["accuracy"][-1] == every["accuracy"][stream["n_components"] - 1]


def test_a_stream_never_learns_a_row_twice(task, monkeypatch):
    learnt = []
    trial = trial_of(task, "cipls")
    choice = choose(trial)
    monkeypatch.setattr("plstream.experiments.paper.streaming.choose", lambda _: choice)
    partial_fit = CIPLS.partial_fit
    monkeypatch.setattr(
        CIPLS, "partial_fit", lambda self, X, y, classes: (learnt.append(X), partial_fit(self, X, y, classes=classes))
    )
    experiments()["streaming"].cells(trial)
    np.testing.assert_array_equal(np.concatenate(learnt), task.X[trial.train])


def test_selection_by_a_plain_loop():
    task = make_task(2)
    train, test = task.splits[0]
    ranking = InfFS().fit(task.X[train]).ranking_
    scaler = StandardScaler().fit(task.X[train])
    cells = cells_of("selection", task, "inffs", settings=Settings(shares=(0.2, 0.5)))
    assert [cell["n_kept"] for cell in cells] == [1, 3]
    for cell in cells:
        kept = ranking <= cell["n_kept"]
        X, X_test = (scaler.transform(task.X[part])[:, kept] for part in (train, test))
        svm = LinearSVC(C=0.1, dual=False, random_state=1227).fit(X, task.y[train])
        assert cell["accuracy"] == svm.score(X_test, task.y[test])
    for method, ranking in (
        ("ilfs-a", ILFS(variant="A").fit(task.X[train], task.y[train]).ranking_),
        ("cipls-paper-vip", VIPSelector(CIPLS(2, variant="paper")).fit(task.X[train], task.y[train]).ranking_),
    ):
        digest = hashlib.sha256(np.ascontiguousarray(ranking, dtype=np.int64).tobytes()).hexdigest()[:16]
        assert {cell["ranking"] for cell in cells_of("selection", task, method)} == {digest}
    random = [{cell["ranking"] for cell in cells_of("selection", task, "random", split=split)} for split in (0, 0, 1)]
    assert random[0] == random[1] != random[2]
    (everything,) = cells_of("selection", task, "none")
    assert (everything["share"], everything["n_kept"]) == (1.0, 6)


def test_projection(task):
    (cell,) = cells_of("projection", task, "cipls")
    assert np.shape(cell["scores"]) == (20, 2)
    assert len(cell["labels"]) == 20
    (again,) = cells_of("projection", task, "cipls")
    assert cell["scores"] == again["scores"]


def poisoned(task, split):
    """Return the task with garbage in the test rows of a split."""
    X, y, test = task.X.copy(), task.y.copy(), task.splits[split][1]
    random = np.random.default_rng(1)
    X[test] = 1e6 * random.standard_normal((len(test), task.n_features))
    y[test] = random.permutation(y[test])
    return dataclasses.replace(task, X=X, y=y)


@pytest.mark.parametrize("name", CELLS)
def test_nothing_is_learnt_from_test_rows(task, name):
    experiment = experiments()[name]
    learnt = {"n_components", "validation", "largest_cosine", "largest_correlation", "n_seen", "ranking", "n_kept"}
    changed = 0
    for method in experiment.methods:
        if experiment.why_not(method, task):
            continue
        clean, dirty = (cells_of(name, one, method) for one in (task, poisoned(task, 0)))
        for before, after in zip(clean, dirty, strict=True):
            assert {key: before[key] for key in learnt & {*before}} == {key: after[key] for key in learnt & {*after}}
            changed += before.get("accuracy", before.get("scores")) != after.get("accuracy", after.get("scores"))
    # The test rows do matter for what is not learnt.
    assert changed


@pytest.mark.parametrize("name", CELLS)
def test_every_method_has_cells_or_a_reason(task, name):
    experiment = experiments()[name]
    for method in experiment.methods:
        outcome = compute(name, trial_of(task, method))
        assert outcome.cells or outcome.why or experiment.why_not(method, task)
        assert bool(outcome.why) <= bool(experiment.why_not(method, task))
        assert all(cell["method"] == method and cell["split"] == 0 for cell in outcome.cells)


def test_a_method_that_fails_is_a_result(task, monkeypatch):
    def fails(*_, **__):
        raise ValueError("Rows\nare wrong.")

    monkeypatch.setattr(CIPLS, "partial_fit", fails)
    outcome = compute("accuracy", trial_of(task, "cipls", split=2))
    assert (outcome.cells, outcome.why) == ([], "split 2: Rows are wrong")


def test_settings_are_json():
    assert SMALL.as_dict()["shares"] == [0.1, 0.15, 0.2, 0.5]


def test_every_file_is_listed_under_the_name_of_its_experiment():
    files = {path.stem for path in Path(paper.__file__).parent.glob("*.py")} - {"__init__"}
    assert {*paper.MODULES.values()} == files
    assert all(experiment.name == name for name, experiment in experiments().items())
