"""Archives: nested archives are folders, nothing is unpacked or followed, and truncation is detected."""

import io
import tarfile

import pytest

from plstream.data import DataError
from plstream.vision import archives, find_images


def add(tar, name, content=b"", **attributes):
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for key, value in attributes.items():
        setattr(member, key, value)
    tar.addfile(member, io.BytesIO(content))


def tar_of(members, mode="w"):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as tar:
        for name, content in members.items():
            add(tar, name, content)
    return file.getvalue()


def contents(found, start=0):
    return dict(zip(found.names[start:], (content for _, content in found.contents(start)), strict=True))


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_a_tar_of_class_tars(tmp_path, mode):
    """As ImageNet's for training: n01440764.tar has n01440764_1.JPEG, and so on."""
    classes = {f"n0{k}": {f"n0{k}_{i}.JPEG": f"{k} {i}".encode() * 400 for i in range(3)} for k in (7, 3, 5)}
    path = tmp_path / ("train.tar.gz" if ":" in mode else "train.tar")
    path.write_bytes(tar_of({f"{name}.tar": tar_of(images) for name, images in classes.items()}, mode))
    expected = {f"{name}/{image}": content for name, images in classes.items() for image, content in images.items()}
    found = find_images(path)
    assert found.names == [*expected]
    assert contents(found) == expected
    assert contents(found, 4) == dict([*expected.items()][4:])
    # The same images in folders, one of which has a tar inside, are named in the same way.
    mixed = {"n07/n07_0.JPEG": expected["n07/n07_0.JPEG"], "n03.tar": tar_of({"./n03/n03_0.JPEG": b"x"})}
    path.write_bytes(tar_of(mixed, mode))
    assert find_images(path).names == ["n07/n07_0.JPEG", "n03/n03_0.JPEG"]


def test_tars_in_tars_in_tars_are_left_alone(tmp_path):
    inner = tar_of({"c.png": b"c"})
    (tmp_path / "a.tar").write_bytes(tar_of({"b.tar": tar_of({"c.tar": inner, "b.png": b"b"})}))
    assert find_images(tmp_path / "a.tar").names == ["b/b.png"]


def test_links_and_holes_are_left_alone(tmp_path):
    secret = tmp_path / "secret.png"
    secret.write_bytes(b"secret")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        add(tar, "hard.png", type=tarfile.LNKTYPE, linkname="good.png")
        add(tar, "soft.png", type=tarfile.SYMTYPE, linkname=str(secret))
        add(tar, "pipe.png", type=tarfile.FIFOTYPE)
        add(tar, "sparse.png", b"", type=tarfile.GNUTYPE_SPARSE)
        add(tar, "../../good.png", b"good")
    found = find_images(tmp_path / "a.tar")
    assert contents(found) == {"../../good.png": b"good"}
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".png"] == ["secret.png"]


def test_headers_are_bounded(tmp_path):
    for kind in (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME):
        with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
            add(tar, "a.png", b"a")
            add(tar, "x", bytes(archives._LARGEST_HEADER + 1), type=kind)
        with pytest.raises(
            DataError, match=r"a.tar.gz is not an archive, or is damaged or truncated: a header of 1,048,577 bytes"
        ):
            find_images(tmp_path / "a.tar.gz")


def test_members_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "_LARGEST_MEMBER", 1 << 20)
    (tmp_path / "a.tar").write_bytes(tar_of({"a.png": bytes((1 << 20) + 1), "b.png": b"b"}))
    large, small = contents(find_images(tmp_path / "a.tar")).values()
    assert isinstance(large, DataError)
    assert "a.tar:a.png cannot be read: it has 1,048,577 bytes, more than 1 MiB: unpack the archive" in str(large)
    assert small == b"b"


def test_the_same_name_twice(tmp_path):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name in ("a.png", "b.png", "a.png"):
            add(tar, name, b"x")
    (tmp_path / "a.tar").write_bytes(file.getvalue())
    with pytest.raises(DataError, match=r"a.tar has several images named a.png: pack it again"):
        find_images(tmp_path / "a.tar")


@pytest.mark.parametrize("nested", [False, True])
def test_damage_in_the_middle_is_not_the_end(tmp_path, nested):
    content = bytearray(tar_of({f"{i}.png": b"x" for i in range(4)}))
    content[2048:2560] = b"\xff" * 512
    (tmp_path / "a.tar").write_bytes(tar_of({"n.tar": bytes(content)}) if nested else content)
    with pytest.raises(
        DataError, match=r"a.tar is not an archive, or is damaged or truncated: there is no header at byte 2,048"
    ):
        find_images(tmp_path / "a.tar")


def test_many_members_take_no_memory(tmp_path):
    (tmp_path / "a.tar").write_bytes(tar_of({f"{i}.png": b"" for i in range(30)}))
    with tarfile.open(tmp_path / "a.tar") as tar:
        assert [(name, len(tar.members)) for name, _ in archives._tar_images(tar)] == [
            (f"{i}.png", 0) for i in range(30)
        ]


def test_a_folder_of_archives(tmp_path):
    for name in ("n02.tar", "n01.tar"):
        (tmp_path / name).write_bytes(tar_of({"a.png": b"a"}))
    with pytest.raises(
        DataError, match=r"only archives in .*, no images: n01.tar, n02.tar. Name one of the archives, or a"
    ):
        find_images(tmp_path)
