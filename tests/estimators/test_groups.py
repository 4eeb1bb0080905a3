"""Groups of rows: each is in one fold, whatever the calls and types of its id."""

# ruff: noqa: DTZ001, DTZ901 - dates without a time zone are ids too

import datetime as dt
import subprocess
import sys
import warnings
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plstream import IncrementalPLSCV
from plstream.estimators.cv_folds import folds_of_groups
from tests.oracles import regression_data

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

# So many that groups that are not known as the same are hardly ever in one fold.
MANY = 10**9
INT64, UINT64 = np.iinfo(np.int64), np.iinfo(np.uint64)


def objects(ids):
    array = np.empty(len(ids), object)
    array[:] = ids
    return array


def integers(ids):
    """Yield the same integers in all types that hold them exactly."""
    yield from (list(ids), tuple(ids), objects(ids), objects([Decimal(i) for i in ids]))
    yield from ([str(i) for i in ids], np.array([f"{i}" for i in ids]), np.array([b"%d" % i for i in ids]))
    yield objects([Fraction(i) for i in ids])
    yield [f"{i:+030d}" for i in ids]
    for dtype in (np.int8, np.int64, np.uint64, np.float32, np.float64, np.longdouble, bool):
        with np.errstate(over="ignore", invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                typed = np.array(ids, dtype)
            except OverflowError:
                continue
        if all(np.isfinite(float(t)) and int(t) == i for t, i in zip(typed, ids, strict=True)):
            yield from (typed, list(typed), objects(list(typed)), pandas.Series(typed.astype(object)))
    for dtype, limits in (("Int64", INT64), ("UInt64", UINT64), ("int64[pyarrow]", INT64), ("uint64[pyarrow]", UINT64)):
        if all(limits.min <= i <= limits.max for i in ids):
            yield pandas.Series(ids, dtype=dtype)
            yield pandas.Series(ids, dtype=dtype).astype("category")
    if all(INT64.min <= i <= INT64.max for i in ids):
        yield from (polars.Series(ids, dtype=polars.Int64), pyarrow.array(ids, pyarrow.int64()))


def texts(ids):
    yield from (list(ids), objects(ids), [text.encode() for text in ids], pandas.Series(ids, dtype="string"))
    yield from (np.array(ids), np.array([text.encode() for text in ids]), pandas.Categorical(ids))
    yield from (polars.Series(ids), pyarrow.array(ids), pyarrow.array(ids).dictionary_encode())
    if hasattr(np.dtypes, "StringDType"):
        yield np.array(ids, np.dtypes.StringDType())


def dates(ids):
    """Yield the same moments, datetimes in UTC, in all units and time zones that hold them exactly."""
    naive = [moment.replace(tzinfo=None) for moment in ids]
    zones = [ZoneInfo("Europe/Berlin"), ZoneInfo("Pacific/Apia"), dt.timezone(dt.timedelta(hours=-3, minutes=30))]
    yield from (list(ids), naive, objects(naive), pyarrow.array(naive), polars.Series(naive))
    yield from ([moment.astimezone(zone) for moment in ids] for zone in zones)
    micro = np.array(naive, "datetime64[us]")
    for unit in ("Y", "M", "D", "h", "m", "s", "ms", "us", "ns", "ps", "25s"):
        there = micro.astype(f"datetime64[{unit}]")
        if (there.astype("datetime64[us]") == micro).all():
            yield from (there, list(there), objects(list(there)))
            if unit in {"s", "ms", "us", "ns"}:
                stamps = pandas.Series(there)
                yield from (stamps, stamps.astype("category"), stamps.astype(object), pandas.DatetimeIndex(there))
                yield stamps.dt.tz_localize("UTC").dt.tz_convert("America/New_York")
                arrow = pandas.ArrowDtype(pyarrow.timestamp(unit, tz="Asia/Tokyo"))
                yield stamps.dt.tz_localize("UTC").astype(arrow)
    if all(moment.time() == dt.time() for moment in naive):
        days = [moment.date() for moment in naive]
        yield from (days, objects(days), pyarrow.array(days), polars.Series(days))
        yield pandas.Series(days, dtype=pandas.ArrowDtype(pyarrow.date32()))


def durations(ids):
    yield from (list(ids), pandas.Series(ids), list(pandas.Series(ids)), pyarrow.array(ids), polars.Series(ids))
    micro = np.array(ids, "timedelta64[us]")
    for unit in ("W", "D", "h", "s", "ms", "ns"):
        there = micro.astype(f"timedelta64[{unit}]")
        if (there.astype("timedelta64[us]") == micro).all():
            yield from (there, list(there))


some = {"min_size": 1, "max_size": 6}
large = st.sampled_from(
    [2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**64 + 1, 10**30, -(2**63), -(2**63) - 1]
)
first_day = dt.datetime(1700, 1, 1)
times = st.datetimes(first_day, dt.datetime(2250, 1, 1)) | st.integers(0, 200_000).map(
    lambda days: first_day + dt.timedelta(days)
)
moments = times.map(lambda moment: moment.replace(tzinfo=dt.UTC))
spans = st.timedeltas(dt.timedelta(days=-9999), dt.timedelta(days=9999)) | st.integers(-99, 99).map(dt.timedelta)


def assert_one_fold_each(ids, representations, cuts):
    """Each id is in the same fold in all representations, and in any part of the ids."""
    expected = folds_of_groups(list(ids), MANY)
    for same in representations:
        np.testing.assert_array_equal(folds_of_groups(same, MANY), expected, err_msg=f"{type(same)}: {same!r}")
    bounds = sorted({0, *(cut % len(ids) for cut in cuts), len(ids)})
    for start, stop in pairwise(bounds):
        for part in representations_of(ids)(ids[start:stop]):
            np.testing.assert_array_equal(folds_of_groups(part, MANY), expected[start:stop], err_msg=repr(part))


def representations_of(ids):
    return {int: integers, str: texts, dt.datetime: dates, dt.timedelta: durations}[type(ids[0])]


cuts = st.lists(st.integers(0, 5), max_size=2)
few = settings(deadline=None, max_examples=40)


@few
@given(st.lists(st.integers(-3, 3) | st.integers() | large, **some), cuts)
@example([2**53, 2**53 + 1, -1, 2**64 - 1], [1])
@example([0, 1], [1])
def test_integers(ids, cuts):
    assert_one_fold_each(ids, integers(ids), cuts)


@few
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"]))
        | st.sampled_from(["1", "01", "a\0", "\N{FULLWIDTH DIGIT ONE}"]),
        **some,
    ),
    cuts,
)
def test_groups_may_be_strings(ids, cuts):
    assert_one_fold_each(ids, texts(ids), cuts)


@few
@given(st.lists(moments, **some), cuts)
@example([dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(1700, 1, 1, tzinfo=dt.UTC)], [1])
def test_dates(ids, cuts):
    assert_one_fold_each(ids, dates(ids), cuts)


@few
@given(st.lists(spans, **some), cuts)
def test_durations(ids, cuts):
    assert_one_fold_each(ids, durations(ids), cuts)


@few
@given(st.lists(st.integers() | st.text() | moments | st.floats(allow_nan=False) | st.booleans(), **some))
def test_mixed(ids):
    """What else is in a call does not matter."""
    alone = [int(folds_of_groups([group], MANY)[0]) for group in ids]
    assert folds_of_groups(ids, MANY).tolist() == alone
    assert folds_of_groups(objects(ids), MANY).tolist() == alone


def test_equality_of_groups():
    def folds(*groups):
        return folds_of_groups(list(groups), MANY).tolist()

    assert len(set(folds(1, 1.0, True, np.True_, "1", "01", b"1", np.float32(1), Decimal("1.0"), Fraction(2, 2)))) == 1
    assert len(set(folds(2**53, 2**53 + 1, 2**53 + 2, 2**64, 2**65, 2**66, 1e300, 2e300, float("inf")))) == 9
    assert len(set(folds(0.5, Decimal("0.5"), np.float16(0.5), Fraction(1, 2)))) == 1
    assert len(set(folds("a", "A", "", "nan", "None", 0, 0.25, dt.date(2020, 1, 1), dt.date(2020, 1, 2)))) == 9
    uuid = UUID("12345678-1234-5678-1234-567812345678")
    assert len(set(folds(uuid, str(uuid)))) == 1
    # The hour that a clock is set back has two moments of the same name, which are equal to Python.
    berlin = ZoneInfo("Europe/Berlin")
    twice = [dt.datetime(2024, 10, 27, 2, 30, tzinfo=berlin, fold=fold) for fold in (0, 1)]
    assert folds(*twice) == folds(*(moment.astimezone(dt.UTC) for moment in twice))
    # Dates that nanoseconds in 64 bits do not reach.
    far = [
        dt.datetime(9999, 12, 31),
        dt.date(9999, 12, 31),
        np.datetime64("9999-12-31", "s"),
        np.datetime64("9999-12-31"),
    ]
    assert len(set(folds(*far))) == 1
    assert folds_of_groups(np.array(far, "datetime64[ms]"), MANY).tolist() == folds(*far)
    assert len(set(folds(dt.datetime.min, dt.datetime.max, dt.timedelta.min, dt.timedelta.max))) == 4
    assert folds(np.timedelta64(1, "Y")) == folds(np.timedelta64(12, "M"))
    precise = pandas.Timestamp("2020-01-01 00:00:00.000000001")
    assert folds(precise) == folds(precise.to_datetime64()) != folds(precise.to_pydatetime(warn=False))


SOME = ["a", 1, b"b", 0.5, 2**99]


def test_hashes_do_not_depend_on_the_process():
    code = "from tests.estimators.test_groups import *; print(folds_of_groups(SOME, MANY).tolist())"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout  # noqa: S603
    assert out.strip() == str(folds_of_groups(SOME, MANY).tolist())


NAT = np.datetime64("NaT")
MISSING = {
    "None": [1, None],
    "None in objects": objects(["a", None]),
    "NaN": np.array([1.0, np.nan]),
    "NaN in objects": objects([1, float("nan")]),
    "half": np.array([1, np.nan], np.float16),
    "longdouble": np.array([1, np.nan], np.longdouble),
    "Decimal": [Decimal(1), Decimal("NaN")],
    "NaT": np.array(["2020-01-01", "NaT"], "datetime64[s]"),
    "NaT in objects": [dt.date(2020, 1, 1), NAT],
    "a duration": np.array([1, "NaT"], "timedelta64[s]"),
    "pandas NaT": [pandas.Timestamp("2020-01-01"), pandas.NaT],
    "pandas NA": ["a", pandas.NA],
    "masked": np.ma.array([1, 2], mask=[False, True]),
    "masked text": np.ma.array(["a", "b"], mask=[False, True]),
    "masked in a list": [1, np.ma.masked],
    "Categorical": pandas.Categorical(["a", None]),
    "Categorical of integers": pandas.Series(pandas.Categorical([2**53 + 1, None])),
    "time zone": pandas.Series(pandas.to_datetime(["2020-01-01", None])).dt.tz_localize("Europe/Berlin"),
    "polars": polars.Series([1, None]),
    "polars text": polars.Series(["a", None]),
    "polars dates": polars.Series([dt.date(2020, 1, 1), None]),
    "Arrow": pyarrow.array([1, None]),
    "Arrow dictionary": pyarrow.array(["a", None]).dictionary_encode(),
    "Arrow chunks": pyarrow.chunked_array([["a"], [None]]),
} | {
    dtype: pandas.Series([value, None], dtype=dtype)
    for dtype, value in {
        "Int64": 1,
        "UInt8": 1,
        "Float64": 1.5,
        "boolean": True,
        "string": "a",
        "object": "a",
        "datetime64[ns]": pandas.Timestamp("2020-01-01"),
        "int64[pyarrow]": 1,
        "double[pyarrow]": 1.5,
        "string[pyarrow]": "a",
        "timestamp[us][pyarrow]": pandas.Timestamp("2020-01-01"),
        "date32[pyarrow]": dt.date(2020, 1, 1),
    }.items()
}


@pytest.mark.parametrize("kind", MISSING)
def test_missing_ids_are_refused(kind):
    with pytest.raises(ValueError, match=r"groups has no value for row 1 .*every row requires one"):
        folds_of_groups(MISSING[kind], 5)


def test_missing_ids_leave_the_model_unchanged():
    X, y = regression_data(40, 5)
    groups = np.arange(40) % 10
    model = IncrementalPLSCV(2).partial_fit(X, y, groups=groups)
    before = model.cv_results_["mean_test_rmse"]
    with pytest.raises(ValueError, match="no value for row 7"):
        model.partial_fit(X, y, groups=[None if i == 7 else i for i in range(40)])
    with pytest.raises(ValueError, match="no value for row 7"):
        model.predict_held_out(X, groups=np.ma.array(groups, mask=np.arange(40) == 7))
    assert model.n_samples_seen_ == 40
    np.testing.assert_array_equal(model.cv_results_["mean_test_rmse"], before)
    with pytest.raises(ValueError, match="folds has no value for row 3"):
        IncrementalPLSCV(2).partial_fit(X, y, folds=np.ma.array(np.arange(40) % 5, mask=np.arange(40) == 3))


@pytest.mark.parametrize(
    "group", [1j, (1, 2), dt.time(1), pandas.Period("2020-01"), pandas.Interval(0, 1), object(), {}]
)
def test_other_types_are_refused(group):
    with pytest.raises(ValueError, match=f"not values of type {type(group).__name__}"):
        folds_of_groups(objects([1, group]), 5)


def test_one_model_whatever_the_types():
    """Ids as one call or another reads them from a file: the errors are those of a single call."""
    X, y = regression_data(60, 5)
    ids = 2**53 + np.arange(60) % 12
    expected = IncrementalPLSCV(3, cv=3).partial_fit(X, y, groups=ids).cv_results_["mean_test_rmse"]
    model = IncrementalPLSCV(3, cv=3)
    for i, groups in enumerate(
        (ids, ids.astype(object), ids.astype(str), ids.astype(np.uint64), pandas.Series(ids, dtype="Int64"))
    ):
        part = slice(12 * i, 12 * i + 12)
        model.partial_fit(X[part], y[part], groups=groups[part])
    np.testing.assert_allclose(model.cv_results_["mean_test_rmse"], expected, rtol=1e-9)
