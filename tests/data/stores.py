"""Object stores for tests: an S3 of its own on a free port, if moto is installed, and a web server."""

import atexit
import logging
import os
import threading
from contextlib import contextmanager
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

_KEYS = {
    "AWS_ACCESS_KEY_ID": "tester",
    "AWS_SECRET_ACCESS_KEY": "open sesame",
    "AWS_DEFAULT_REGION": "us-east-1",
    # No machine of Amazon's is asked for credentials.
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}


@cache
def s3_store():
    """Return the file system of a server with a bucket named "bucket"; skip where there is none.

    There is one for all tests of a process, and for the processes that they start: stores are kept by name.
    """
    s3fs = pytest.importorskip("s3fs", reason="needs the extra remote")
    server_module = pytest.importorskip("moto.server", reason="needs moto[server]")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    atexit.register(server.stop)
    host, port = server.get_host_and_port()
    os.environ.update(_KEYS, AWS_ENDPOINT_URL_S3=f"http://{host}:{port}")
    # Tests before may have left one without these credentials.
    s3fs.S3FileSystem.clear_instance_cache()
    store = s3fs.S3FileSystem()
    store.mkdir("bucket")
    return store


def empty_bucket():
    """Return the same, with nothing in its bucket."""
    store = s3_store()
    store.invalidate_cache()
    for path in store.find("bucket"):
        store.rm_file(path)
    store.invalidate_cache()
    return store


class _Silent(SimpleHTTPRequestHandler):
    """Files of a folder, as a plain web server gives them: whole, and without ranges."""

    def log_message(self, *_):
        pass


class _WithRanges(_Silent):
    """The same, by ranges."""

    def send_head(self):
        asked = self.headers.get("Range")
        if asked is None:
            return super().send_head()
        path = self.translate_path(self.path)
        first, last = asked.removeprefix("bytes=").split("-")
        with open(path, "rb") as file:  # noqa: PTH123
            content = file.read()
        part = content[int(first) : int(last) + 1]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)
        return None


@contextmanager
def web_server(folder, *, ranges):
    """Give the address of a server of the files in a folder."""
    pytest.importorskip("aiohttp", reason="needs the extra remote")
    handler = partial(_WithRanges if ranges else _Silent, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
