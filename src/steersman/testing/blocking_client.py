"""A plain client that blocks, over TLS."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
from collections.abc import Mapping
from typing import Any


class BlockingClient:
    """A blocking HTTP/1.1 client that keeps its connection. Not for several threads.

    It has the identity of the certificate that `context` shows, or of the bearer `token`.
    """

    def __init__(
        self, address: tuple[str, int], context: ssl.SSLContext, timeout: float = 10.0, *, token: str = ""
    ) -> None:
        self._connection = http.client.HTTPSConnection(*address, context=context, timeout=timeout)
        self._fields = {"Accept": "application/json"}
        if token:
            self._fields["Authorization"] = f"Bearer {token}"

    def request(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Status and body. A body that is not bytes is sent as JSON. Raises OSError and http.client.HTTPException."""
        fields = {**self._fields, **(headers or {})}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            fields.setdefault("Content-Type", "application/json")
        try:
            self._connection.request(method, path, body, fields)
            response = self._connection.getresponse()
            return response.status, response.read()
        except BaseException:
            self._connection.close()
            raise

    def json(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and the body as plain data. Raises what `request` raises, and ValueError for what is not JSON."""
        status, data = self.request(method, path, body)
        return status, json.loads(data)

    def close(self) -> None:
        """Ends the connection; a further request makes a new one."""
        self._connection.close()

    def __enter__(self) -> BlockingClient:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self.close()
