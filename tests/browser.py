"""Pages of HTML: a reader that is strict, and a browser where there is one."""

import json
import shutil
import subprocess
from html import escape
from html.parser import HTMLParser

import pytest

_VOID = {"meta", "br", "hr", "img", "link", "input"}
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_MEASURE = """<script>onload = () => document.body.setAttribute("data-seen", JSON.stringify(
  [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument
    return [page.documentElement.clientWidth, page.documentElement.scrollWidth, page.title]
  })))</script>"""


class Reader(HTMLParser):
    """Reads a page, and refuses tags that are not closed in order."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.texts, self._open = [], [], [], []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names))
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def values(self, name):
        return [value for _, key, value in self.attributes if key == name]


def check_page(html):
    """Check that a page is sound, and that it is all there is; return what was read."""
    page = Reader(html)
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert not {"script", "iframe", "link", "img", "object", "embed", "base"} & {*page.tags}
    assert all(value[0] == "#" and value[1:] in ids for value in page.values("href"))
    assert {*page.values("aria-labelledby")} <= {*ids}
    assert not page.values("src")
    assert not any(name.startswith("on") for _, name, _ in page.attributes)
    assert "http://" not in html
    assert "https://" not in html
    assert "@import" not in html
    assert page.tags.count("h1") == page.tags.count("main") == 1
    svgs = [(key, value) for tag, key, value in page.attributes if tag == "svg"]
    assert sum(key == "aria-label" and len(value) > 20 for key, value in svgs) == page.tags.count("svg")
    return page


def in_browser(html, folder, widths):
    """Return width, width needed and title of a page in windows of some widths, all at once; or skip the test."""
    browser = next(filter(None, map(shutil.which, _NAMES)), None)
    if browser is None:
        pytest.skip(f"needs a browser, one of {', '.join(_NAMES)}")
    frames = "".join(f'<iframe style="width: {width}px" srcdoc="{escape(html)}"></iframe>' for width in widths)
    path = folder / "frames.html"
    path.write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{frames}{_MEASURE}</body>", encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command += ["--dump-dom", path.as_uri()]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603
    if result.returncode != 0 or "<body" not in result.stdout:
        pytest.skip(f"{browser} does not start here")
    (seen,) = [value for tag, key, value in Reader(result.stdout).attributes if (tag, key) == ("body", "data-seen")]
    return json.loads(seen)


def check_widths(html, folder, widths=(390, 1280)):
    """Check in a browser that a page is not wider than the window, on a phone and on a desk."""
    for width, (window, needed, _) in zip(widths, in_browser(html, folder, widths), strict=True):
        assert 0 <= width - window < 20
        assert needed <= window
