"""Passwords in URLs are never shown: in messages, chained errors, reprs or files."""

import socket
import traceback
import warnings
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plstream import CIPLS, IncrementalPLS, load, open_source, save
from plstream._core.errors import import_optional
from plstream._core.urls import local_path, redacted, shown
from plstream._core.warnings import warn_user
from plstream.data import DataError
from plstream.data.objects import open_array
from plstream.data.preparation import Preparation
from plstream.data.source import Source
from plstream.experiments.datasets import load_tasks
from plstream.experiments.results import Results, read
from plstream.experiments.settings import Settings
from plstream.files import export_onnx, fit_source
from plstream.files.checkpoints import CheckpointFolder
from plstream.vision.images import find_images
from plstream.vision.vgg import read_weights

SECRET = "hunter2"  # noqa: S105
URLS = [
    f"https://user:{SECRET}@host/x.csv",
    f"https://user:{SECRET}@host:8080/x.csv",
    f"https://joe@example.org:{SECRET}@host/x.csv",
    f"https://user:an@{SECRET}@host/x.csv",
    f"https://user:a/{SECRET}@host/x.csv",
    f"https://user:12/{SECRET}@host/x.csv",
    f"https://user:a#?{SECRET}@host/x.csv",
    f"https://user:a {SECRET} b@host/x.csv",
    f"https://user:'\"{SECRET}@host/x.csv",
    f"https://user:%40%2F{SECRET}@host/x.csv",
    f"https://user:\u00e9\n{SECRET}@host/x.csv",
    f"https://{SECRET}@host/x.csv",
    f"redis://:{SECRET}@host/0",
    f"s3://key:{SECRET}@bucket",
    f"s3://key:{SECRET}@bucket/day*.parquet",
    f"postgresql+psycopg://u:{SECRET}@h/db",
    f"simplecache::https://u:{SECRET}@h/x.csv",
    f"https://host/x.csv?password={SECRET}",
    f"https://host/x.csv?a=b&sig={SECRET}&c=d",
    f"https://host/x.csv?X-Amz-Signature={SECRET}&X-Amz-Expires=60",
    f"https://host/x.csv?password=a {SECRET}&c=d",
    f"https://user:{SECRET}@host/x.csv?token={SECRET}",
    f"https://host/x.csv#access_token={SECRET}",
    f"https://user:{SECRET}@host/{'x' * 5000}.csv",
]


def all_said(error):
    """Return what an error says, with everything that it was raised from or during, shown or not."""
    texts = traceback.format_exception(error)
    while error is not None:
        texts += [str(error), repr(error), repr(error.args), str(getattr(error, "filename", ""))]
        error = error.__cause__ or error.__context__
    return "\n".join(texts)


@pytest.mark.parametrize("url", URLS)
def test_redaction(url):
    for sentence in ("{}", "There is no file {}.", "{!r} was written", "In {}: Error (a@b.c)."):
        text = redacted(sentence.format(shown(url)))
        assert SECRET not in text
        assert redacted(text) == text
        assert text.endswith(sentence.rpartition("}")[2])
        if not any(space in url for space in " \n"):
            assert SECRET not in redacted(sentence.format(url))


@pytest.mark.parametrize(
    "text",
    [
        "https://host/x.csv",
        "https://host:8080/x.csv has no column 'a@b'.",
        "https://host/user@example.org/x.csv",
        "https://host:8080/x.csv, host:8080/b@c",
        "s3://bucket/day?.csv",
        "C:/a:b@c/d.csv",
        "file.h5:X@2",
        "tcp://host:8786, not a@b.",
        "a@b: c=d?",
        "",
    ],
)
def test_text_without_secrets_is_unchanged(text):
    assert redacted(text) == text


def test_text_after_redaction():
    assert redacted("In https://me:pw@h:80/x.csv, row 3.") == "In https://***@h:80/x.csv, row 3."
    assert redacted("'https://h/x.csv?a=b' is 'c'") == "'https://h/x.csv?***' is 'c'"
    assert shown(Path("s3://k:s@b/x")) == "s3://***@b/x"
    assert redacted("zip://a.csv::s3://k:s@b/f.zip") in {"zip://a.csv::s3://***@b/f.zip", "zip://***@b/f.zip"}


@given(st.text(min_size=1), st.sampled_from(["https://user:{}@host/x", "s3://{}@bucket", "https://host/x?sig={}"]))
def test_any_secret_that_is_quoted(secret, url):
    assert shown(url.format(quote("secret" + secret, safe=""))).count("secret") == 0


@given(st.text())
def test_any_password_that_is_not_quoted(password):
    assert "secret" not in shown(f"https://user:secret{password}secret@host/x")


@given(st.text(max_size=200))
def test_any_text(text):
    assert redacted(redacted(text)) == redacted(text)


def test_parts_of_names_that_libraries_quote():
    name = "tcp://user:hun%2Fter2@host?token=abcdef"
    text = redacted("invalid address 'user:hun%2Fter2@host'; no port hun/ter2; abcdef", [name])
    assert text == "invalid address 'user:***@host'; no port ***; ***"
    assert redacted("a cat sat", ["https://user:a@host"]) == "a cat sat"


def test_a_long_text_takes_no_time():
    """Without a bound on the length of a scheme, every letter would be followed to the end."""
    assert redacted("x" * 1_000_000) == "x" * 1_000_000


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """No host has an address: nothing is looked up in a network, which may take long to answer."""

    def unknown(host, *_, **__):
        raise socket.gaierror(socket.EAI_NONAME, f"Name or service not known: {host}")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


X = np.random.default_rng(0).normal(size=(20, 3))
MODEL = IncrementalPLS().fit(X, X[:, 0])
CALLS = {
    "open_source": open_source,
    "open_source, path": lambda url: open_source(Path(url)),
    "open_source, target": lambda url: open_source(X, target=url),
    "open_source, key": lambda url: open_source(f"{url}:X", key="y"),
    "open_source, format": lambda url: open_source(url, format="parquet"),
    "open_source, column": lambda url: open_source(X, columns=[url]),
    "load": load,
    "load, path": lambda url: load(Path(url)),
    "save": lambda url: save(MODEL, url),
    "save, no overwrite": lambda url: save(MODEL, url, overwrite=False),
    "export_onnx": lambda url: export_onnx(MODEL, url),
    "checkpoints": lambda url: CheckpointFolder(url, None, None).locked().__enter__(),
    "fit_source": lambda url: fit_source(CIPLS(), open_source(X, target=X[:, 0]), checkpoint=url),
    "images": find_images,
    "list of images": lambda url: find_images([url]).fingerprint(),
    "weights": lambda url: read_weights(url, ["a"]),
    "data sets": load_tasks,
    "results": lambda url: Results(url, 0, Settings()),
    "package": lambda url: import_optional("no_such_package", f"Reading {shown(url)}"),
}


@pytest.mark.parametrize("call", CALLS)
def test_no_call_of_the_library_shows_it(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if call == "export_onnx":
        pytest.importorskip("onnx", reason="needs onnx, to export")
    for url in URLS:
        # What is not a file may be a column, whose name is shown as it is but for what looks like a URL.
        name = quote(url, safe=":/@?=&#'+") if call in {"open_source, target", "open_source, column"} else url
        with pytest.raises((OSError, ValueError, ImportError)) as caught:
            CALLS[call](name)
        assert SECRET not in all_said(caught.value), url
    assert not any(tmp_path.iterdir())


def test_a_folder_may_be_named_like_a_scheme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data:").mkdir()
    save(MODEL, "data:/a@b?c=d")
    assert load("data:/a@b?c=d").n_components == 2
    assert shown("data:/a@b?c=d") == "data:/a@b?c=d"
    with pytest.raises(ValueError, match=r"^https://\*\*\*@host/m is a URL, but a local path is required"):
        local_path("https://user:hunter2@host/m")


@pytest.mark.parametrize("url", URLS)
def test_sources_and_what_is_made_of_them(url):
    """As they are when data is read from such a place."""
    source = Source(open_array(X, where=shown(url)), Preparation(np.arange(3)), np.arange(0))
    assert SECRET not in repr(source)
    assert SECRET not in source.name
    assert SECRET not in str(DataError(f"{source.name} is damaged: no host for {shown(url)}"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_user(f"{shown(url)} is slow")
    assert SECRET not in str(caught[0].message)


def test_commands_in_results(tmp_path):
    results = Results(tmp_path, 0, Settings())
    results.made_by(f"plstream reproduce all --data 'https://user:{SECRET}@host/x.npz?sig={SECRET}' --seed 0")
    results.save()
    assert read(tmp_path / "results.json")["commands"] == [
        "plstream reproduce all --data 'https://***@host/x.npz?***' --seed 0"
    ]
