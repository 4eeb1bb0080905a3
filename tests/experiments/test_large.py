"""Tasks whose scores do not fit in memory: the same figures block by block, and cells that resume."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

from plstream import IncrementalLDA
from plstream.experiments import protocol, scratch
from plstream.experiments.classifiers import accuracy_in_blocks
from plstream.experiments.datasets.features import StackedRows
from plstream.experiments.methods import METHODS, Projection
from plstream.experiments.paper import experiments
from plstream.experiments.paper.higher_order import Regression
from plstream.experiments.plan import CostModel, make_plan
from plstream.experiments.protocol import RowsInBlocks, Trial, accuracies, is_large
from plstream.experiments.runner import compute
from plstream.experiments.scratch import Scratch, blocks_of
from plstream.experiments.settings import Settings

from .conftest import SMALL, make_task, trial_of

ACCURACY = experiments()["accuracy"].methods


@pytest.fixture
def small_blocks(monkeypatch):
    """A few rows at a time, as with a million of them, and scores in files."""
    monkeypatch.setattr(protocol, "_LARGE", 0)
    monkeypatch.setattr(protocol, "IN_MEMORY", 0)
    monkeypatch.setattr(protocol, "_BLOCK_BYTES", 900)
    monkeypatch.setattr(scratch, "_BLOCK_BYTES", 2000)
    monkeypatch.setattr("plstream.experiments.task._BLOCK_BYTES", 17 * 6 * 8)


def test_imagenet_is_large_and_tiny_imagenet_is_not():
    task = make_task(4)
    sized = {"X": np.broadcast_to(np.float32(0), (1_331_167, 2)), "n_classes": 1000}
    assert is_large(_Sizes(**sized), Settings(components=1))
    assert not is_large(_Sizes(np.broadcast_to(np.float32(0), (110_000, 512)), 200), Settings())
    assert not is_large(task, SMALL)


class _Sizes:
    def __init__(self, X, n_classes):
        self.X, self.n_classes = X, n_classes


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("method", [name for name in ACCURACY if name != "pls-svd"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_every_method_runs_a_block_at_a_time(method, n_classes, tmp_path):
    task = make_task(n_classes)
    trial = Trial(task, method, 0, SMALL, 0, Scratch(tmp_path / "cell"))
    outcome = compute("accuracy", trial)
    assert outcome.why == ""
    assert 0 <= outcome.cells[0]["accuracy"] <= 1
    # Nothing is left of what it was computed by.
    assert not (tmp_path / "cell").exists()


@pytest.mark.parametrize("method", ["ccipca", "ipls", "cipls", "pls", "sgdpls-released", "pls-svd"])
def test_linear_discriminants_are_those_of_all_scores_at_once(method, request, tmp_path):
    task = make_task(4)
    rows, others = task.splits[0]
    at_once = accuracies(trial_of(task, method), rows, others)
    request.getfixturevalue("small_blocks")
    assert accuracies(Trial(task, method, 0, SMALL, 0, Scratch(tmp_path / "a")), rows, others) == at_once


@pytest.mark.parametrize("method", ["cipls", "incremental-pls", "pls", "sgdpls-released"])
def test_scores_in_a_file_are_those_in_memory(method, request, tmp_path):
    task = make_task(4)
    trial = trial_of(task, method)
    expected = trial.scores(trial.fit(2), trial.train)
    request.getfixturevalue("small_blocks")
    trial = Trial(task, method, 0, SMALL, 0, Scratch(tmp_path))
    found = trial.scores(trial.fit(2), trial.train)
    assert isinstance(found, np.memmap)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), rtol=1e-5, atol=1e-5)


class Killed(BaseException):
    """What ends a process."""


def killed_after(patch, where, name, calls):
    left, function = calls, getattr(where, name)

    def killed(*arguments, **options):
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        return function(*arguments, **options)

    patch.setattr(where, name, killed)


# Where a cell is killed, and after how many calls.
@pytest.mark.parametrize(
    ("where", "name", "calls"),
    [
        (Projection, "learn_more", 3),
        (Projection, "learn_more", 9),
        (Projection, "scores", 12),
        ("classifier", "partial_fit", 4),
        ("classifier", "partial_fit", 9),
    ],
)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("method", ["cipls", "sgdpls-released"])
@pytest.mark.usefixtures("small_blocks")
def test_a_killed_cell_resumes_with_the_same_figures(monkeypatch, tmp_path, where, name, calls, n_classes, method):
    task, settings = make_task(n_classes), replace(SMALL, components=2)
    in_classifier = where == "classifier"
    where = (SGDClassifier if n_classes == 2 else MLPClassifier) if in_classifier else where

    def cell():
        outcome = compute("accuracy", Trial(task, method, 0, settings, 0, Scratch(tmp_path, every_seconds=0)))
        return {key: value for key, value in outcome.cells[0].items() if key != "seconds"}

    whole = cell()
    with monkeypatch.context() as patch:
        killed_after(patch, where, name, calls)
        with pytest.raises(Killed):
            cell()
    assert any(tmp_path.iterdir())
    learnt, learn = 0, Projection.learn_more

    def counted(self, X, y):
        nonlocal learnt
        learnt += 1
        learn(self, X, y)

    monkeypatch.setattr(Projection, "learn_more", counted)
    assert cell() == whole
    if in_classifier:
        # All fits were over.
        assert learnt == 0 or n_classes == 2


def test_damaged_checkpoints_are_computed_again(tmp_path):
    kept = Scratch(tmp_path, every_seconds=0)
    kept.save_arrays("a", x=np.arange(3))
    assert kept.load_arrays("a")["x"].tolist() == [0, 1, 2]
    (tmp_path / "a.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:100])
    (tmp_path / "b.plstream").write_bytes(b"not a model")
    assert (kept.load_arrays("a"), kept.load_model("b"), kept.load_model("c")) == (None, None, None)
    # Objects are never unpickled.
    np.savez(tmp_path / "d.npz", x=np.array([{}], dtype=object))
    assert kept.load_arrays("d") is None


def test_a_file_of_scores_continues_after_its_last_whole_row(tmp_path):
    rows = np.arange(12, dtype=np.float32).reshape(6, 1, 2)
    asked = []

    def rows_from(start):
        asked.append(start)
        yield from (rows[i : i + 1] for i in range(start, 6))

    (tmp_path / "s.scores").write_bytes(rows.tobytes()[:27])
    assert Scratch(tmp_path).stored("s", rows.shape, rows_from).tolist() == rows.tolist()
    assert Scratch(tmp_path).stored("s", rows.shape, rows_from).tolist() == rows.tolist()
    assert asked == [3]


def test_nothing_is_left_of_removed_files(tmp_path):
    kept = Scratch(tmp_path / "cell")
    kept.remove()
    kept.save_arrays("a", x=1)
    kept.stored("b", (1, 1), lambda _: iter([np.ones((1, 1))]))
    kept.remove("*.scores")
    assert [path.name for path in kept.folder.iterdir()] == ["a.npz"]
    kept.remove()
    assert not kept.folder.exists()


def test_blocks_are_small_whatever_is_wide(monkeypatch):
    monkeypatch.setattr(scratch, "_BLOCK_BYTES", 8 * 30)
    S = np.arange(84.0).reshape(14, 2, 3)
    assert [rows.stop for rows, _ in blocks_of(S, n_classes=2)] == [5, 10, 14]
    assert [rows.stop for rows, _ in blocks_of(S, n_classes=10, start=4)] == [7, 10, 13, 14]
    assert np.concatenate([block for _, block in blocks_of(S, 10)]).tolist() == S.reshape(14, 6).tolist()
    # Responses of a thousand classes are wider than 32 features.
    task = make_task(1000, n_rows=20000, n_features=32)
    assert max(map(len, task.blocks(np.arange(20000)))) * 1000 * 8 <= 32 << 20


@pytest.mark.filterwarnings("ignore:The rows so far have only")
def test_scores_are_standardised_by_all_blocks(monkeypatch, tmp_path):
    monkeypatch.setattr(scratch, "_BLOCK_BYTES", 8 * 30)
    S = np.random.default_rng(0).normal(size=(50, 3)) * [1, 100, 0] + [1e6, 0, 3]
    y, blocks, learn = np.arange(50) % 4, [], IncrementalLDA.partial_fit
    monkeypatch.setattr(
        IncrementalLDA,
        "partial_fit",
        lambda self, X, y, classes: (blocks.append(X), learn(self, X, y, classes=classes)),
    )
    options = {"settings": Settings(), "seed": 0, "scratch": Scratch(tmp_path), "kind": "discriminants"}
    accuracy_in_blocks(S, y, S, y, **options)
    # 30 numbers are seven rows of three scores, with room for four classes.
    assert len(blocks) == 8
    found = np.concatenate(blocks)
    np.testing.assert_allclose(found[:, 1], (S[:, 1] - S[:, 1].mean()) / S[:, 1].std(), atol=1e-12)
    assert not found[:, 2].any()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("kind", "model"), [("svm", SGDClassifier), ("perceptron", MLPClassifier)])
def test_classifiers_in_blocks_separate_what_can_be_separated(kind, model, tmp_path, monkeypatch):
    task, learnt, learn = make_task(4, n_rows=400), [], model.partial_fit
    monkeypatch.setattr(
        model, "partial_fit", lambda self, X, y, **options: (learnt.append(len(X)), learn(self, X, y, **options))
    )
    S = 10 * np.eye(4)[task.y] + np.random.default_rng(0).normal(size=(400, 4))
    options = {"settings": Settings(), "seed": 0, "scratch": Scratch(tmp_path), "kind": kind}
    assert accuracy_in_blocks(S[:300], task.y[:300], S[300:], task.y[300:], **options) == 1
    assert learnt


def test_memory_does_not_grow_with_rows():
    task = make_task(4)

    def bytes_of(n, method):
        # Ten million rows that are not there.
        many = replace(task, name="many")
        object.__setattr__(many, "X", StackedRows([np.broadcast_to(np.float16(0), (n, 6))], np.dtype(np.float32)))
        return CostModel(many, Settings(components=10), 0).memory(method)

    for method in ("cipls", "pls", "ccipca", "sgdpls-released"):
        assert bytes_of(10**7, method) == bytes_of(10**8, method) < 4 << 30


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("method", ["ccipca", "ipls", "cipls-paper", "pls", "sgdpls-released"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_higher_order_components_in_blocks(method, n_classes, tmp_path):
    trial = Trial(make_task(n_classes), method, 0, SMALL, 0, Scratch(tmp_path / "cell"))
    (cell,) = compute("higher-order", trial).cells
    assert all(0 <= cell[kind] <= 1 for kind in ("accuracy", "accuracy_all", "accuracy_residual"))
    assert not (tmp_path / "cell").exists()


# Without its regression on the first scores, IPLS is at chance, and depends on rounding.
@pytest.mark.parametrize("method", ["ccipca", "cipls-paper", "cipls", "pls", "incremental-lda"])
def test_controls_in_blocks_are_those_of_all_scores_at_once(method, request, tmp_path, monkeypatch):
    # With linear discriminants, which do not depend on blocks.
    monkeypatch.setattr("plstream.experiments.protocol.classifier_kind", lambda *_, **__: "discriminants")
    task = make_task(4, n_rows=400, n_features=20)
    (at_once,) = compute("higher-order", trial_of(task, method)).cells
    request.getfixturevalue("small_blocks")
    (in_blocks,) = compute("higher-order", Trial(task, method, 0, SMALL, 0, Scratch(tmp_path))).cells
    for name in at_once.keys() - {"seconds"}:
        assert in_blocks[name] == pytest.approx(at_once[name], abs=1e-6), name


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("where", "name", "calls"), [(Regression, "residuals", 3), (MLPClassifier, "partial_fit", 30)])
def test_a_killed_cell_of_higher_order_components_resumes(monkeypatch, tmp_path, where, name, calls):
    task, settings = make_task(4), replace(SMALL, components=2)

    def cell():
        outcome = compute("higher-order", Trial(task, "cipls", 0, settings, 0, Scratch(tmp_path, every_seconds=0)))
        return {key: value for key, value in outcome.cells[0].items() if key != "seconds"}

    whole = cell()
    with monkeypatch.context() as patch:
        killed_after(patch, where, name, calls)
        with pytest.raises(Killed):
            cell()
    assert [*tmp_path.glob("*.scores")]
    assert cell() == whole


def test_memory_of_higher_order_components_does_not_grow_with_rows(monkeypatch):
    monkeypatch.setattr("plstream.experiments.plan.available_bytes", lambda: 16 << 30)

    def planned(n_rows):
        task = make_task(4)
        rows = StackedRows([np.broadcast_to(np.float16(0), (n_rows, 6))], np.dtype(np.float32))
        object.__setattr__(task, "X", rows)
        options = {"methods": ["cipls"], "folds": 1, "settings": Settings(), "seed": 0, "jobs": 1}
        return make_plan([task], [experiments()["higher-order"]], **options)[0]

    assert planned(10**9).methods == ("cipls",)
    assert planned(10**8).memory == planned(10**9).memory


@pytest.mark.usefixtures("small_blocks")
def test_epochs_of_classifiers_in_blocks_are_limited(monkeypatch, tmp_path):
    task, learnt, learn = make_task(4), [], MLPClassifier.partial_fit
    monkeypatch.setattr(
        MLPClassifier,
        "partial_fit",
        lambda self, X, y, **options: (learnt.append(len(X)), learn(self, X, y, **options)),
    )
    for epochs in (1, 3):
        learnt.clear()
        settings = replace(SMALL, components=1, epochs=epochs, patience=100)
        assert compute("accuracy", Trial(task, "pls", 0, settings, 0, Scratch(tmp_path))).why == ""
        # Weights are allocated by one row, and a tenth of 80 training rows is held out.
        assert sum(learnt) == 1 + 72 * epochs


def test_rows_of_several_reads_are_in_the_order_of_the_file(monkeypatch):
    monkeypatch.setattr("plstream.experiments.task._BLOCK_BYTES", 10 * 48)
    task = make_task(4)
    rows = task.splits[0][0]
    blocks = RowsInBlocks(task, rows)
    for _ in range(2):
        X, y = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        assert (task.X[np.sort(rows)] == X).all()
        assert (y == task.y[np.sort(rows)]).all()
    assert len([*blocks]) == 8


def test_the_number_of_components_is_chosen_by_some_rows_of_many(monkeypatch):
    seen = []
    monkeypatch.setattr(protocol, "accuracies", lambda _, rows, *__: seen.append(len(rows)) or [0.5, 0.6])
    trial = replace(trial_of(make_task(4), "cipls"), settings=replace(SMALL, choice_rows=40))
    assert protocol.choose(trial).n_components == 2
    assert seen == [36]
    assert METHODS["sgdpls-released"].passes == "steps"
