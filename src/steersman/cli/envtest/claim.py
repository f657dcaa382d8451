"""Claim of a kube-apiserver on its `etcd`: exclusive use of the data folder while the connection lasts."""

from __future__ import annotations

import json
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from steersman.cli.envtest import etcd
from steersman.controlplane.options import OptionsError
from steersman.machinery.go.urls import redacted_url
from steersman.machinery.private_files import check_owner, read_own

_LONGEST_WAIT: Final = 20.0
"""Seconds to wait for an etcd that does not listen yet, as long as upstream waits for its etcd."""
_BETWEEN_TRIES: Final = 0.02
_ANSWER_TIMEOUT: Final = 5.0
_ANSWER_LIMIT: Final = 16 << 10


@dataclass(frozen=True, slots=True)
class Claim:
    """The data folder; True in `fsync` if writes must reach the disk before they are acknowledged; and the
    connection.
    """

    folder: Path
    fsync: bool
    connection: socket.socket


def claim(servers: str, *, longest_wait: float = _LONGEST_WAIT) -> Claim:
    """Claim the folder of the etcd in `--etcd-servers` for this process. Raises OptionsError."""
    if not servers:
        raise OptionsError("--etcd-servers must be specified")
    if "," in servers:
        raise OptionsError(f"--etcd-servers: {servers} has several addresses; only one is supported")
    host, port = _address(servers)
    connection = _connected(servers, host, port, longest_wait)
    try:
        status, body = _request(connection, host, port, b"")
        if status == 401:  # the answer has the path of a secret that only the etcd's user can read
            connection.close()
            connection = _connected(servers, host, port, longest_wait)
            status, body = _request(connection, host, port, _word(servers, json.loads(body)["claimFile"]))
        if status == 200:
            answer = json.loads(body)
            return Claim(Path(answer["dataDir"]), answer["fsync"] is not False, connection)
    except OptionsError:
        connection.close()
        raise
    except (OSError, ValueError, KeyError, TypeError):
        status = 0
    except BaseException:
        connection.close()
        raise
    connection.close()
    if status == 409:
        raise OptionsError(
            f"--etcd-servers: another kube-apiserver uses the etcd at {redacted_url(servers)}; each kube-apiserver needs "
            "an etcd of its own"
        )
    raise OptionsError(
        f"--etcd-servers: the server at {redacted_url(servers)} is not the etcd of `steersman envtest`, the only one that "
        "this kube-apiserver supports"
    )


def _word(servers: str, file: str) -> bytes:
    """Return the secret for a claim. Raises OptionsError if the etcd belongs to another user."""
    path = Path(file)
    if path.name != etcd.CLAIM_FILE:
        raise ValueError(f"{path} is not a claim file of the etcd")
    try:
        check_owner(path.parent)
        return read_own(path).strip()
    except OSError as error:
        raise OptionsError(
            f"--etcd-servers: the etcd at {redacted_url(servers)} belongs to another user: {error}"
        ) from None


def _address(server: str) -> tuple[str, int]:
    try:
        parts = urlsplit(server if "://" in server else f"http://{server}")
        host, port = parts.hostname, parts.port or 2379
    except ValueError:
        raise OptionsError(f"--etcd-servers: {redacted_url(server)!r} is not a URL") from None
    if parts.scheme != "http" or not host:
        raise OptionsError(
            f"--etcd-servers: {redacted_url(server)} is not of the form http://ADDRESS:PORT; this kube-apiserver "
            "supports only the etcd of `steersman envtest`"
        )
    return host, port


def _connected(server: str, host: str, port: int, longest_wait: float) -> socket.socket:
    until = time.monotonic() + longest_wait
    while True:
        try:
            return socket.create_connection((host, port), timeout=_ANSWER_TIMEOUT)
        except OSError as error:
            if time.monotonic() > until:
                raise OptionsError(f"--etcd-servers: cannot connect to {redacted_url(server)}: {error}") from None
        time.sleep(_BETWEEN_TRIES)


def _request(connection: socket.socket, host: str, port: int, word: bytes) -> tuple[int, bytes]:
    """Send the request and return status and body. Raises OSError, and ValueError for an invalid response."""
    name = f"[{host}]" if ":" in host else host
    request = etcd.CLAIM + f"HTTP/1.1\r\nHost: {name}:{port}\r\nContent-Length: 0\r\n".encode()
    if word:
        request += b"Authorization: Bearer " + word + b"\r\n"
    connection.sendall(request + b"\r\n")
    received = b""
    while True:
        head, found, body = received.partition(b"\r\n\r\n")
        if found:
            lines = head.decode("latin-1").lower().split("\r\n")
            fields = dict(line.split(": ", 1) for line in lines[1:])
            if len(body) >= int(fields["content-length"]):
                return int(lines[0].split(" ")[1]), body
        data = connection.recv(_ANSWER_LIMIT)
        if not data or len(received) > _ANSWER_LIMIT:
            raise ValueError("the response is incomplete or too long")
        received += data
