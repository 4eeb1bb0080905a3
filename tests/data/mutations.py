"""Changes of data files: of their bytes, and of what each format says of itself, most of them still well formed.

``changes_of(name)`` gives those that suit a file of that name. Each takes the bytes of a file and a random generator,
and returns other bytes.
"""

import gzip
import io
import json
import os
import warnings
import zipfile

import numpy as np

from tests.fuzzing import cut, flip_bits, insert, pick, swap

# Where a planted pickle leaves a file, if anything ever runs it.
MARKER = "PLSTREAM_FUZZ_MARKER"
BOMB_BYTES = 300 << 20

SHAPES = [
    "()", "(0,)", "(0, 4)", "(40, 0)", "(-1, 4)", "(40, -4)", "(-40, -4)", "(160,)", "(4, 40)", "(1, 160)", "(41, 4)",
    "(39, 4)", "(40, 4, 1)", "(1,) * 4", "(2**62, 4)", "(4611686018427387904, 4)", "(4611686018427387905, 4)",
    "(18446744073709551617, 4)", "(99999999999999999999999, 1)", "(1, 99999999999)", "(40.0, 4)", "(True, 4)",
    "[40, 4]", "40", "None", "'40'", "(40, 4", "(" * 200 + ")" * 200, "(40, '4')", "(40L, 4)", "(" + "1, " * 40 + ")",
]  # fmt: skip
DTYPES = [
    "'|O'", "'O'", "'|O8'", "'<f8'", "'>f8'", "'<f4'", "'<f2'", "'<f16'", "'|b1'", "'|i1'", "'<u8'", "'<c16'",
    "'<M8[s]'", "'<m8'", "'|S0'", "'|S8'", "'<U0'", "'<U2'", "'|V0'", "'|V8'", "'<U99999999999'", "'|S2147483647'",
    "'|V2147483648'", "'f8,f8'", "[('a', '<f8')]", "[('a', '|O')]", "[('a', '<f8', (4,))]", "[]", "('<f8', (2,))",
    "('|O', (2,))", "None", "'float'", "''", "'x'", "'<f99'", "1", "{'names': ['a'], 'formats': ['O']}", "b'<f8'",
    "'T'", "'<f8' * 1000",
]  # fmt: skip
FIELDS = [
    b"1e999", b"-1e999", b"nan", b"NaN", b"inf", b"-Infinity", b"", b" ", b'""', b'"1"', b'"', b'"""', b"1\x002",
    b"\x00", b"\xff\xfe", b"\xc3\x28", b"\xef\xbb\xbf1", b"9" * 400, b"9" * 5000, b"0." + b"1" * 20_000,
    b"x" * 200_000, b"1_000", b"0x10", b"1,5", b"1\t2", b"1\r\n2", b"1\r2", b"1\n2", b"\n\n", b"'1'", b"+1", b".5",
    b"5.", b"1e", b"1e5e5", b"--1", b"true", b"NULL", b"NA", b"#1", b"1;2", b"\xd9\xa1", b"\xe2\x88\x921", b"1e-400",
    b"9007199254740993", b"-0", b"99999999999999999999", b"1\x0b2", b"1\x0c", b"1\x1c2", b"1\xc2\x852",
    b"1\xe2\x80\xa82", b"0" * 1000, b"1d5", b"1j",
]  # fmt: skip
JSON_VALUES = [
    b"[" * 50, b"[" * 5000 + b"]" * 5000, b"{" * 50, b'{"a":' * 3000 + b"1" + b"}" * 3000, b"1e999", b"-1e999", b"NaN",
    b"Infinity", b"null", b"true", b"false", b'"x"', b'""', b'"1.5"', b"[]", b"{}", b"[[1]]", b"[1, 2]", b'{"y": 1}',
    b"9" * 400, b"-" + b"9" * 4000, b"9" * 6000, b"9223372036854775808", b"1.0", b"01", b"1.", b"'1'", b'"\\ud800"',
    b'"\\u0000"', b'"\xff"', b"", b"1, 2", b"1], [2", b'1, "y": 2', b'1}\n{"y": 2', b"/**/1",
    b'"' + b"x" * 100_000 + b'"', b"1e-400", b"-0", b"nan", b"None", b"[null]", b"[NaN, 1, 2, 3]",
]  # fmt: skip
METADATA = [
    None, True, 0, 1, -1, 3, 40, 2**31, 2**40, 2**62, 2**63, 2**64, 10**30, 0.5, -1.5, "", "x", "O", "|O", "<f8",
    ">f8", "<f4", "float64", "int8", "complex128", "string", "|S4", "<U3", "<M8[s]", "NaN", "Infinity", "gzip",
    "blosc", "zstd", "bytes", "F", "C", "/", ".", "..", "x" * 5000, [], {}, [[]], [40], [40, 4], [1, 1], [0, 0],
    [-1, 4], [2**40, 2**20], [2**62, 4], [1, 2**40], [2**31, 2**31], [40, 4, 4], [40.5, 4], [None, 4], ["40", "4"],
    {"id": "gzip", "level": 1}, {"id": "pickle"}, {"id": "json2"},
    {"name": "bytes", "configuration": {"endian": "big"}}, {"name": "gzip", "configuration": {"level": 9}},
    {"name": "pickle"}, [{"id": "pickle"}], [["a", "<f8"]],
    {"name": "regular", "configuration": {"chunk_shape": [2**40, 4]}},
]  # fmt: skip
NUMBERS = [
    0, 1, 2, 3, 4, 7, 40, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62,
    2**63, 2**64 - 1, 2**64 - 8,
]  # fmt: skip


_bombs = {}


class Planted:
    """What leaves a file behind when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, (os.environ[MARKER],)


def planted_array(rng):
    """Return a .npy file of Python objects, which only a pickle can hold."""
    file = io.BytesIO()
    array = np.array([[Planted()] * 4] * pick(rng, [1, 40]), dtype=object)
    np.lib.format.write_array(file, array, allow_pickle=True)
    return file.getvalue()


def set_number(content, rng):
    """Write a number that may be a size, an offset or a count somewhere."""
    size = pick(rng, [1, 2, 4, 8])
    place = int(rng.integers(max(1, len(content) - size)))
    place -= place % size if rng.random() < 0.5 else 0
    number = pick(rng, NUMBERS) % 2 ** (8 * size)
    return content[:place] + number.to_bytes(size, "little") + content[place + size :]


def repeat(content, rng):
    """Have some stretch of the file there many times."""
    start, stop = sorted(rng.integers(len(content) + 1, size=2))
    return content[:stop] + content[start:stop] * int(rng.integers(1, 30)) + content[stop:]


def double(content, _):
    return content * 2


def nothing(*_):
    return b""


BYTES = [flip_bits, cut, insert, swap, set_number, repeat, double, nothing]


def npy_header(content, rng):
    """Change what the header of an array says, and keep its length right most of the time."""
    if rng.random() < 0.15:
        return planted_array(rng)
    begin = content.find(b"{")
    end = content.find(b"\n") + 1
    fields, text = {}, content[begin:end].decode("latin-1")
    for name in ("descr", "fortran_order", "shape"):
        # As it is, unless it is the one to be changed.
        after = text.split(f"'{name}': ", 1)[-1]
        fields[name] = after[: after.find(")") + 1] if name == "shape" else after.split(",", 1)[0]
    for _ in range(rng.integers(1, 3)):
        name = pick(rng, list(fields))
        fields[name] = pick(
            rng,
            {"descr": DTYPES, "shape": SHAPES, "fortran_order": ["True", "1", "None", "[]", "__import__('os')"]}[name],
        )
    if rng.random() < 0.1:
        fields[pick(rng, ["descr", "more", "__class__"])] = "1"
    if rng.random() < 0.1:
        del fields[pick(rng, list(fields))]
    header = "{" + ", ".join(f"'{name}': {value}" for name, value in fields.items()) + ", }"
    header = pick(
        rng, [header] * 8 + [header + "#", "exec('1')", "{" * 300, header * 2, header + " " * 20_000, "1" * 9000]
    )
    version = pick(rng, [1, 1, 1, 1, 2, 3, 4, 255])
    data = header.encode() + b" " * (-(len(header) + 11) % 64) + b"\n"
    length = len(data) if rng.random() < 0.9 else pick(rng, NUMBERS) % 2**16
    return (
        b"\x93NUMPY" + bytes([version, 0]) + length.to_bytes(2 if version == 1 else 4, "little") + data + content[end:]
    )


def npz_members(content, rng):
    """Write the archive again with members renamed, changed, planted, doubled, or far larger than they seem."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        found = {info.filename: (archive.read(info), info.compress_type) for info in archive.infolist()}
    name = pick(rng, list(found))
    data, method = found.pop(name)
    method = pick(rng, [method, method, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    action = rng.integers(6)
    if action == 0:
        name = pick(
            rng, ["X", "y", "X.npy", "../X.npy", "/X.npy", "X.npy/", "x" * 60_000 + ".npy", ".npy", "\u2028.npy"]
        )
    elif action == 1:
        data = npy_header(data, rng)
    elif action == 2:
        data = planted_array(rng)
    elif action == 3:
        return npz_bomb(pick(rng, [4, BOMB_BYTES]), name)
    elif action == 4:
        data = pick(rng, BYTES)(data, rng)
    found[name] = data, method
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for member, (bytes_of, kind) in found.items():
            archive.writestr(member, bytes_of, kind, 1)
            if action == 5 and member == name:
                _twice(archive, member, bytes_of, kind)
    return out.getvalue()


def npz_bomb(columns, name):
    """Return a small archive whose rows are all there, and many or wide: they must not be read all at once."""
    if (columns, name) not in _bombs:
        out, text = (
            io.BytesIO(),
            f"{{'descr': '|i1', 'fortran_order': False, 'shape': ({BOMB_BYTES // columns}, {columns}), }}",
        )
        with (
            zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
            archive.open(name, "w") as file,
        ):
            file.write(b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + text.ljust(117).encode() + b"\n")
            for _ in range(BOMB_BYTES >> 20):
                file.write(bytes(1 << 20))
        _bombs[columns, name] = out.getvalue()
    return _bombs[columns, name]


def _twice(archive, name, data, method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr(name, data[: len(data) // 2], method)


def zip_directory(content, rng):
    """Change sizes, offsets, methods and flags in the directory at the end of an archive."""
    places = [at for at in range(len(content)) if content[at : at + 4] in {b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"}]
    if not places:
        return set_number(content, rng)
    at = pick(rng, places) + int(rng.integers(4, 46))
    size = pick(rng, [1, 2, 4])
    return content[:at] + (pick(rng, NUMBERS) % 2 ** (8 * size)).to_bytes(size, "little") + content[at + size :]


def delimited(content, rng):
    """Replace, drop, add and move fields and lines."""
    delimiter = b"\t" if b"\t" in content else b","
    lines = content.split(b"\n")
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(lines)))
        fields = lines[at].split(delimiter)
        column = int(rng.integers(len(fields)))
        action = rng.integers(9)
        if action < 5:
            fields[column] = pick(rng, FIELDS)
        elif action == 5:
            del fields[column]
        elif action == 6:
            fields.insert(column, fields[column])
        elif action == 7:
            fields[column] = pick(rng, [b'"' + fields[column] + b'"', fields[column] + b"\r", b" " + fields[column]])
        else:
            fields = pick(rng, [[], [b" "], lines[0].split(delimiter), fields * 300, [b""] * 70_000])
        lines[at] = delimiter.join(fields)
    return b"\n".join(lines)


def line_ends(content, rng):
    text = content.replace(
        b"\n", pick(rng, [b"\r\n", b"\r", b"\n\n", b"\x0b", b" \n", b"\n\r", b"\xe2\x80\xa8", b"\x00\n"])
    )
    return pick(rng, [text, text, b"\xef\xbb\xbf" + text, text.decode(errors="replace").encode("utf-16")])


def ndjson(content, rng):
    """Replace, double and drop values, keys and lines."""
    lines = content.split(b"\n")
    for _ in range(rng.integers(1, 3)):
        at = int(rng.integers(len(lines)))
        line = lines[at]
        # Between any two of these signs there is a key, a value or part of one.
        places = [i for i, sign in enumerate(line) if sign in b"[]{},:"] or [0]
        begin, end = sorted(rng.integers(len(places), size=2))
        action = rng.integers(6)
        if action < 3:
            end = min(begin + 1, len(places) - 1)
            lines[at] = line[: places[begin] + 1] + pick(rng, JSON_VALUES) + line[places[end] :]
        elif action == 3:
            lines[at] = line[: places[end]] + line[places[begin] : places[end]] + line[places[end] :]
        elif action == 4:
            lines[at] = line[: places[begin]] + line[places[end] :]
        else:
            lines[at] = pick(rng, JSON_VALUES)
    return b"\n".join(lines)


def compressed(change):
    """Return a change of what a gzip file holds."""

    def changed(content, rng):
        return gzip.compress(change(gzip.decompress(content), rng), 1)

    changed.__name__ = f"compressed_{change.__name__}"
    return changed


def gzip_bomb(content, rng):
    """Return a small file that is a large one when it is decompressed, in one line or of one number after another."""
    sign = pick(rng, [b"0", b",", b"[", b'"', b"\x00"])
    if sign not in _bombs:
        # A file may have several parts.
        _bombs[sign] = gzip.compress(sign * (1 << 20)) * (BOMB_BYTES >> 20)
    return pick(rng, [_bombs[sign], content + _bombs[sign]])


def metadata(content, rng):
    """Change what the JSON of a store says."""
    document = json.loads(content)
    for _ in range(rng.integers(1, 3)):
        nodes = [node for node in _containers(document) if len(node)]
        if not nodes:
            return flip_bits(content, rng)
        node = pick(rng, nodes)
        key = pick(rng, list(range(len(node))) if isinstance(node, list) else list(node))
        if rng.random() < 0.15:
            del node[key]
        else:
            node[key] = pick(rng, METADATA)
    return json.dumps(document).encode()


def _containers(node):
    if isinstance(node, dict | list):
        yield node
        for part in node.values() if isinstance(node, dict) else node:
            yield from _containers(part)


def store_members(content, rng):
    """Write a zipped store again with one of its members changed."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    name = pick(rng, list(found))
    found[name] = pick(rng, changes_of(name))(found[name], rng)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for member, data in found.items():
            archive.writestr(member, data)
    return out.getvalue()


_BY_SUFFIX = {
    ".npy": [npy_header] * 8,
    ".npz": [npz_members] * 8 + [zip_directory] * 6,
    ".csv": [delimited] * 12 + [line_ends] * 2,
    ".tsv": [delimited] * 12 + [line_ends] * 2,
    ".ndjson": [ndjson] * 12 + [line_ends],
    ".jsonl": [ndjson] * 12 + [line_ends],
    ".json": [metadata] * 12,
    ".zip": [store_members] * 8 + [zip_directory] * 4,
}
_BY_NAME = {".zarray": [metadata] * 12, ".zgroup": [metadata] * 3, ".zattrs": [metadata] * 3}


def changes_of(name):
    """Return the changes that suit a file, as often as they are to be made."""
    base, _, last = name.rpartition(".")
    if last == "gz":
        return [*BYTES, *[compressed(change) for change in changes_of(base)], gzip_bomb]
    # Where numbers are is not known: in these formats sizes and offsets are everywhere.
    others = [set_number] * 4 + [flip_bits] * 3
    return BYTES + _BY_NAME.get(name.rpartition("/")[-1], _BY_SUFFIX.get(f".{last}", others))
