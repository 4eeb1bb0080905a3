"""What every test of images and networks needs."""

import pytest
from safetensors.numpy import save_file

from .tiny import photo, weights


@pytest.fixture
def Image():  # noqa: N802
    pytest.importorskip("PIL", reason="images need plstream[vision]")
    import PIL.Image

    return PIL.Image


@pytest.fixture
def _runtime():
    for package in ("PIL", "onnx", "onnxruntime"):
        pytest.importorskip(package, reason="features of images need plstream[vision]")


@pytest.fixture
def weights_file(tmp_path):
    path = tmp_path / "tiny.safetensors"
    save_file(weights(), path)
    return path


@pytest.fixture
def photos(tmp_path, Image):
    """A folder with a dozen images in two folders, and something else."""
    folder = tmp_path / "photos"
    for i in range(12):
        path = folder / f"person{i % 2}" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(photo(i)).save(path)
    (folder / "notes.md").write_text("nothing")
    return folder
