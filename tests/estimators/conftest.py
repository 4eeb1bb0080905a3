"""What the tests of estimators share."""

import pytest


@pytest.fixture(params=["small multipass", "large multipass", "gram", "sketch"])
def solver(request, monkeypatch):
    """Every way to solve; data counts as small or large whatever its size."""
    if request.param == "large multipass":
        monkeypatch.setattr("plstream.sources.arrays.SMALL_BYTES", 0)
    return request.param.split()[-1]
