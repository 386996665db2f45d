"""The server that the downloads come from: two files, given out slowly enough to watch."""

import hashlib
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

CHUNK_BYTES = 64 * 1024
SECONDS = 1.5
"""How long each download takes."""


def contents(size_bytes: int, seed: int) -> bytes:
    """Make the bytes of one file, the same each time."""
    return random.Random(seed).randbytes(size_bytes)


class Server:
    """Serves `files` on a port of its own of the loopback device."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(files))
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    def url(self, name: str) -> str:
        """Say where a file is."""
        return f"http://127.0.0.1:{self._http.server_port}/{name}"

    def sha256(self, name: str) -> str:
        """Say what a file's checksum must be."""
        return hashlib.sha256(self.files[name]).hexdigest()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _handler(files: dict[str, bytes]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            data = files.get(self.path.lstrip("/"))
            self.send_response(200 if data else 404)
            self.end_headers()
            chunks = range(0, len(data or b""), CHUNK_BYTES)
            for start in chunks:
                self.wfile.write((data or b"")[start : start + CHUNK_BYTES])
                time.sleep(SECONDS / len(chunks))

        def log_message(self, *_arguments: object) -> None:
            """Say nothing: the journal tells it."""

    return Handler
