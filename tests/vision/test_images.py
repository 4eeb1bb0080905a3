"""Images are found in all supported locations, or refused by name."""

import tarfile
import zipfile

import numpy as np
import pytest

from plstream.data import DataError
from plstream.vision import find_images

from .tiny import read_image

NAMES = [f"person{k}/{i}.png" for k in range(2) for i in range(k, 12, 2)]


def archive_of(folder, path, names):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                archive.write(folder / name, name)
    else:
        with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
            for name in names:
                archive.add(folder / name, name, recursive=False)
    return path


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "zip"])
def test_archives_are_read_in_their_order(photos, tmp_path, ending):
    order = [NAMES[i] for i in np.random.default_rng(0).permutation(12)]
    (photos / ".hidden.png").write_bytes(b"")
    path = archive_of(photos, tmp_path / f"photos.{ending}", [*order, "notes.md", "person0", ".hidden.png"])
    found = find_images(path)
    assert found.names == [name for name in order if name in found.names]
    assert sorted(found.names) == sorted(NAMES)
    for start in (0, 5):
        for name, (where, content) in zip(found.names[start:], found.contents(start), strict=True):
            assert where == f"{path}:{name}"
            assert content == (photos / name).read_bytes()


def test_folders_patterns_lists_and_paths(photos, tmp_path):
    assert find_images(photos).names == NAMES
    assert find_images(photos / "person*" / "1*.png").names == [
        str(photos / name) for name in NAMES if name.split("/")[1].startswith("1")
    ]
    assert find_images(photos / NAMES[3]).names == [NAMES[3].split("/")[1]]
    (tmp_path / "list.txt").write_text("photos/person1/11.png\r\n\nphotos/person0/0.png\n")
    found = find_images(tmp_path / "list.txt")
    assert found.names == ["photos/person1/11.png", "photos/person0/0.png"]
    assert [content for _, content in found.contents(1)] == [photos / "person0" / "0.png"]
    assert len(find_images(iter([photos / NAMES[0]]))) == 1


def test_a_folder_with_the_name_of_a_pattern(photos):
    odd = photos.rename(photos.with_name("a[1]"))
    assert find_images(odd).names == NAMES


def test_fingerprints_change_with_the_images(photos, tmp_path):
    found = find_images(photos)
    before = found.fingerprint()
    assert find_images(photos).fingerprint() == before
    (photos / NAMES[0]).write_bytes((photos / NAMES[1]).read_bytes())
    assert find_images(photos).fingerprint() != before
    (photos / NAMES[0]).unlink()
    with pytest.raises(FileNotFoundError, match=r"There is no file .*person0/0.png"):
        found.fingerprint()
    one = find_images(archive_of(photos, tmp_path / "a.tar", NAMES[1:3])).fingerprint()
    assert find_images(archive_of(photos, tmp_path / "a.tar", NAMES[2:4])).fingerprint() != one


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.tar", b"nothing", "not an archive, or is damaged or truncated"),
        ("a.zip", b"nothing", "not an archive, or is damaged or truncated"),
        ("a.tar.gz", b"\x1f\x8b\x08nothing", "not an archive, or is damaged or truncated"),
        ("a.bin", b"\xff\xfe\x00", "does not contain images"),
        ("a.txt", b"\n \n", "There are no images in"),
        ("a.txt", "a\u2028b.png".encode(), "line break"),
        ("a.txt", b"", "is empty"),
    ],
)
def test_places_without_images(name, content, words, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=words):
        find_images(tmp_path / name)


def test_missing_places(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        find_images(tmp_path / "none")
    with pytest.raises(DataError, match=r"no images in .*: names of images end in .jpg"):
        find_images(tmp_path / "*.jpg")
    with pytest.raises(DataError, match="no images in"):
        find_images(tmp_path)


@pytest.mark.parametrize("ending", ["tar", "zip"])
def test_truncated_archives(photos, tmp_path, ending):
    path = archive_of(photos, tmp_path / f"a.{ending}", NAMES)
    found = find_images(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])

    def read_all():
        for where, part in found.contents():
            read_image(part, where)

    with pytest.raises(DataError, match=r"truncated|cannot be read"):
        read_all()


def test_a_damaged_member_has_a_name(photos, tmp_path):
    path = archive_of(photos, tmp_path / "a.zip", NAMES[:3])
    content = bytearray(path.read_bytes())
    middle = content.find(NAMES[1].encode()) + 60
    content[middle : middle + 9] = b"\xff" * 9
    path.write_bytes(content)
    parts = [part for _, part in find_images(path).contents()]
    assert [type(part) for part in parts] == [bytes, DataError, bytes]
    assert NAMES[1] in str(parts[1])
