"""Text is read back as it was written, by every parser."""

import csv
import gzip
import io
import json
import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import plstream
from plstream import open_source
from plstream.data import delimited, text
from plstream.data.opening import list_columns

tables = arrays(
    np.float64,
    st.tuples(st.integers(1, 12), st.integers(1, 5)),
    elements=st.floats(allow_nan=False, allow_infinity=False),
)


def read(source):
    return np.concatenate([rows for rows, _ in source.blocks()])


@pytest.fixture(params=["arrow", "numpy"])
def parser(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(delimited, "_arrow_csv", lambda: None)
    else:
        pytest.importorskip("pyarrow", reason="needs pyarrow")
        monkeypatch.setattr(delimited, "_LEAST_RECORDS_OF_ARROW", 0)


@pytest.mark.usefixtures("parser")
def test_csv_round_trip(tmp_path):
    path = tmp_path / "data.csv"

    @given(tables, st.sampled_from(["\n", "\r\n", "\n\n"]), st.booleans(), st.integers(1, 5))
    @settings(max_examples=40, deadline=None)
    def check(rows, end, header, batch_size):
        lines = [",".join(f"c{j}" for j in range(rows.shape[1]))] if header else []
        lines += [",".join(map(repr, row)) for row in rows.tolist()]
        path.write_bytes(end.join(lines).encode())
        source = open_source(path, batch_size=batch_size)
        np.testing.assert_array_equal(read(source), rows)
        assert (source.feature_names is not None) == header
        assert source.count() == len(rows)

    check()


def test_ndjson_round_trip(tmp_path):
    path = tmp_path / "data.ndjson"

    @given(tables, st.sampled_from(["rows", "objects", "lists"]), st.integers(1, 5))
    @settings(max_examples=40, deadline=None)
    def check(rows, kind, batch_size):
        values = {
            "rows": rows.tolist(),
            "objects": [{f"c{j}": x for j, x in enumerate(row)} for row in rows.tolist()],
            "lists": [{"x": row} for row in rows.tolist()],
        }[kind]
        path.write_text("\n".join(map(json.dumps, values)))
        np.testing.assert_array_equal(read(open_source(path, batch_size=batch_size)), rows)

    check()


@given(st.lists(st.text(max_size=6).filter(str.strip), min_size=2, max_size=8))
@example(["0", "\0"])
@settings(max_examples=40, deadline=None)
def test_text_is_never_mistaken_for_something_else(tmp_path_factory, names):
    """Labels of any text come back, or are refused; they are never changed but for spaces around them."""
    path = tmp_path_factory.mktemp("text") / "data.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["x", "y"], *([i, name] for i, name in enumerate(names))])
    try:
        labels = np.concatenate([y for _, y in open_source(path, target="y").blocks()])
    except ValueError:
        return
    if labels.dtype.kind == "U":
        assert [label.strip() for label in labels.tolist()] == [name.strip() for name in names]
    else:
        assert labels.tolist() == [float(name) for name in names]


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (["a,b", "1,2"], ["a", "b"]),
        (["400,402,y", "0.1,0.2,3"], ["400", "402", "y"]),
        (["1,2", "3,4"], None),
        (["1,2,setosa", "3,4,virginica"], None),
        (["a,b,kind", "1,2,setosa"], ["a", "b", "kind"]),
        (['"a, b",c', "1,2"], ["a, b", "c"]),
    ],
)
def test_header(lines, names, tmp_path):
    (tmp_path / "d.csv").write_text("\n".join(lines))
    reader = open_source(tmp_path / "d.csv", columns=0)._reader
    assert reader.names == (None if names is None else tuple(names))


def test_header_can_be_given(tmp_path):
    (tmp_path / "d.csv").write_text("1;2\n3;4\n")
    source = open_source(tmp_path / "d.csv", header=True, delimiter=";")
    assert source.feature_names == ["1", "2"]
    np.testing.assert_array_equal(read(source), [[3, 4]])


@pytest.mark.usefixtures("parser")
def test_quotes_and_byte_order_mark(tmp_path):
    path = tmp_path / "d.csv"
    path.write_bytes(b'\xef\xbb\xbfa,b,label\r\n1,"2","one\nline, and ""another"""\r\n3, 4 ,plain\r\n')
    (block,) = open_source(path, target="label").blocks()
    np.testing.assert_array_equal(block[0], [[1, 2], [3, 4]])
    assert block[1].tolist() == ['one\nline, and "another"', "plain"]


@pytest.mark.usefixtures("parser")
def test_records_across_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "_READ_BYTES", 7)
    rows = np.arange(60.0).reshape(20, 3) / 7
    lines = [",".join([*map(repr, row), f'"{i}\n"']) for i, row in enumerate(rows.tolist())]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    source = open_source(tmp_path / "d.csv", target=3, batch_size=6)
    np.testing.assert_array_equal(read(source), rows)


QUOTED = ['1,"a"', '2,"b\nc"', '3,"d""\ne"', "4,f", "", "  ", '5,"\n\n"']


@given(st.lists(st.sampled_from(QUOTED), min_size=5, max_size=40), st.integers(1, 4000))
@settings(max_examples=60, deadline=None)
def test_records_are_the_same_however_little_room_there_is(lines, room):
    content = "1,x\n" * 6 + "\n".join(lines)
    reader = delimited.CsvReader(io.BytesIO(content.encode()), "the text", header=False)
    reader.room = room
    found = [reader._fields(record) for group in reader._groups() for record in group]
    assert found == [row for row in csv.reader(io.StringIO(content)) if "".join(row).strip()]


def test_integers_followed_by_other_numbers(tmp_path):
    (tmp_path / "d.csv").write_text("x,y\n" + "1,1\n" * 200 + "1,2.5\n")
    kinds = [y.dtype.kind for _, y in open_source(tmp_path / "d.csv", target="y", batch_size=100).blocks()]
    assert kinds == ["i", "i", "f"]


def test_large_labels_are_not_rounded(tmp_path):
    (tmp_path / "d.csv").write_text(f"x,y\n1,{2**53 + 1}\n2,{2**53 + 2}\n")
    with pytest.raises(ValueError, match="row 0, column 'y', an integer is too large"):
        list(open_source(tmp_path / "d.csv", target="y").blocks())


def labels_of(path, **options):
    return np.concatenate([y for _, y in open_source(path, target="y", **options).blocks()]).tolist()


@pytest.mark.parametrize("quoted", [False, True])
def test_spaces_around_labels_do_not_count(tmp_path, quoted):
    (tmp_path / "d.csv").write_text("x,y\n1, cat\n2,cat \n3," + ('"dog"\n' if quoted else "dog\n"))
    assert labels_of(tmp_path / "d.csv") == ["cat", "cat", "dog"]


def test_a_missing_label_is_no_class(tmp_path):
    (tmp_path / "d.csv").write_text("x,y\n1,cat\n2,\n3,dog\n")
    with pytest.raises(ValueError, match="row 1, column 'y', there is a missing value"):
        labels_of(tmp_path / "d.csv")


@pytest.mark.parametrize("missing", ["NA", "?", "n/a"])
def test_a_missing_value_is_no_name(tmp_path, missing):
    (tmp_path / "d.csv").write_text(f"1.0,{missing},3\n4,5,6\n7,8,9\n")
    with pytest.raises(ValueError, match="row 0, column 1"):
        read(open_source(tmp_path / "d.csv"))


@pytest.mark.parametrize("row", [0, 3, 500])
@pytest.mark.parametrize("missing", ["NA", "n/a", "#N/A", "NULL", "None", "?", "-", '"NA"', "nan", ""])
def test_missing_values_are_the_same_in_all_rows(tmp_path, missing, row):
    rows = ["1,2,3"] * 1000
    rows[row] = f"{missing},5,6"
    (tmp_path / "d.csv").write_text("\n".join(["a,b,y", *rows]))
    source = open_source(tmp_path / "d.csv", target="y")
    with pytest.raises(ValueError, match=f"row {row}, column 'a', there is (a missing value|NaN)"):
        read(source)
    source.allow_missing = True
    X = np.concatenate([X for X, _ in source.blocks()])
    assert np.argwhere(np.isnan(X)).tolist() == [[row, 0]]


@pytest.mark.parametrize("word", ["NA", ""])
def test_a_column_that_begins_without_values_has_numbers(tmp_path, word):
    (tmp_path / "d.csv").write_text("a,y\n" + f"{word},1\n" * 200 + "7,2\n")
    source = open_source(tmp_path / "d.csv", target="y")
    source.allow_missing = True
    X = np.concatenate([X for X, _ in source.blocks()])
    assert np.isnan(X[:-1]).all()
    assert X[-1] == 7


@pytest.mark.parametrize("label", ["none", "-", "?"])
def test_sorted_labels_may_begin_with_a_word_for_missing_values(tmp_path, label):
    (tmp_path / "d.csv").write_text("x,y\n" + f"1,{label}\n" * 200 + "2,some\n")
    assert labels_of(tmp_path / "d.csv") == [label] * 200 + ["some"]
    with pytest.raises(ValueError, match=f"row 0, column 'y', there is '{re.escape(label)}', which is not a number"):
        open_source(tmp_path / "d.csv")


def test_dates_may_be_missing(tmp_path):
    (tmp_path / "d.csv").write_text("day,none,y\nNA,-,1\n2024-05-01,-,2\n")
    assert [column.kind for column in list_columns(tmp_path / "d.csv")] == ["date", "text", "integer"]


@pytest.mark.parametrize("quoted", [False, True])
def test_text_is_found_behind_missing_values_that_are_allowed(tmp_path, quoted):
    name = '"a"' if quoted else "a"
    (tmp_path / "d.csv").write_text(f"{name},b\n,2\n" + "1,2\n" * 200 + "x,3\n")
    source = open_source(tmp_path / "d.csv")
    source.allow_missing = True
    with pytest.raises(ValueError, match="row 201, column 'a', there is 'x', which is not a number"):
        read(source)


@pytest.mark.parametrize("number", ["1,5", "1.234,5", "-1,234,567.8", "1,234"])
@pytest.mark.parametrize("n_columns", [1, 2])
def test_numbers_with_commas_are_named(tmp_path, number, n_columns):
    fields = [number] * n_columns + ["2"] * (3 - n_columns)
    (tmp_path / "d.csv").write_text("a;b;c\n" + ";".join(fields) + "\n1;2;3\n")
    with pytest.raises(ValueError, match=f"row 0, column 'a', there is '{number}', a number with a comma"):
        open_source(tmp_path / "d.csv")


def test_a_row_of_tabs_is_not_blank(tmp_path):
    (tmp_path / "d.tsv").write_text("1\t2\t3\n\t\t\n4\t5\t6\n")
    with pytest.raises(ValueError, match="row 1, column 0, there is a missing value"):
        read(open_source(tmp_path / "d.tsv"))


def test_quotation_marks_within_fields_have_no_meaning(tmp_path):
    lines = ['5" pipe' if i == 3 else f'"a, ""{i}""\nb"' for i in range(20_000)]
    (tmp_path / "d.csv").write_text("x,y\n" + "\n".join(f"{i},{line}" for i, line in enumerate(lines)))
    expected = ['5" pipe' if i == 3 else f'a, "{i}"\nb' for i in range(20_000)]
    assert labels_of(tmp_path / "d.csv") == expected


def test_wide_records_are_parsed_as_they_arrive(tmp_path, monkeypatch):
    monkeypatch.setattr(plstream.data.text, "_READ_BYTES", 1 << 16)
    rows = np.arange(400 * 500).reshape(400, 500)
    np.savetxt(tmp_path / "d.csv", rows, fmt="%d", delimiter=",")
    source = open_source(tmp_path / "d.csv", columns=[7, 3])
    largest = max(len(X) for X, _ in source._reader.pieces(np.array([7, 3]), np.empty(0, np.intp), 0, 1 << 16))
    assert largest < 100
    np.testing.assert_array_equal(read(source), rows[:, [7, 3]])


@pytest.mark.parametrize("name", ["d.CSV.GZ", "d.csv"])
def test_compressed_whatever_the_name(tmp_path, name):
    with gzip.open(tmp_path / name, "wt") as file:
        file.write("a,b\n1,2\n3,4\n")
    source = open_source(tmp_path / name, format="csv")
    np.testing.assert_array_equal(read(source), [[1, 2], [3, 4]])


def test_a_compressed_stream_is_refused():
    with pytest.raises(ValueError, match="gunzip"):
        open_source(io.BytesIO(gzip.compress(b"a,b\n1,2\n")), format="csv")


def test_a_pipe_that_starts_again_is_known_however_it_is_cut():
    content = b"x,y\n" + b"1,2\n" * 10 + b'3,"4"\n'

    class Slow(io.BytesIO):
        def read1(self, _size=-1):
            return super().read1(25)

    first, second, other = (
        kind(text) for kind, text in ((io.BytesIO, content), (Slow, content), (Slow, content.replace(b"1,2", b"1,3")))
    )
    first, second, other = (open_source(file, "y", format="csv").beginning() for file in (first, second, other))
    assert first == second != other
