"""Blocks and tiles cover every row once."""

import numpy as np
import pytest
from scipy import sparse

from plstream._core.tiles import (
    LARGEST_BLOCK_BYTES,
    SMALLEST_BLOCK_BYTES,
    default_block_rows,
    dense_tiles,
    require_finite,
    row_bytes,
)
from plstream.rows import ArrayRows, Block

X = np.arange(60.0).reshape(20, 3)


@pytest.mark.parametrize("rows", [X, np.asfortranarray(X), sparse.csr_array(X), sparse.csc_matrix(X), X.astype(int)])
@pytest.mark.parametrize("batch_size", [1, 7, 20, 100])
def test_blocks(rows, batch_size):
    source = ArrayRows(rows, X[:, :2], np.arange(20.0), batch_size=batch_size)
    for _ in range(2):
        blocks = list(source.blocks())
        dense = [block.X.toarray() if sparse.issparse(block.X) else block.X for block in blocks]
        np.testing.assert_array_equal(np.concatenate(dense), X[1:])
        np.testing.assert_array_equal(np.concatenate([block.Y for block in blocks]), X[1:, :2])
        np.testing.assert_array_equal(np.concatenate([block.weight for block in blocks]), np.arange(1.0, 20))
    assert (source.n_rows, source.n_columns, source.n_targets) == (19, 3, 2)


def test_dense_blocks_are_views():
    assert all(np.shares_memory(block.X, X) for block in ArrayRows(X, X[:, :1], batch_size=6).blocks())


def test_present_rows():
    block = Block(X, X[:, :1], np.ones(20))
    assert block.present() is block
    weight = np.zeros(20)
    weight[[3, 5]] = 1
    np.testing.assert_array_equal(block._replace(weight=weight).present().X, X[[3, 5]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "rows", [X, np.asfortranarray(X), sparse.csr_array(X), X.astype(np.int8), X.astype(np.float32)]
)
def test_tiles(rows, dtype, monkeypatch):
    monkeypatch.setattr("plstream._core.tiles.TILE_BYTES", 1)
    monkeypatch.setattr("plstream._core.tiles.MIN_TILE_ROWS", 6)
    shift = np.array([1, 2, 3], dtype=dtype)
    copied = np.full((20, 3), np.nan)
    for part, tile in dense_tiles(rows, shift):
        assert tile.dtype == dtype
        assert tile.flags.c_contiguous
        copied[part] = tile
    np.testing.assert_array_equal(copied, X - shift)


def test_block_sizes():
    wide = np.broadcast_to(np.float64(0), (1000, 10**6))
    assert default_block_rows(wide) * row_bytes(wide) <= LARGEST_BLOCK_BYTES
    tall = np.broadcast_to(np.float64(0), (10**6, 10))
    assert default_block_rows(tall) * row_bytes(tall) <= SMALLEST_BLOCK_BYTES
    assert ArrayRows(tall, tall[:, :1]).batch_size == default_block_rows(tall)
    assert ArrayRows(X, X[:, :1]).batch_size == len(X)


def test_blocks_that_have_to_be_copied_are_small():
    large = np.broadcast_to(np.float64(0), (10**5, 10**3))
    weight = np.ones(10**5)
    assert ArrayRows(large, large[:, :1], weight).batch_size == default_block_rows(large)
    weight[3] = 0
    assert ArrayRows(large, large[:, :1], weight).batch_size * row_bytes(large) <= SMALLEST_BLOCK_BYTES
    assert default_block_rows(np.broadcast_to(np.float64(0), (2, 10**8))) == 1
    assert default_block_rows(sparse.csr_array((5, 4))) > 0


def test_require_finite():
    require_finite("X", X)
    require_finite("X", sparse.csr_array(X))
    require_finite("X", X.astype(int))
    bad = X.copy()
    bad[11, 2] = np.inf
    for rows in (bad, sparse.csr_array(bad)):
        with pytest.raises(ValueError, match=r"X contains infinity \(first in row 11, column 2\)"):
            require_finite("X", rows)
