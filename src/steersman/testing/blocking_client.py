"""A plain blocking client over TLS."""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import ssl
from collections.abc import Mapping
from typing import Any, Final

_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


class BlockingClient:
    """Blocking HTTP/1.1 client that keeps its connection. Not thread-safe.

    It authenticates with the client certificate of `context`, or with the bearer `token`.
    """

    def __init__(
        self, address: tuple[str, int], context: ssl.SSLContext, timeout: float = 10.0, *, token: str = ""
    ) -> None:
        self._connection = http.client.HTTPSConnection(*address, context=context, timeout=timeout)
        self._made_from = address, context, timeout
        self._fields = {"Accept": "application/json"}
        self._groups: tuple[str, ...] = ()
        if token:
            self._fields["Authorization"] = f"Bearer {token}"

    def request(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Send a request, and return status and body.

        A body that is not bytes is sent as JSON. Raises OSError and http.client.HTTPException.
        """
        fields = {**self._fields, **(headers or {})}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            fields.setdefault("Content-Type", "application/json")
        self._forget_dropped()
        try:
            self._send(method, path, body, fields)
            response = self._connection.getresponse()
            return response.status, response.read()
        except BaseException:
            self._connection.close()
            raise

    def _send(self, method: str, path: str, body: bytes | None, fields: Mapping[str, str]) -> None:
        connection = self._connection
        connection.putrequest(method, path)
        for name, value in (*fields.items(), *(("Impersonate-Group", each) for each in self._groups)):
            connection.putheader(name, value)
        if body is not None or method in _WITH_BODY:
            connection.putheader("Content-Length", str(len(body or b"")))
        connection.endheaders(body)

    def _forget_dropped(self) -> None:
        """Close the kept connection if the server has closed it, as it does after some idle time."""
        kept = self._connection.sock
        if kept is not None and select.select([kept], [], [], 0)[0]:
            self._connection.close()

    def as_user(self, user: str, *groups: str) -> BlockingClient:
        """Return a client that impersonates a user, if the own user may (`kubectl --as`)."""
        other = BlockingClient(*self._made_from)
        other._fields = {**self._fields, "Impersonate-User": user}
        other._groups = groups
        return other

    def json(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request, and return status and body as plain data.

        Raises what `request` raises, and ValueError if the body is not JSON.
        """
        status, data = self.request(method, path, body)
        return status, json.loads(data)

    def close(self) -> None:
        """Close the connection; a further request opens a new one."""
        self._connection.close()

    def __enter__(self) -> BlockingClient:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self.close()
