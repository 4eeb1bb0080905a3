"""The code of the guide runs, but for that of other engines."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "distributed.md"


def test_guide():
    dask = pytest.importorskip("dask", reason="needs Dask")
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) == 4
    names = {}
    with dask.config.set(scheduler="sync"):
        for block in blocks:
            exec(compile(block, str(GUIDE), "exec"), names)  # noqa: S102
        assert names["prediction"].compute().shape == (20_000,)
    assert names["model"].n_samples_seen_ == 8 * 500
