"""The same model gives the same file, byte for byte, in any process and from any copy."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone

from plstream import CIPLS, IncrementalPLS, IncrementalPLSClassifier, load, open_source, save
from plstream.files import Stopped, export_onnx, fit_source

from .forge import TYPES
from .models import CASES, EXPORTED, STREAMS, data, fitted, learn, watchers

pytestmark = [
    pytest.mark.filterwarnings("ignore:The rows so far have only:UserWarning"),
    pytest.mark.filterwarnings("ignore:X and y have only:UserWarning"),
    pytest.mark.filterwarnings("ignore:sketch_size=:UserWarning"),
    pytest.mark.filterwarnings("ignore:The two factors have swapped:UserWarning"),
]
ROOT = Path(__file__).parents[2]


def file_of(model, write: Callable = save):
    with TemporaryDirectory() as folder:
        write(model, Path(folder, "model"))
        return Path(folder, "model").read_bytes()


def loaded(content):
    with TemporaryDirectory() as folder:
        Path(folder, "model").write_bytes(content)
        return load(Path(folder, "model"))


def interrupted_fit(model, X, y):
    """Return the checkpoint of a fit that was stopped after its second block."""
    answers = iter([False, True])
    with TemporaryDirectory() as folder:
        source = open_source(X, target=y, batch_size=30)
        with pytest.raises(Stopped):
            fit_source(model, source, checkpoint=folder, one_pass=True, stop=lambda: next(answers))
        (path,) = Path(folder).glob("*.plstream")
        return path.read_bytes()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_of_copies(case):
    X, y = data(case.target)
    for model in (clone(case.model), fitted(case, X, y)):
        require_one_file(model)


@pytest.mark.parametrize("watcher", watchers().values(), ids=watchers())
def test_of_copies_of_watchers(watcher):
    require_one_file(watcher)


def require_one_file(model):
    contents = [file_of(model) for _ in range(3)]
    contents += [file_of(loaded(contents[0])), file_of(loaded(file_of(loaded(contents[0]))))]
    assert len({*contents}) == 1


def hashes():
    """Return a hash of every file that a process writes."""
    contents = {}
    for case in CASES:
        X, y = data(case.target)
        model = fitted(case, X, y)
        contents[f"{case}"] = file_of(model)
        if find_spec("onnx") and case in EXPORTED:
            contents[f"{case}, ONNX"] = file_of(model, export_onnx)
    for case in STREAMS:
        X, y = data(case.target)
        contents[f"{case} in mid-stream"] = file_of(learn(clone(case.model), X[:31], y[:31]))
    contents |= {name: file_of(watcher) for name, watcher in watchers().items()}
    for model in (IncrementalPLS(), CIPLS()):
        contents[f"{model}, checkpoint"] = interrupted_fit(model, *data())
    return {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}


def test_in_another_process():
    command = [sys.executable, "-W", "ignore", "-m", "tests.files.test_same_bytes"]
    found = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
        found.append(ended.stdout.splitlines())
    assert len(found[0]) > len(CASES) + len(STREAMS) + len(watchers())
    assert found[0] == found[1]


def test_of_equal_dictionaries():
    weights = {"no": 2.0, "yes": np.float32(0.5), 3: 1.0, True: 1.5, None: 2}
    one = IncrementalPLSClassifier(class_weight=weights)
    other = IncrementalPLSClassifier(class_weight=dict(reversed(weights.items())))
    assert file_of(one) == file_of(other)
    assert loaded(file_of(other)).class_weight == weights


def test_of_equal_requests():
    with config_context(enable_metadata_routing=True):
        one = IncrementalPLSClassifier().set_fit_request(sample_weight=True)
        one.set_partial_fit_request(classes=True).set_partial_fit_request(sample_weight=False)
        other = IncrementalPLSClassifier().set_partial_fit_request(sample_weight=False)
        other.set_partial_fit_request(classes=True).set_fit_request(sample_weight=True)
    assert file_of(one) == file_of(other)


def test_arrays_are_aligned():
    """A program that maps the file reads numbers where they are."""
    content = file_of(IncrementalPLS(solver="sketch", sketch_size=6).fit(*data()))
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__")
    assert {entry["dtype"] for entry in header.values()} == {"F64", "F32", "BOOL"}
    for entry in header.values():
        assert (8 + length + entry["data_offsets"][0]) % np.dtype(TYPES[entry["dtype"]]).itemsize == 0


if __name__ == "__main__":
    for _name, _digest in hashes().items():
        sys.stdout.write(f"{_name}: {_digest}\n")
