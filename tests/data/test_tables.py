"""Raw tables: conditions on rows, categories, partitions, patterns, weights, and errors with advice."""

import json
from datetime import date

import numpy as np
import pytest

from plstream import (
    CCIPCA,
    CIPLS,
    IncrementalPLS,
    IncrementalPLSClassifier,
    IncrementalPLSClassifierCV,
    IncrementalPLSCV,
    load,
    open_source,
    save,
)
from plstream.data import DataError
from plstream.data.where import Where

from .test_values import rows_and_labels

rng = np.random.default_rng(11)
N = 90
YEAR = np.repeat([2019, 2020, 2021], 30)
KIND = np.array(["red", "green", "blue"])[rng.integers(0, 3, N)]
X = rng.normal(size=(N, 3))
WEIGHT = rng.integers(0, 4, N).astype(float)
ONE_HOT = (KIND[:, None] == np.array(["blue", "green", "red"])).astype(float)
y = X @ [1.0, -1.0, 2.0] + ONE_HOT @ [0.0, 3.0, 1.0] + 0.05 * rng.normal(size=N)
NAMES = ["s_1", "s_2", "other", "kind", "year", "w", "y"]


def columns():
    return dict(zip(NAMES, [*X.T, KIND, YEAR, WEIGHT, y], strict=True))


def write_csv(folder):
    lines = [",".join(NAMES)]
    lines += [",".join(map(str, row)) for row in zip(*(column.tolist() for column in columns().values()), strict=True)]
    (folder / "d.csv").write_text("\n".join(lines))
    return folder / "d.csv"


def write_ndjson(folder):
    import json

    rows = zip(*(column.tolist() for column in columns().values()), strict=True)
    (folder / "d.ndjson").write_text("\n".join(json.dumps(dict(zip(NAMES, row, strict=True))) for row in rows))
    return folder / "d.ndjson"


def write_parquet(folder):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns()), folder / "d.parquet", row_group_size=10)
    return folder / "d.parquet"


def write_partitions(folder):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table(columns())
    for year in (2019, 2020, 2021):
        part = folder / "parts" / f"year={year}"
        part.mkdir(parents=True)
        rows = table.filter(pa.array(year == YEAR)).drop_columns(["year"])
        pq.write_table(rows, part / "0.parquet")
    return folder / "parts"


def in_memory(_folder):
    return pytest.importorskip("pyarrow").table(columns())


TABLES = [write_csv, write_ndjson, write_parquet, write_partitions, in_memory]


@pytest.mark.parametrize("write", TABLES)
def test_conditions(write, tmp_path):
    data, features = write(tmp_path), ["s_1", "s_2", "other"]
    for text, mask in {
        "year >= 2020": YEAR >= 2020,
        "year == 2021 and kind == 'red'": (YEAR == 2021) & (KIND == "red"),
        "kind in ('red', 'blue') or not s_1 < 0": (KIND != "green") | (X[:, 0] >= 0),
        "0 <= s_1 < 1": (X[:, 0] >= 0) & (X[:, 0] < 1),
        "2020 > year": YEAR < 2020,
        "kind not in ['red']": KIND != "red",
    }.items():
        source = open_source(data, target="y", columns=features, where=text, batch_size=16)
        for _ in range(2):
            rows, target = rows_and_labels(source)
            np.testing.assert_array_equal(rows, X[mask])
            np.testing.assert_array_equal(target, y[mask])
        assert source.count() == source.n_rows == mask.sum()
        np.testing.assert_array_equal(np.concatenate([part for part, _ in source.blocks(7)]), X[mask][7:])
    by_tuples = open_source(data, target="y", columns=features, where=[("year", ">", 2019), ("kind", "==", "red")])
    np.testing.assert_array_equal(rows_and_labels(by_tuples)[0], X[(YEAR > 2019) & (KIND == "red")])
    # The constants are kept for all blocks and reads.
    by_iterator = open_source(data, columns=features, where=[("year", "in", iter([2019, 2020]))], batch_size=16)
    for _ in range(2):
        np.testing.assert_array_equal(rows_and_labels(by_iterator)[0], X[YEAR < 2021])


@pytest.mark.parametrize("write", TABLES)
def test_conditions_and_categories_in_a_fit(write, tmp_path):
    mask = YEAR >= 2020
    source = open_source(
        write(tmp_path), target="y", exclude=["year", "w"], categorical="kind", where="year >= 2020", batch_size=20
    )
    assert source.feature_names == ["s_1", "s_2", "other", "kind=blue", "kind=green", "kind=red"]
    expected = IncrementalPLS(3).fit(np.column_stack([X, ONE_HOT])[mask], y[mask])
    model = IncrementalPLS(3).fit(source)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    assert model.n_samples_seen_ == mask.sum()


@pytest.mark.parametrize("write", TABLES)
def test_levels_are_kept_in_the_model(write, tmp_path):
    data = write(tmp_path)
    model = IncrementalPLS(3).fit(open_source(data, target="y", exclude=["year", "w"], categorical=["kind"]))
    save(model, tmp_path / "model.plstream")
    model = load(tmp_path / "model.plstream")
    again = open_source(data, columns=model.feature_names_in_.tolist())
    rows = np.column_stack([X, ONE_HOT])
    expected = IncrementalPLS(3).fit(rows, y).predict(rows)
    np.testing.assert_allclose(model.predict(again), expected, rtol=1e-9)


def test_levels_that_appear_later(tmp_path):
    data = write_csv(tmp_path)
    given = open_source(data, columns=["s_1"], categorical={"kind": ["red", "violet"]})
    assert given.feature_names == ["s_1", "kind=red", "kind=violet"]
    rows = rows_and_labels(given)[0]
    np.testing.assert_array_equal(rows[:, 1:], np.column_stack([KIND == "red", np.zeros(N)]))
    assert given.unseen_levels == {"kind": int((KIND != "red").sum())}
    model = IncrementalPLS(1).fit(open_source(data, target="y", columns=["s_1"], categorical={"kind": ["red", "blue"]}))
    with pytest.warns(UserWarning, match=r"rows have a level of 'kind' that the model does not know"):
        model.predict(open_source(data, columns=model.feature_names_in_.tolist()))


def test_integers_as_categories(tmp_path):
    source = open_source(write_csv(tmp_path), columns=["other"], categorical="year")
    assert source.feature_names == ["other", "year=2019", "year=2020", "year=2021"]
    np.testing.assert_array_equal(rows_and_labels(source)[0][:, 1:], YEAR[:, None] == np.array([2019, 2020, 2021]))


def test_too_many_levels(tmp_path):
    (tmp_path / "d.csv").write_text("a,name\n" + "\n".join(f"{i},x{i}" for i in range(1200)))
    with pytest.raises(DataError, match="more than 1,000 levels: leave it out by exclude="):
        open_source(tmp_path / "d.csv", categorical="name")
    with (tmp_path / "d.csv").open("rb") as file, pytest.raises(DataError, match=r"categorical=\{'name': \[...\]\}"):
        open_source(file, format="csv", categorical="name")


def test_groups_of_rows_are_passed_over(tmp_path):
    path = write_parquet(tmp_path)
    everything, some = open_source(path, columns=["s_1"]), open_source(path, columns=["s_1"], where="year == 2021")
    assert len(everything._reader._ends) == 9
    assert len(some._reader._ends) == 3
    assert open_source(path, columns=["s_1"], where="year == 1999").count() == 0
    parts = open_source(write_partitions(tmp_path), columns=["s_1"], where="year > 2019")
    assert len(parts._reader.readers) == 2


def test_partitions(tmp_path):
    folder = write_partitions(tmp_path)
    source = open_source(folder, target="year", columns=["s_*"])
    rows, years = rows_and_labels(source)
    np.testing.assert_array_equal(rows, X[:, :2])
    np.testing.assert_array_equal(years, YEAR)
    as_feature = open_source(folder, target="y", columns=["year", "s_1"])
    np.testing.assert_array_equal(rows_and_labels(as_feature)[0], np.column_stack([YEAR, X[:, 0]]))
    assert open_source(folder, target="y", exclude=["kind", "w"]).feature_names == ["s_1", "s_2", "other", "year"]
    (folder / "more").mkdir()
    with pytest.raises(DataError, match="has folders in it"):
        open_source(folder, target="y")


def test_a_partition_column_in_some_of_the_files(tmp_path):
    folder = write_partitions(tmp_path)
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns()).filter(pa.array(YEAR == 2020)), folder / "year=2020/0.parquet")
    with pytest.raises(
        DataError, match=r"year=2020/0.parquet does not match .*year=2019/0.parquet: it has the additional year"
    ):
        open_source(folder, target="y")


@pytest.mark.parametrize("write", TABLES)
@pytest.mark.parametrize("solver", ["auto", "gram"])
def test_weights(write, solver, tmp_path):
    source = open_source(
        write(tmp_path), target="y", columns=["s_1", "s_2", "other"], weight="w", ids="kind", batch_size=20
    )
    model = IncrementalPLS(2, solver=solver).fit(source)
    expected = IncrementalPLS(2, solver=solver).fit(X, y, sample_weight=WEIGHT)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-8)
    assert model.n_samples_seen_ == expected.n_samples_seen_
    assert source.roles == ("weight", "ids")
    _, _, weight, kind = (np.concatenate(parts) for parts in zip(*source.records(), strict=True))
    np.testing.assert_array_equal(weight, WEIGHT)
    np.testing.assert_array_equal(kind, KIND)
    labels = open_source(write_csv(tmp_path), target="kind", columns=["s_*"], weight="w")
    by_hand = IncrementalPLSClassifier(2).fit(X[:, :2], KIND, sample_weight=WEIGHT)
    found = IncrementalPLSClassifier(2).fit(labels)
    np.testing.assert_allclose(found.x_rotations_, by_hand.x_rotations_, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("write", TABLES)
@pytest.mark.parametrize("batch_size", [7, 50])
def test_rows_of_weight_zero_are_absent(write, batch_size, tmp_path):
    data, present = write(tmp_path), WEIGHT > 0
    assert not present.all()

    def source(**options):
        features = {"columns": ["s_1", "s_2", "other"], "weight": "w", "batch_size": batch_size}
        return open_source(data, **{"target": "y"} | features | options)

    for forgetting in (IncrementalPLS(2, forgetting=0.9), IncrementalPLS(2, forgetting=0.9, solver="gram")):
        expected = forgetting.fit(X[present], y[present], sample_weight=WEIGHT[present]).coef_
        np.testing.assert_allclose(forgetting.fit(source()).coef_, expected, rtol=1e-9)
    for solver, length in [("auto", 1), ("gram", 1), ("auto", 4)]:
        model = IncrementalPLSCV(3, cv=4, solver=solver, block_length=length)
        model.fit(X[present], y[present], sample_weight=WEIGHT[present])
        expected, held_out = model.cv_results_["mean_test_rmse"], model.predict_held_out(X[present])
        for learn in (model.fit, IncrementalPLSCV(3, cv=4, solver=solver, block_length=length).partial_fit):
            found = learn(source())
            np.testing.assert_allclose(found.cv_results_["mean_test_rmse"], expected, rtol=1e-9)
            np.testing.assert_allclose(found.predict_held_out(source()), held_out, rtol=1e-8)
    of_groups = IncrementalPLSCV(3, cv=2).fit(X, y, sample_weight=WEIGHT, groups=YEAR)
    found = IncrementalPLSCV(3, cv=2).fit(source(groups="year"))
    expected = of_groups.cv_results_["mean_test_rmse"]
    np.testing.assert_allclose(found.cv_results_["mean_test_rmse"], expected, rtol=1e-9)
    expected = of_groups.predict_held_out(X[present], groups=YEAR[present])
    np.testing.assert_allclose(found.predict_held_out(source(groups="year")), expected, rtol=1e-8)
    # All rows are predicted.
    np.testing.assert_allclose(found.predict(source()), of_groups.predict(X), rtol=1e-8)
    labels = source(target="kind")
    for model in (IncrementalPLSClassifierCV(2, cv=3), IncrementalPLSClassifier(2, class_weight="balanced")):
        expected = model.fit(X[present], KIND[present], sample_weight=WEIGHT[present]).predict_proba(X)
        np.testing.assert_allclose(model.fit(labels).predict_proba(labels), expected, rtol=1e-8)
    expected = IncrementalPLSClassifierCV(2, cv=3).fit(X[present], KIND[present], sample_weight=WEIGHT[present])
    found = IncrementalPLSClassifierCV(2, cv=3).fit(labels)
    accuracies = expected.held_out_accuracy(X[present], KIND[present], sample_weight=WEIGHT[present])
    np.testing.assert_allclose(found.held_out_accuracy(labels), accuracies, rtol=1e-12)


@pytest.mark.parametrize("solver", ["auto", "gram"])
@pytest.mark.parametrize("model", [IncrementalPLS(2, missing="model"), IncrementalPLSCV(2, missing="model")])
def test_a_weight_must_not_be_missing(model, solver, tmp_path):
    """Even if other values may be."""
    (tmp_path / "d.csv").write_text("a,b,y,w\n" + "1,2,3,1\n4,,6,1\n7,1,2,\n" + "3,5,1,2\n2,2,4,1\n" * 4)
    source = open_source(tmp_path / "d.csv", target="y", weight="w")
    with pytest.raises(DataError, match=r"d\.csv.*, row 2, the weight is missing: it must be zero or more"):
        model.set_params(solver=solver).fit(source)
    with pytest.raises(DataError, match=r"row 2, the weight is missing"):
        model.partial_fit(source)


@pytest.mark.parametrize("model", [CIPLS(2), CCIPCA(2)])
def test_weights_are_not_ignored_by_methods_without(model, tmp_path):
    with pytest.raises(ValueError, match=r"gives all rows the same weight: open .*d.csv without weight="):
        model.fit(open_source(write_csv(tmp_path), target="y", columns=["s_1", "s_2"], weight="w"))


def test_patterns_and_names(tmp_path):
    data = write_csv(tmp_path)
    assert open_source(data, columns="s_*").feature_names == ["s_1", "s_2"]
    assert open_source(data, columns=["other", "s_?"]).feature_names == ["other", "s_1", "s_2"]
    assert open_source(data, exclude=["s_*", "kind", "[yw]*"]).feature_names == ["other"]
    assert open_source(data, target="y", columns="[sy]*", exclude="year").feature_names == ["s_1", "s_2"]
    with pytest.raises(DataError, match=r"No column of .* matches 't_\*'"):
        open_source(data, columns="t_*")
    with pytest.raises(DataError, match=r"There is no column 'othr' in .*: did you mean 'other'\?"):
        open_source(data, target="othr")
    (tmp_path / "wide.csv").write_text(",".join(f"c{i}" for i in range(30)) + ",moisture\n" + ",".join(["1"] * 31))
    with pytest.raises(DataError, match=r"and 23 more, the last moisture\."):
        open_source(tmp_path / "wide.csv", target="y")


def test_unsuitable_columns_are_named_at_once(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    day = pa.array([18000, 18001], pa.date32())
    pq.write_table(pa.table({"day": day, "a": [1.0, 2], "name": ["u", "v"], "b": [1, 2]}), tmp_path / "d.parquet")
    with pytest.raises(DataError, match=r"'day' \(.*\), 'name' \(text\): .*exclude=\['day', 'name'\]"):
        open_source(tmp_path / "d.parquet")
    with pytest.raises(DataError, match=r"'day' .*"):
        open_source(tmp_path / "d.parquet", exclude="name")


def test_delimiters_and_an_index_are_noticed(tmp_path):
    for sign in ";\t|":
        (tmp_path / "d.csv").write_text(f"a{sign}b\n1{sign}2\n3{sign}4\n")
        assert rows_and_labels(open_source(tmp_path / "d.csv"))[0].tolist() == [[1, 2], [3, 4]]
        with (tmp_path / "d.csv").open("rb") as file, pytest.raises(DataError, match="pass delimiter="):
            open_source(file, format="csv")
    pd = pytest.importorskip("pandas", reason="needs pandas")
    pd.DataFrame({"a": [1.5, 2], "b": [3.5, 4]}).to_csv(tmp_path / "d.csv")
    assert open_source(tmp_path / "d.csv").feature_names == ["a", "b"]
    assert open_source(tmp_path / "d.csv", columns=range(3)).feature_names == ["", "a", "b"]
    (tmp_path / "e.csv").write_bytes((tmp_path / "d.csv").read_bytes())
    assert open_source(tmp_path / "*.csv").feature_names == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [
        "year",
        "year >",
        "__import__('os')",
        "year > other",
        "(lambda: 1)()",
        "year == [1]",
        "year in ((2019, 2020), 2021)",
        "year in [[2020]]",
        "year is 3",
        "1 < 2",
        "",
        "a.b > 1",
    ],
)
def test_conditions_are_never_run(text, tmp_path):
    if text == "year":
        assert sorted(Where.of(text).names()) == ["year"]
        return
    with pytest.raises(DataError, match=r"is not a condition"):
        open_source(write_csv(tmp_path), columns="s_1", where=text)


def test_invalid_conditions(tmp_path):
    data = write_csv(tmp_path)
    with pytest.raises(DataError, match="holds text, with numbers"):
        rows_and_labels(open_source(data, columns="s_1", where="kind > 3"))
    with pytest.raises(DataError, match="holds numbers, with text"):
        rows_and_labels(open_source(data, columns="s_1", where="year == 'x'"))
    with pytest.raises(DataError, match="There is no column 'month'"):
        open_source(data, columns="s_1", where="month == 3")
    not_constants = [("year", "in", 3)], [("year", ">", None)], [("year", ">", [1])], [("year", "in", [[2020]])]
    for no_condition in (3, [], [("year", "is", 3)], *not_constants):
        with pytest.raises(TypeError, match="must be a string such as"):
            open_source(data, columns="s_1", where=no_condition)
    with pytest.raises(DataError, match="the target is a column of the same table"):
        open_source(data, target=y, columns="s_1", where="year > 3")
    with pytest.raises(DataError, match="has no rows with where='year > 3000': change the condition"):
        IncrementalPLS(1).fit(open_source(data, target="y", columns="s_1", where="year > 3000"))


GAPS = {
    "text": ["a", None, "b", "a"],
    "integers": [1, None, 2, 1],
    "numbers": [1.5, None, 2.5, 1.5],
    "booleans": [True, None, False, True],
}


@pytest.mark.parametrize("kind", GAPS)
@pytest.mark.parametrize("form", ["parquet", "csv", "ndjson", "frame", "partitions"])
def test_missing_categories_have_zeros(tmp_path, kind, form):
    """In every format, and by the same names as where none is missing."""
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    import pyarrow.parquet as pq

    values = GAPS[kind]
    table = pa.table({"x": [1.0, 2.0, 3.0, 5.0], "k": values, "y": [1.0, 2.0, 3.0, 4.0]})
    data = table
    if form == "parquet":
        pq.write_table(table, data := tmp_path / "data.parquet", row_group_size=2)
    elif form == "partitions":
        (tmp_path / "t" / "p=1").mkdir(parents=True)
        pq.write_table(table, tmp_path / "t" / "p=1" / "data.parquet")
        data = tmp_path / "t"
    elif form == "csv":
        rows = [f"{x},{'' if k is None else k},{y}" for x, k, y in zip(*table.to_pydict().values(), strict=True)]
        (data := tmp_path / "data.csv").write_text("\n".join(["x,k,y", *rows]))
    elif form == "ndjson":
        (data := tmp_path / "data.ndjson").write_text("\n".join(map(json.dumps, table.to_pylist())))
    else:
        pytest.importorskip("pandas", reason="needs pandas")
        data = table.to_pandas()
    source = open_source(data, target="y", columns=["x", "k"], categorical="k")
    levels = sorted({str(value) for value in values if value is not None})
    assert source.feature_names == ["x", *(f"k={level}" for level in levels)]
    X = np.concatenate([block[0] for block in source.blocks()])
    np.testing.assert_array_equal(X[:, 1:], [[str(value) == level for level in levels] for value in values])
    assert not source.unseen_levels
    # A level that is not known is counted; one that is missing is not.
    fewer = open_source(data, target="y", columns=["x", "k"], categorical={"k": levels[:1]})
    assert np.concatenate([block[0] for block in fewer.blocks()])[:, 1].sum() == sum(
        str(v) == levels[0] for v in values
    )
    assert fewer.unseen_levels == {"k": sum(v is not None and str(v) != levels[0] for v in values)}


def test_rows_are_counted_where_categories_are_missing(tmp_path):
    """Also before any other read of the source."""
    (tmp_path / "data.csv").write_text("x,k,y\n1,a,1\n2,,2\n3,b,4\n5,a,3\n")

    def opened():
        return open_source(tmp_path / "data.csv", target="y", categorical={"k": ["a", "b"]}, where="k == 'a'")

    assert opened().count() == len(np.concatenate([X for X, _ in opened().blocks()])) == 2
    np.testing.assert_array_equal(opened().labels(), [1, 3])


def test_rows_are_numbered_as_in_the_file_if_groups_are_passed_over(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    import pyarrow.parquet as pq

    x = np.ones(40)
    x[[25, 38]] = np.nan
    pq.write_table(
        pa.table({"g": np.repeat([0, 1, 2, 3], 10), "x": x, "y": np.arange(40.0)}),
        tmp_path / "t.parquet",
        row_group_size=10,
    )
    for group, row in ((2, 25), (3, 38)):
        source = open_source(tmp_path / "t.parquet", target="y", columns="x", where=f"g == {group}")
        with pytest.raises(DataError, match=f"row {row}, column 'x'"):
            list(source.blocks())
    assert sum(len(X) for X, _ in open_source(tmp_path / "t.parquet", target="y", where="g == 1").blocks()) == 10


@pytest.mark.parametrize("form", ["csv", "parquet", "timestamps"])
def test_conditions_on_dates(tmp_path, form):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    import pyarrow.csv
    import pyarrow.parquet as pq

    days = np.datetime64("2024-01-01") + np.arange(100)
    table = pa.table({"day": days.astype("M8[s]" if form == "timestamps" else "M8[D]"), "x": np.arange(100.0)})
    path = tmp_path / f"t.{'csv' if form == 'csv' else 'parquet'}"
    pyarrow.csv.write_csv(table, path) if form == "csv" else pq.write_table(table, path, row_group_size=10)
    for condition, expected in (
        ("day >= '2024-02-01'", days >= np.datetime64("2024-02-01")),
        (
            "'2024-01-10' <= day < '2024-01-20'",
            (days >= np.datetime64("2024-01-10")) & (days < np.datetime64("2024-01-20")),
        ),
        ("day == '2024-03-01'", days == np.datetime64("2024-03-01")),
        ([("day", ">=", date(2024, 2, 1))], days >= np.datetime64("2024-02-01")),
        ([("day", "in", [days[3], days[70]])], np.isin(days, days[[3, 70]])),
    ):
        source = open_source(path, columns="x", where=condition)
        np.testing.assert_array_equal(np.concatenate([X[:, 0] for X, _ in source.blocks()]), np.arange(100.0)[expected])
