"""A real HTTP server on this machine that behaves as badly as a test's script says; knows bytes, not models."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType


@dataclass
class Resource:
    """One address and how it behaves.

    Attributes:
        data: the file.
        etag: its validator; empty for none.
        ranges: whether ``Range`` is obeyed.
        status: instead of 200 or 206; 0 for those.
        cuts: after how many bytes of the body the connection is cut, one for each request; none are left: it is not.
        length: of the file as it is announced, instead of the true one; -1 announces none at all.
        location: where it redirects to.
        silent_after: byte of the file after which nothing is said until the server ends; -1 for never.
        encoding: that it says the body is in.
        asked: ``Range`` and ``If-Range`` of every request so far.
    """

    data: bytes
    etag: str = '"one"'
    ranges: bool = True
    status: int = 0
    cuts: list[int] = field(default_factory=list)
    length: int | None = None
    location: str = ""
    silent_after: int = -1
    encoding: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)


class Mirror:
    """The server. A context: it runs inside."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.resources: dict[str, Resource] = {}
        mirror = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                mirror.serve(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Mirror:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def offer(self, name: str, resource: Resource) -> str:
        """Serve a resource; returns its address."""
        self.resources[f"/{name}"] = resource
        return f"http://127.0.0.1:{self._server.server_address[1]}/{name}"

    def serve(self, request: BaseHTTPRequestHandler) -> None:
        resource = self.resources[request.path]
        wish, condition = request.headers.get("Range", ""), request.headers.get("If-Range", "")
        resource.asked.append((wish, condition))
        start, status = 0, resource.status or 200
        if wish and resource.ranges and condition in ("", resource.etag) and status == 200:
            start, status = int(wish.removeprefix("bytes=").removesuffix("-")), 206
        total = len(resource.data) if resource.length is None else resource.length
        if start >= len(resource.data) and status == 206:
            request.send_response(416)
            request.send_header("Content-Range", f"bytes */{total}")
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        request.send_response(status)
        if status == 206:
            request.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
        if total >= 0:
            request.send_header("Content-Length", str(total - start))
        for name, value in (
            ("ETag", resource.etag),
            ("Location", resource.location),
            ("Content-Encoding", resource.encoding),
        ):
            if value:
                request.send_header(name, value)
        request.end_headers()
        body = resource.data[start:]
        if resource.cuts:
            body = body[: resource.cuts.pop(0)]
        try:
            if resource.silent_after >= 0:
                request.wfile.write(body[: max(0, resource.silent_after - start)])
                request.wfile.flush()
                self.over.wait()
            else:
                request.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client has seen enough
