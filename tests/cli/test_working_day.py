"""Commands of a working day: components chosen, models updated and merged, rows monitored, options in a file."""

import contextlib
import csv
import importlib.util
import io
import json
import logging
import re
import shutil
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest

from plstream import (
    IncrementalPLS,
    IncrementalPLSClassifier,
    IncrementalPLSClassifierCV,
    IncrementalPLSCV,
    load,
    open_source,
    save,
)
from plstream.monitoring import Monitor, PredictionInterval
from tests.oracles import regression_data

from .working_day import write_tables

# Arrays are what results of files, whose columns have names, are compared with.
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


@pytest.fixture
def parts(folder):
    """The data in two files."""
    header, *lines = (folder / "data.csv").read_text().splitlines(keepends=True)
    (folder / "first.csv").write_text(header + "".join(lines[:200]))
    (folder / "second.csv").write_text(header + "".join(lines[200:]))
    return folder


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.usefixtures("folder")
def test_components_by_cross_validation(done, refused):
    out = done("fit", "data.csv", "-t", "y", "--exclude", "kind", "-c", "auto", "--rule", "one-se", "--folds", 4)
    source = open_source("data.csv", target="y", exclude="kind")
    expected = IncrementalPLSCV(5, cv=4, rule="one-se").fit(source)
    model = load("model.plstream")
    assert model.n_components_ == expected.n_components_
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-12)
    assert f"predicts {expected.best_score_:.1%} of y in held-out rows" in out
    assert "--rule is for cross-validation" in refused("fit", "data.csv", "-t", "y", "--rule", "min")
    assert "-c auto is not supported by --method cipls" in refused(
        "fit", "X.npy", "-t", "labels.npy", "--method", "cipls", "-c", "auto", "-o", "other"
    )
    assert "--forgetting is not supported with -c auto" in refused(
        "fit", "X.npy", "-t", "y.npy", "-c", "auto", "--forgetting", 0.9, "-o", "other"
    )


@pytest.mark.usefixtures("folder")
@pytest.mark.filterwarnings("ignore:sketch_size:UserWarning")
def test_cross_validation_is_exact_unless_in_one_pass(done, refused):
    X, y = regression_data(60, 2100)
    np.save("wide.npy", X)
    np.save("response.npy", y)
    labels = np.where(y > 0, "b", "a")
    np.save("wide_labels.npy", labels)
    call = "fit", "wide.npy", "-t", "response.npy", "-c", "auto", "--max-components", 3
    done(*call)
    exact, found = IncrementalPLSCV(3).fit(X, y), load("model.plstream")
    np.testing.assert_array_equal(found.cv_results_["mean_test_rmse"], exact.cv_results_["mean_test_rmse"])
    done(*call, "--one-pass", "--sketch-size", 20, "-o", "stream")
    done(*call, "--checkpoint", "part", "-o", "resumed")
    assert (found.solver_, load("stream").solver_, load("resumed").solver_) == ("multipass", "sketch", "sketch")
    assert "several times, without -c auto" in refused(*call, "--read-tol", 0.1, "--force")
    named = "fit", "wide.npy", "-t", "wide_labels.npy", "--method", "incremental-pls-classifier", "-c", "auto"
    done(*named, "--classes", "a,b,c", "--max-components", 3, "-o", "named")
    assert load("named").classes_.tolist() == ["a", "b", "c"]
    expected = IncrementalPLSClassifierCV(3).fit(X, labels)
    np.testing.assert_array_equal(load("named").predict(X), expected.predict(X))


@pytest.mark.usefixtures("folder")
def test_choosing_the_largest_number_tried_is_reported(done):
    out = done("fit", "X.npy", "-t", "y.npy", "-c", "auto", "--max-components", 1)
    assert "this is the largest number tried: try more with --max-components 2" in out
    assert "--max-components" not in done("fit", "X.npy", "-t", "y.npy", "-c", "auto", "--force")


@pytest.mark.usefixtures("folder")
def test_components_of_a_classifier_as_json(done):
    call = "fit", "X.npy", "-t", "labels.npy", "--method", "incremental-pls-classifier", "-c", "auto", "--json"
    told = json.loads(done(*call))
    expected = IncrementalPLSClassifierCV(5).fit(np.load("X.npy"), np.load("labels.npy"))
    assert told["n_components"] == expected.n_components_
    assert told["classes"] == ["high", "low"]
    assert told["cross_validation"]["score"] == pytest.approx(expected.best_score_)
    assert len(told["cross_validation"]["scores"]) == 5


@pytest.mark.usefixtures("folder")
def test_a_dry_run_writes_nothing(folder, done, refused):
    before = {*folder.iterdir()}
    out = done("fit", "data.csv", "-t", "y", "--exclude", "kind", "-c", 3, "--dry-run")
    assert "reads:    4\n" in out
    assert "features: 5: a, b, c, d, e\n" in out
    plan = json.loads(done("fit", "X.npy", "-t", "y.npy", "-c", "auto", "--dry-run", "--json"))
    assert (plan["rows"], plan["reads"]) == (300, 8)
    assert {*folder.iterdir()} == before
    assert "There is no column 'z'" in refused("fit", "data.csv", "-t", "z", "--dry-run")


def test_a_missing_input_is_reported_before_an_output_that_exists(folder, model, refused):
    (folder / "out.csv").write_text("mine")
    assert "There is no file none.csv" in refused("predict", "model.plstream", "none.csv", "-o", "out.csv")
    assert "There is no file none.csv" in refused("fit", "none.csv", "-t", "y")
    assert "There is no file none.plstream" in refused("report", "none.plstream", "-o", "out.csv")
    assert "There is no file none.csv" in refused("select", "none.csv", "-t", "y", "-o", "out.csv")
    assert "exists already" in refused("predict", "model.plstream", "data.csv", "-o", "out.csv")
    assert model.n_components == 2


@pytest.mark.parametrize("as_json", [False, True])
def test_update_continues_training(parts, done, refused, as_json):
    options = "-t", "y", "--exclude", "kind"
    done("fit", "first.csv", *options, "--one-pass")
    out = done("update", "model.plstream", "second.csv", *options, *["--json"] * as_json)
    if as_json:
        assert json.loads(out)["n_new_rows"] == 100
    else:
        assert out.endswith("; 100 new rows\n")
    expected = IncrementalPLS().partial_fit(open_source("data.csv", target="y", exclude="kind"))
    np.testing.assert_allclose(load("model.plstream").coef_, expected.coef_, rtol=1e-10)
    before = (parts / "model.plstream").read_bytes()
    (parts / "bad.csv").write_text((parts / "second.csv").read_text() + "nan,1,1,1,1,1,x\n")
    assert "row 100" in refused("update", "model.plstream", "bad.csv", *options)
    assert "--target" in refused("update", "model.plstream", "second.csv")
    assert "exists already" in refused("update", "model.plstream", "second.csv", *options, "-o", "bad.csv")
    assert "nothing is written" in done("update", "model.plstream", "second.csv", *options, "--dry-run")
    assert (parts / "model.plstream").read_bytes() == before
    done("update", "model.plstream", "second.csv", *options, "-o", "other.plstream")
    assert load("other.plstream").n_samples_seen_ == 400
    assert load("model.plstream").n_samples_seen_ == 300


def test_update_from_a_pipe_and_of_labels(parts, done):
    options = "-t", "kind", "--exclude", "y", "--method", "incremental-pls-classifier", "--one-pass"
    done("fit", "first.csv", *options)
    content = (parts / "second.csv").read_bytes()
    done("update", "model.plstream", "-", "--format", "csv", "-t", "kind", "--exclude", "y", stdin=content)
    expected = IncrementalPLSClassifier().partial_fit(open_source("data.csv", target="kind", exclude="y"))
    np.testing.assert_allclose(load("model.plstream").coef_, expected.coef_, rtol=1e-10)


@pytest.mark.parametrize("from_pipe", [False, True])
def test_an_interrupted_update(parts, run, monkeypatch, from_pipe):
    options = "-t", "y", "--exclude", "kind"
    assert run("fit", "first.csv", *options, "--one-pass").code == 0
    before, learn = (parts / "model.plstream").read_bytes(), IncrementalPLS.partial_fit

    def interrupted(model, *arguments, **more):
        signal.raise_signal(signal.SIGINT)
        return learn(model, *arguments, **more)

    monkeypatch.setattr(IncrementalPLS, "partial_fit", interrupted)
    data = ["-", "--format", "csv"] if from_pipe else ["second.csv"]
    content = (parts / "second.csv").read_bytes() if from_pipe else None
    result = run("update", "model.plstream", *data, *options, stdin=content)
    # What came from a pipe cannot be had again.
    assert result.code == (0 if from_pipe else 1)
    assert result.err.startswith("plstream: interrupted")
    assert ((parts / "model.plstream").read_bytes() == before) is not from_pipe


def test_merge(parts, done, refused):
    options = "-t", "y", "--exclude", "kind", "--one-pass"
    for name in ("first", "second"):
        done("fit", f"{name}.csv", *options, "-o", f"{name}.plstream")
    told = json.loads(done("merge", "first.plstream", "second.plstream", "-o", "both.plstream", "--json"))
    assert told["n_rows"] == 300
    expected = IncrementalPLS().partial_fit(open_source("data.csv", target="y", exclude="kind"))
    np.testing.assert_allclose(load("both.plstream").coef_, expected.coef_, rtol=1e-10)
    assert "exists already" in refused("merge", "first.plstream", "second.plstream", "-o", "both.plstream")
    assert "two models" in refused("merge", "first.plstream", "-o", "one.plstream")
    save(IncrementalPLSCV(2).fit(np.load("X.npy"), np.load("y.npy")), "cv.plstream")
    assert "holds a IncrementalPLSCV" in refused("merge", "cv.plstream", "first.plstream", "-o", "x").replace(
        "an Incr", "a Incr"
    )
    shutil.copy("cv.plstream", "cv2.plstream")
    assert "--later does not apply to" in refused("merge", "cv.plstream", "cv2.plstream", "--later", "-o", "x")
    assert "is named twice" in refused("merge", "first.plstream", "second.plstream", "./first.plstream", "-o", "x")
    assert not (parts / "x").exists()


def test_monitor(folder, model, run, refused, arrays):
    result = run("monitor", "model.plstream", "data.csv", "--level", 0.9999)
    assert (result.code, len(result.out.splitlines())) == (0, 1)
    assert "0 of 300 rows above a limit" in result.err
    X = arrays.X[:20].copy()
    X[7, 2] += 50
    lines = ["id,a,b,c,d,e", *(f"n{i},{','.join(map(repr, row))}" for i, row in enumerate(X.tolist()))]
    (folder / "fault.csv").write_text("\n".join(lines))
    result = run("monitor", "model.plstream", "fault.csv", "--keep", "id", "--level", 0.9999)
    assert result.code == 3
    (row,) = read_csv(result.out)
    checked = Monitor(model, level=0.9999).check(X)
    assert (row["id"], row["row"]) == ("n7", "7")
    assert "q" in row["alarm"]
    assert row["features"].startswith("c ")
    assert float(row["q"]) == pytest.approx(checked.q[7], rel=1e-5)
    assert run("monitor", "model.plstream", "fault.csv", "--level", 0.9999, "--allow", 0.1).code == 0
    told = run("monitor", "model.plstream", "fault.csv", "--level", 0.9999, "--json")
    assert (told.code, told.err) == (3, "")
    told = json.loads(told.out)
    assert (told["rows"], told["alarms"], told["found"][0]["row"]) == (20, int(checked.alarm.sum()), 7)
    assert run("monitor", "model.plstream", "fault.csv", "--all", "-o", "all.csv").code == 3
    assert len(read_csv((folder / "all.csv").read_text())) == 20
    assert "exists already" in refused("monitor", "model.plstream", "fault.csv", "-o", "all.csv")
    (folder / "numbered.csv").write_text((folder / "fault.csv").read_text().replace("id,", "row,", 1))
    call = "monitor", "model.plstream", "numbered.csv", "--keep", "row"
    assert "would be named 'row'" in refused(*call, "-o", "numbered-alarms.csv")
    assert "would be named 'row'" in refused(*call, "--json")
    assert not (folder / "numbered-alarms.csv").exists()


@pytest.mark.usefixtures("model")
def test_monitor_with_reference_rows(run, arrays):
    told = json.loads(run("monitor", "model.plstream", "data.csv", "--reference", "data.csv", "--json").out)
    with warnings.catch_warnings(action="ignore"):
        expected = Monitor(load("model.plstream")).partial_fit(arrays.X)
    assert told["q_limit"] == pytest.approx(expected.q_limit_, rel=1e-9)
    save(expected, "monitor.plstream")
    again = json.loads(run("monitor", "monitor.plstream", "data.csv", "--json").out)
    assert again["q_limit"] == pytest.approx(expected.q_limit_, rel=1e-9)


def test_predictions_with_more_columns(folder, model, done, refused, arrays):
    lines = ["id,day," + ",".join(arrays.names)]
    lines += [f"{i + 10**9},d{i},{','.join(map(repr, row))}" for i, row in enumerate(arrays.X.tolist())]
    (folder / "new.csv").write_text("\n".join(lines))
    call = "predict", "model.plstream", "new.csv"
    rows = read_csv(done(*call, "--keep", "id,day", "--interval", 0.9, "--t2", "--q"))
    assert list(rows[0]) == ["id", "day", "prediction", "prediction_lower", "prediction_upper", "t2", "q"]
    assert (rows[5]["id"], rows[5]["day"]) == ("1000000005", "d5")
    limits = PredictionInterval(model, level=0.9).of(arrays.X)
    checked = Monitor(model).check(arrays.X)
    found = np.array([[float(row[name]) for name in list(row)[2:]] for row in rows])
    expected = [model.predict(arrays.X), *limits, checked.t2, checked.q]
    np.testing.assert_allclose(found, np.column_stack(expected), rtol=1e-12)
    assert "hold both strings and numbers" in refused(*call, "--keep", "day", "-o", "out.npy")
    done(*call, "--t2", "-o", "out.npy")
    assert np.load("out.npy").shape == (300, 2)
    assert "has no class probabilities" in refused(*call, "--proba")
    assert "probability between 0 and 1" in refused(*call, "--interval", 95)
    assert "Two columns" in refused(*call, "--keep", "id,id", "-o", "out.csv")
    assert not (folder / "out.csv").exists()


def test_probabilities(folder, done, refused, arrays):
    model = IncrementalPLSClassifier(2).fit(open_source("data.csv", target="kind", exclude="y"))
    save(model, folder / "labels.plstream")
    pytest.importorskip("pyarrow")
    done("predict", "labels.plstream", "data.csv", "--proba", "-o", "out.parquet")
    rows = read_csv(done("predict", "labels.plstream", "data.csv", "--proba"))
    found = [[float(row["probability_high"]), float(row["probability_low"])] for row in rows]
    np.testing.assert_allclose(found, model.predict_proba(arrays.X), rtol=1e-12)
    assert "predicts labels" in refused("predict", "labels.plstream", "data.csv", "--interval", 0.9)


def test_options_in_a_file(folder, done):
    (folder / "fit.toml").write_text(
        'target = "y"\nexclude = ["kind"]\n\n[fit]\ncomponents = 3\none-pass = true\noutput = "from.plstream"\n'
        "[evaluate]\njson = true\n"
    )
    done("fit", "data.csv", "--config", "fit.toml")
    model = load("from.plstream")
    assert (model.n_components, model.solver_) == (3, "gram")
    # What is on the command line comes first.
    done("--config=fit.toml", "fit", "data.csv", "-c", 2, "-o", "two.plstream", "--exclude", "kind,e")
    model = load("two.plstream")
    assert (model.n_components, list(model.feature_names_in_)) == (2, list("abcd"))
    assert (
        json.loads(done("evaluate", "two.plstream", "data.csv", "--config", "fit.toml"))["targets"][0]["target"] == "y"
    )
    (folder / "fit.toml").write_text('data = "data.csv"\n[fit]\ntarget = "y"\nexclude = ["kind"]\nscale = false\n')
    done("fit", "--config", "fit.toml")
    assert load("model.plstream").scale is False


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('targt = "y"', "has 'targt', which is not a known option: did you mean 'target'?"),
        ("[fitt]\nx = 1", "has 'fitt', which is not a known command: did you mean 'fit'?"),
        (
            "[fit]\ncomponent = 1",
            "has 'component', which is not a known option of plstream fit: did you mean 'components'?",
        ),
        ("[fit]\nproba = true", "not a known option of plstream fit"),
        ("[fit]\none-pass = 1", "must be true or false"),
        ("[fit]\ntarget = true", "must be a string, a number or a list of these"),
        ("[fit]\ntarget = [[1]]", "must be a string, a number or a list of these"),
        ("target", "is not a TOML file"),
        ('[fit]\nmethod = "pcr"', "pcr"),
    ],
)
def test_bad_options_in_a_file(folder, refused, text, words):
    (folder / "bad.toml").write_text(text)
    assert words in refused("fit", "data.csv", "--config", "bad.toml")
    assert "No such file" in refused("fit", "data.csv", "--config", "none.toml")
    assert "--config names one TOML file" in refused("fit", "data.csv", "--config")


def test_names_with_commas_in_a_file(folder, done):
    (folder / "odd.csv").write_text('a,"b,c",y\n' + "".join(f"{i},{i * i},{i}\n" for i in range(20)))
    (folder / "odd.toml").write_text('target = "y"\ncolumns = ["b,c"]\ncomponents = 1\n')
    done("fit", "odd.csv", "--config", "odd.toml")
    assert list(load("model.plstream").feature_names_in_) == ["b,c"]


@pytest.mark.usefixtures("folder")
def test_the_logger(run, caplog):
    with caplog.at_level(logging.INFO, "plstream"):
        model = IncrementalPLS(2, solver="gram").fit(open_source("data.csv", target="y", exclude="kind"))
        model.partial_fit(np.ones((1, model.n_features_in_)), np.ones(1))
    (line,) = (record.message for record in caplog.records)
    assert re.fullmatch(rf"IncrementalPLS: fit of 300 x {model.n_features_in_}, reads: 1, \d+\.\d\d s", line)
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "plstream"):
        model.partial_fit(np.ones((2, model.n_features_in_)), np.ones(2))
    assert [record.levelname for record in caplog.records] == ["DEBUG"]
    result = run("fit", "X.npy", "-t", "y.npy", "--verbose", "--one-pass")
    assert (result.code, result.out.count("\n")) == (0, 1)
    assert "read 1 of 1: 300 rows in" in result.err
    assert not logging.getLogger("plstream").handlers


@pytest.mark.usefixtures("model")
def test_results_as_json(done):
    told = json.loads(done("evaluate", "model.plstream", "data.csv", "-t", "y", "--json"))
    assert told["targets"][0]["r2"] > 0.9
    told = json.loads(done("info", "model.plstream", "--json"))
    assert (told["class"], told["n_rows"], told["features"]) == ("IncrementalPLS", 300, list("abcde"))
    told = json.loads(done("info", "data.csv", "--json"))
    assert told["to_exclude"] == ["kind"]
    assert told["columns"][-1] == {"name": "kind", "type": "text"}
    assert told["n_features"] == 6


def test_several_columns_of_a_pipe_are_kept(folder, model, done, arrays):
    lines = ["id,day," + ",".join(arrays.names)]
    lines += [f"{i + 10**9},d{i},{','.join(map(repr, row))}" for i, row in enumerate(arrays.X.tolist())]
    (folder / "new.csv").write_text(content := "\n".join(lines))
    call = "predict", "model.plstream"
    piped = read_csv(done(*call, "-", "--format", "csv", "--keep", "id,day", stdin=content.encode()))
    assert [(row["id"], row["day"]) for row in piped] == [(str(i + 10**9), f"d{i}") for i in range(300)]
    np.testing.assert_allclose([float(row["prediction"]) for row in piped], model.predict(arrays.X), rtol=1e-12)


def test_queries(folder, done, refused, arrays):
    sqlite3 = pytest.importorskip("sqlite3", reason="needs SQLite")
    pytest.importorskip("adbc_driver_sqlite", reason="needs the extra sql")
    with contextlib.closing(sqlite3.connect(folder / "lab.sqlite")) as connection, connection:
        connection.execute("create table runs (id integer, a real, b real, c real, d real, e real, y real)")
        rows = np.column_stack([np.arange(300), arrays.X, arrays.y]).tolist()
        connection.executemany("insert into runs values (?, ?, ?, ?, ?, ?, ?)", rows)
    call = "sqlite:///lab.sqlite", "--query", "select * from runs order by id"
    assert "rows:      300\n" in done("info", *call)
    done("fit", *call, "-t", "y", "--exclude", "id", "-o", "sql.plstream")
    expected = IncrementalPLS().fit(arrays.X, arrays.y)
    np.testing.assert_allclose(load("sql.plstream").coef_, expected.coef_, rtol=1e-9)
    rows = read_csv(done("predict", "sql.plstream", *call, "--keep", "id"))
    np.testing.assert_allclose([float(row["prediction"]) for row in rows], expected.predict(arrays.X), rtol=1e-9)
    assert json.loads(done("evaluate", "sql.plstream", *call, "-t", "y", "--json"))["targets"][0]["r2"] > 0.9
    assert "no such table" in refused("fit", call[0], "--query", "select * from none", "-t", "y")
    assert "Pass --query for" in refused("fit", call[0], "-t", "y")


def test_missing_values_are_counted(folder, done):
    (folder / "gaps.csv").write_text("a,b,kind,y\n" + "1,,x,3\n,,y,4\n5,6,z,\n7,8,z,1\n")
    assert "missing:    4 values in 3 columns, most in b\n" in done("info", "gaps.csv")
    told = json.loads(done("info", "gaps.csv", "--target", "y", "--json"))
    assert told["missing"] == {"a": 1, "b": 2, "y": 1}
    assert "missing:   none\n" in done("info", "data.csv", "--columns", "a,b")


@pytest.fixture
def plant(folder):
    write_tables(folder, 400, parquet=importlib.util.find_spec("pyarrow") is not None)
    # Without gaps, which are for --missing.
    text = (folder / "plant.csv").read_text()
    while ",," in text:
        text = text.replace(",,", ",20.0,")
    (folder / "full.csv").write_text(re.sub(r",$", ",20.0", text, flags=re.MULTILINE))
    return folder


@pytest.mark.parametrize("data", ["plant.csv", "plant"])
def test_from_a_file_to_a_report_in_three_commands(folder, done, run, data):
    """The working day of the documentation, with fewer rows; the file has gaps, text, dates, ids and an index."""
    if data == "plant":
        pytest.importorskip("pyarrow", reason="needs pyarrow")
    pytest.importorskip("plotly", reason="needs the extra report")
    write_tables(folder, 1000, parquet=data == "plant")
    lines = (folder / "plant.csv").read_text().splitlines()[1:]
    n_gaps = sum(line.split(",")[6:].count("") for line in lines)
    content = (folder / "plant.csv").read_bytes()
    out = done("info", data)
    assert f"missing: {n_gaps:,} values in" in re.sub(" +", " ", out)
    assert re.search(r"--exclude id,(day,site,operator|site,operator,day)\n", out)
    exclude = "id,day,operator" + ",year" * (data == "plant")
    call = (
        "fit",
        data,
        "--target",
        "yield",
        "--exclude",
        exclude,
        "--categorical",
        "site",
        "--missing",
        "model",
        "-c",
        "auto",
    )
    told = json.loads(done(*call, "--json"))
    assert told["n_rows"] == 1000
    assert told["cross_validation"]["score"] > 0.8
    model = load("model.plstream")
    assert model.n_missing_.sum() == n_gaps
    assert {"site=north", "site=south", "site=west", "sensor_93"} < {*model.feature_names_in_}
    assert len(model.feature_names_in_) == 97
    assert run("report", "model.plstream", data, "--target", "yield", "-o", "report.html").code == 0
    assert "sensor_00" in (folder / "report.html").read_text()
    assert (folder / "plant.csv").read_bytes() == content


@pytest.mark.usefixtures("plant")
def test_rows_and_columns_by_option(done, refused):
    call = "fit", "full.csv", "-t", "yield", "--columns", "sensor_0*", "--categorical", "site"
    done(*call, "--where", "site in ('north', 'west')", "--json")
    model = load("model.plstream")
    expected = IncrementalPLS().fit(
        open_source(
            "full.csv", target="yield", columns="sensor_0*", categorical="site", where="site in ('north', 'west')"
        )
    )
    assert list(model.feature_names_in_) == list(expected.feature_names_in_)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-12)
    rows = read_csv(done("predict", "model.plstream", "full.csv", "--keep", "id", "--where", "site == 'north'"))
    assert 0 < len(rows) < 400
    assert all(row["id"].startswith("P") for row in rows)
    message = refused("fit", "full.csv", "-t", "yield", "--force")
    assert "--exclude id,day,site,operator" in message
    assert "did you mean 'yield'?" in refused("fit", "full.csv", "-t", "yeld", "--force")


@pytest.mark.usefixtures("plant")
def test_groups_and_weights_by_option(done, refused):
    call = "fit", "full.csv", "-t", "yield", "--columns", "sensor_*", "-c", "auto", "--folds", 3
    done(*call, "--groups", "day", "--weight", "sensor_01", "--exclude", "sensor_01")
    model = load("model.plstream")
    rows = read_csv(Path("full.csv").read_text())
    names = [name for name in rows[0] if name.startswith("sensor_") and name != "sensor_01"]
    X = np.array([[float(row[name]) for name in names] for row in rows])
    y, weight = (np.array([float(row[name]) for row in rows]) for name in ("yield", "sensor_01"))
    expected = IncrementalPLSCV(10, cv=3, solver="gram").partial_fit(
        X, y, sample_weight=weight, groups=np.array([row["day"] for row in rows])
    )
    assert list(model.feature_names_in_) == names
    assert model.n_components_ == expected.n_components_
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-8)
    assert "--groups is for cross-validation" in refused(*call[:-4], "--groups", "day", "--force")
    more = "full.csv", "-t", "yield", "--groups", "day", "--weight", "sensor_01"
    assert "pass groups" in refused("update", "model.plstream", *more[:3])
    done("update", "model.plstream", *more)
    twice = expected.partial_fit(X, y, sample_weight=weight, groups=np.array([row["day"] for row in rows]))
    np.testing.assert_allclose(load("model.plstream").coef_, twice.coef_, rtol=1e-8)
    done("fit", "full.csv", "-t", "yield", "--columns", "sensor_*", "-o", "plain.plstream")
    assert "--groups is for cross-validation" in refused("update", "plain.plstream", *more[:-2])


@pytest.mark.usefixtures("folder")
def test_folds_by_option(done, refused):
    rng = np.random.default_rng(0)
    X, folds = rng.normal(size=(90, 4)), rng.integers(0, 3, 90)
    y = X @ [1.0, 2.0, 3.0, 4.0] + rng.normal(size=90)
    lines = [[*map(repr, X[i].tolist()), str(folds[i]), repr(y[i].item())] for i in range(90)]
    Path("d.csv").write_text("\n".join(["a,b,c,d,fold,y", *map(",".join, lines)]))
    call = "fit", "d.csv", "-t", "y", "-c", "auto", "--folds", 3, "--fold-column", "fold"
    done(*call)
    model = load("model.plstream")
    expected = IncrementalPLSCV(4, cv=3, solver="gram").partial_fit(X, y, folds=folds)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert model.n_components_ == expected.n_components_
    np.testing.assert_allclose(model.cv_results_["mean_test_rmse"], expected.cv_results_["mean_test_rmse"], rtol=1e-8)
    assert "--fold-column is for cross-validation" in refused(*call[:4], "--fold-column", "fold", "--force")
    assert "pass only one of them" in refused(*call, "--groups", "a", "--force")
