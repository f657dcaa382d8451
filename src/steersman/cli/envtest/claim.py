"""What a kube-apiserver has of the `etcd` beside it: the folder for its data, as long as the connection lasts."""

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
"""Seconds for an etcd that does not listen yet: as long as kube-apiserver waits for its own."""
_BETWEEN_TRIES: Final = 0.02
_ANSWER_TIMEOUT: Final = 5.0
_ANSWER_LIMIT: Final = 16 << 10


@dataclass(frozen=True, slots=True)
class Claim:
    """The folder, whether writes must be on the disk before they are acknowledged, and what holds it all."""

    folder: Path
    fsync: bool
    connection: socket.socket


def claim(servers: str, *, longest_wait: float = _LONGEST_WAIT) -> Claim:
    """The folder of the etcd that `--etcd-servers` names, for this process alone. Raises OptionsError."""
    if not servers:
        raise OptionsError("--etcd-servers must be specified")
    if "," in servers:
        raise OptionsError(f"--etcd-servers: {servers} are several; one etcd of `steersman envtest` is expected")
    host, port = _address(servers)
    connection = _connected(servers, host, port, longest_wait)
    try:
        status, body = _asked(connection, host, port, b"")
        if status == 401:  # it says where the word is that only the user of this etcd can read
            connection.close()
            connection = _connected(servers, host, port, longest_wait)
            status, body = _asked(connection, host, port, _word(servers, json.loads(body)["claimFile"]))
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
            f"--etcd-servers: another kube-apiserver keeps its data in the etcd at {redacted_url(servers)}; each needs "
            "one of its own"
        )
    raise OptionsError(
        f"--etcd-servers: what listens at {redacted_url(servers)} is not the etcd of `steersman envtest`: this "
        "kube-apiserver keeps its data itself and does not speak to an etcd yet"
    )


def _word(servers: str, file: str) -> bytes:
    """The word for a claim. Raises OptionsError if the etcd is another user's."""
    path = Path(file)
    if path.name != etcd.CLAIM_FILE:
        raise ValueError(f"{path} is no file of an etcd")
    try:
        check_owner(path.parent)
        return read_own(path).strip()
    except OSError as error:
        raise OptionsError(f"--etcd-servers: the etcd at {redacted_url(servers)} is another user's: {error}") from None


def _address(server: str) -> tuple[str, int]:
    try:
        parts = urlsplit(server if "://" in server else f"http://{server}")
        host, port = parts.hostname, parts.port or 2379
    except ValueError:
        raise OptionsError(f"--etcd-servers: {redacted_url(server)!r} is no URL") from None
    if parts.scheme != "http" or not host:
        raise OptionsError(
            f"--etcd-servers: {redacted_url(server)} is not http://ADDRESS:PORT, where the etcd of `steersman envtest` "
            "listens; this kube-apiserver does not speak to another etcd yet"
        )
    return host, port


def _connected(server: str, host: str, port: int, longest_wait: float) -> socket.socket:
    until = time.monotonic() + longest_wait
    while True:
        try:
            return socket.create_connection((host, port), timeout=_ANSWER_TIMEOUT)
        except OSError as error:
            if time.monotonic() > until:
                raise OptionsError(f"--etcd-servers: nothing listens at {redacted_url(server)}: {error}") from None
        time.sleep(_BETWEEN_TRIES)


def _asked(connection: socket.socket, host: str, port: int, word: bytes) -> tuple[int, bytes]:
    """Status and body of the answer. Raises OSError, ValueError for what is no HTTP."""
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
            raise ValueError("the answer is cut off, or too long")
        received += data
