"""The code of the guide runs, but for that of other engines."""

from pathlib import Path

import pytest

from tests.test_docs import blocks_of

GUIDE = Path(__file__).parents[2] / "docs" / "distributed.md"


def test_guide():
    dask = pytest.importorskip("dask", reason="needs Dask")
    blocks = blocks_of(GUIDE)
    assert len(blocks) == 4
    names = {}
    with dask.config.set(scheduler="sync"):
        for block in blocks:
            exec(compile(block, str(GUIDE), "exec"), names)  # noqa: S102
        assert names["prediction"].compute().shape == (20_000,)
    assert names["model"].n_samples_seen_ == 8 * 500
