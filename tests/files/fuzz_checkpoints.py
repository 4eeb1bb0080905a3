"""Checkpoints with random changes: a fit resumes from the previous one or raises an error, and never gives another
model.

``python -m tests.files.fuzz_checkpoints 3000 0`` makes so many rounds from that seed. Damage, which the hashes
tell, must end in the same model as a fit that was not stopped. What comes with the right hashes may be a checkpoint of
a fit that never was: then no more can be asked for than one sentence or a model.
"""

import sys
import tempfile
import warnings
from pathlib import Path

from plstream.files import CheckpointError, Stopped
from plstream.rows import blocks, sources
from tests.fuzzing import pick, require_sentence, rounds

from .fuzz import DAMAGES, FORGERIES
from .models import assert_identical
from .test_checkpoints import MODELS, opened, plain, run, stopping_after


def originals(folder):
    """Return, for each model, its last two checkpoints at some moments, and the model that they are to lead to."""
    found = []
    for name in MODELS:
        expected = plain(name, opened(name))
        for n_blocks in (2, 4) if "vip" in name else (2, 3, 4):
            try:
                run(name, opened(name), checkpoint=folder, every_rows=1, stop=stopping_after(n_blocks))
            except Stopped:
                found.append((name, {path.name: path.read_bytes() for path in folder.glob("checkpoint-*")}, expected))
            for path in folder.iterdir():
                path.unlink()
    return found


def one_round(folder, original, rng):
    """Change checkpoints, and resume the fit."""
    name, files, expected = original
    older, newest = sorted(files)
    is_forged = rng.random() < 0.6
    changed = pick(rng, [[newest], [newest], [older, newest], [older]])
    written = files | {each: pick(rng, FORGERIES if is_forged else DAMAGES)(files[each], rng) for each in changed}
    for each, content in written.items():
        (folder / each).write_bytes(content)
    try:
        model = run(name, opened(name), checkpoint=folder)
    except CheckpointError as error:
        require_sentence(error)
        # Whoever wants to look at them still can.
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == written
        outcome = "refused"
    except (ValueError, TypeError):
        # A model of other numbers, or with a parameter of another type.
        assert is_forged
        outcome = "forged, and the model says why it does not go on"
    else:
        assert not [*folder.iterdir()]
        outcome = "the same model" if is_same(model, expected) else "forged, and another model"
    for path in folder.iterdir():
        path.unlink()
    assert is_forged or outcome == "the same model" or (outcome == "refused" and len(changed) == 2), outcome
    return outcome


def is_same(model, expected):
    try:
        assert_identical(model, expected)
    except AssertionError:
        return False
    return True


def fuzz(n_rounds, seed=0):
    """Resume from changed checkpoints, and count the outcomes of the fits."""
    # Small data is to be read several times, as large data is.
    blocks.SMALL_BYTES = sources.SMALL_BYTES = 1000
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        found = originals(folder)
        return rounds("checkpoints", n_rounds, seed, folder, lambda rng: one_round(folder, pick(rng, found), rng))


if __name__ == "__main__":
    print(dict(fuzz(*map(int, sys.argv[1:]))))  # noqa: T201
