"""A server that is not Steersman: a login page, a proxy, or one that lies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@contextmanager
def lying_server(folder: Path, answer: Callable[[str], tuple[int, str, bytes]]) -> Iterator[Path]:
    """Serve in a thread: `answer` returns code, content type and body for a path. Yields a kubeconfig for the server."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            code, kind, body = answer(self.path)
            self.send_response(code)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        kubeconfig = folder / "lying.kubeconfig"
        kubeconfig.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
            f"clusters: [{{name: a, cluster: {{server: 'http://127.0.0.1:{server.server_port}'}}}}]\n"
            "users: [{name: a, user: {token: hidden-token}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
        )
        yield kubeconfig
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
