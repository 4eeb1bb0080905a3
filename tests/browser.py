"""Pages of HTML: a reader that is strict, and a browser where there is one."""

import json
import os
import select
import shutil
import subprocess
import sys
import time
from base64 import b64decode
from html import escape
from html.parser import HTMLParser

import pytest

_VOID = {"meta", "br", "hr", "img", "link", "input"}
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu")
# Seconds that a browser may take for one answer, however busy the machine is.
_PATIENCE = 300
# Other descriptors first, in case that these two are among them.
_WITH_PIPES = """import os, sys
read, write = (os.dup(os.dup(int(number))) for number in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])"""
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


def check_page(html, scripts=()):
    """Check that a page is sound, and that it and these scripts are all there is; return what was read."""
    for script in scripts:
        assert html.count(f"<script>{script}</script>") == 1
        html = html.replace(f"<script>{script}</script>", "")
    page = Reader(html)
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    # All others are data, which does not run.
    assert page.tags.count("script") == page.attributes.count(("script", "type", "application/json"))
    assert not {"iframe", "link", "img", "object", "embed", "base"} & {*page.tags}
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


def find_browser():
    """Return the path of a browser; or skip the test."""
    browser = next(filter(None, map(shutil.which, _NAMES)), None)
    if browser is None:
        pytest.skip(f"needs a browser, one of {', '.join(_NAMES)}")
    return browser


def in_browser(html, folder, widths):
    """Return width, width needed and title of a page in windows of some widths, all at once; or skip the test."""
    browser = find_browser()
    frames = "".join(f'<iframe style="width: {width}px" srcdoc="{escape(html)}"></iframe>' for width in widths)
    path = folder / "frames.html"
    path.write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{frames}{_MEASURE}</body>", encoding="utf-8")
    command = [browser, *_OPTIONS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", path.as_uri()]
    result = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)  # noqa: S603
    if result.returncode != 0 or "<body" not in result.stdout:
        pytest.skip(f"{browser} does not start here: {result.stderr.strip()[-300:]}")
    (seen,) = [value for tag, key, value in Reader(result.stdout).attributes if (tag, key) == ("body", "data-seen")]
    return json.loads(seen)


def check_widths(html, folder, widths=(390, 1280)):
    """Check in a browser that a page is not wider than the window, on a phone and on a desk."""
    for width, (window, needed, _) in zip(widths, in_browser(html, folder, widths), strict=True):
        assert 0 <= width - window < 20
        assert needed <= window


class Tab:
    """A page in a browser without a network, driven by the DevTools protocol over pipes.

    Use it as a context manager. ``messages`` holds what the page has said on the console, and what went wrong in it.
    """

    def __init__(self, path, folder, width=1280, height=900, *, dark=False, touch=False):
        browser = find_browser()
        self.messages, self._number = [], 0
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # The protocol is spoken over the file descriptors 3 and 4.
        command = [sys.executable, "-c", _WITH_PIPES, str(to_browser), str(from_browser), browser, *_OPTIONS]
        command += ["--remote-debugging-pipe", f"--user-data-dir={folder / 'profile'}", "about:blank"]
        self._process = subprocess.Popen(  # noqa: S603
            command, pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_browser)
        os.close(from_browser)
        self._pending, self._session = b"", None
        try:
            self._open(path, width, height, dark=dark, touch=touch)
        except OSError as error:
            self.close()
            pytest.skip(f"{browser} does not start here: {error}")

    def _open(self, path, width, height, *, dark, touch):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1
        )
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        self.call("Emulation.setTouchEmulationEnabled", enabled=touch)
        self.prefer(dark=dark)
        self.call("Page.navigate", url=path.as_uri())

    def prefer(self, *, dark):
        """Let the reader prefer dark colours, or light ones."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def call(self, method, **parameters):
        """Call a method of the protocol, and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def _receive(self):
        while b"\0" not in self._pending:
            if not select.select([self._read], [], [], _PATIENCE)[0]:
                raise TimeoutError("The browser does not answer.")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise ConnectionError("The browser has gone.")
            self._pending += part
        message, _, self._pending = self._pending.partition(b"\0")
        return json.loads(message)

    def _note(self, event):
        parameters = event.get("params", {})
        if event.get("method") == "Runtime.consoleAPICalled":
            self.messages.append(str([part.get("value") for part in parameters["args"]]))
        elif event.get("method") == "Runtime.exceptionThrown":
            self.messages.append(str(parameters["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded":
            self.messages.append(parameters["entry"]["text"])

    def run(self, script):
        """Return the value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait_for(self, script):
        """Wait until an expression in the page is true, and return its value."""
        end = time.monotonic() + _PATIENCE
        while not (value := self.run(script)):
            assert time.monotonic() < end, f"{script} does not come true; {self.messages}"
            time.sleep(0.05)
        return value

    def point_at(self, x, y):
        """Move the mouse."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x, y):
        """Press and release the mouse."""
        self.point_at(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key):
        """Press and release a key."""
        code = {"Enter": 13, "ArrowDown": 40}[key]
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def picture(self, path, *, whole=False):
        """Write a picture of what is seen, or of the whole page."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(b64decode(data))

    def close(self):
        """End the browser."""
        self._process.terminate()
        self._process.wait(timeout=_PATIENCE)
        os.close(self._write)
        os.close(self._read)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()
