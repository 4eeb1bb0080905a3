"""What the tests of estimators share."""

import pytest


@pytest.fixture(params=["small multipass", "large multipass", "gram", "sketch", "small sketch"])
def solver(request, monkeypatch):
    """Every way to solve; data counts as small or large whatever its size, and sketches are compressed or not."""
    if request.param == "large multipass":
        monkeypatch.setattr("plstream.rows.blocks.SMALL_BYTES", 0)
    if request.param == "small sketch":
        monkeypatch.setattr("plstream.estimators.settings._SKETCH_SIZE", 12)
        monkeypatch.setattr("plstream.estimators.settings._SKETCH_SIZE_PER_COMPONENT", 1)
    return request.param.split()[-1]
