"""The API server of the cluster that this server is behind: where it is, and requests to it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from steersman.library.aggregation import ClusterError
from steersman.machinery.codec.serializer import encode
from steersman.machinery.codec.strict import DecodeError, decode_object
from steersman.machinery.errors.status import StatusError, generic_server_response, service_unavailable
from steersman.machinery.go.strings import trim_space
from steersman.net.ascii import is_digits
from steersman.net.client.answer import Answer, BadAnswer
from steersman.net.client.dial import DialError, host_port
from steersman.net.client.tls import HTTP2
from steersman.net.client.transport import Address, Transport, bounded
from steersman.net.message import BodyAborted
from steersman.webhooks.kubeconfig import Endpoint, KubeconfigError, client_tls, fixed, load_kubeconfig
from steersman.work.backoff import Backoff

R = TypeVar("R", bound=msgspec.Struct)

SECONDS: Final = 10.0
"""For a request with its answer and all its attempts, as upstream's delegating options have it."""
MAX_ANSWER_BYTES: Final = 64 << 20
_MAX_LINE: Final = 8 << 20
"""Bytes of one event of a watch."""
_JSON: Final = "application/json"
_APPLY: Final = "application/apply-patch+yaml"
_STEPS: Final = 5
_BACKOFF: Final = Backoff(0.5, factor=1.5, jitter=0.2)
_PASSING: Final = frozenset({"InternalError", "Timeout", "TooManyRequests", "ServerTimeout"})
_SHOWN: Final = 2048

_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod has the token of its service account, and the authority of the API server."""


class _Details(msgspec.Struct, rename="camel"):
    retry_after_seconds: int = 0


class _Status(msgspec.Struct, rename="camel"):
    """A Status, as far as it is told on."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


def find_cluster(kubeconfig: Path | str, *, account: Path = _ACCOUNT) -> Cluster:
    """The API server of a kubeconfig's current context; without one, that of the pod in which this runs.

    Raises ClusterError.
    """
    try:
        endpoint = load_kubeconfig(Path(kubeconfig).expanduser()) if kubeconfig else _of_pod(account)
    except (KubeconfigError, OSError) as error:
        raise ClusterError(str(error)) from None
    if not endpoint.address.secure:
        raise ClusterError(f"{endpoint.shown} is no https URL: tokens are shown to nobody else")
    return Cluster(endpoint)


def _of_pod(account: Path) -> Endpoint:
    """Raises ClusterError, OSError, KubeconfigError."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not is_digits(port):
        raise ClusterError(
            "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be "
            "defined: outside of a cluster, name a kubeconfig"
        )
    authority = (account / "ca.crt").read_bytes()
    token = account / "token"
    token.read_bytes()

    def credentials() -> str:
        # it is replaced before it ends
        return f"Bearer {trim_space(token.read_text('ascii'))}"

    url, address = f"https://{host_port(host, int(port))}", Address(host, int(port))
    tls = fixed(client_tls(authority, protocols=HTTP2))
    return Endpoint(url, address, "/", tls, host, credentials, protocols=HTTP2)


class Cluster:
    """Requests to one API server, over connections that are kept."""

    def __init__(self, endpoint: Endpoint) -> None:
        """`endpoint` has TLS."""
        self._endpoint = endpoint
        self._prefix = endpoint.target.partition("?")[0].rstrip("/")
        self._transport = Transport(
            endpoint.tls, endpoint.server_name, protocols=endpoint.protocols, locate=endpoint.locate
        )

    @property
    def url(self) -> str:
        """Where it is."""
        return self._endpoint.url

    def close(self) -> None:
        """Closes the connections that are kept."""
        self._transport.close()

    async def get(self, kind: type[R], target: str) -> R:
        """An object or list, as far as `kind` has members for it. Raises StatusError: the server's own, or 503 if there
        is no answer that can be used."""
        data = await self._ask_again("GET", target)
        try:
            return msgspec.json.decode(data, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise service_unavailable(f"the answer to GET {target} cannot be read") from None

    async def review(self, target: str, review: R) -> R:
        """The review with its answer. Raises StatusError as `get` does."""
        data = await self._ask_again("POST", target, encode(review))
        try:
            return decode_object(type(review), data, "json", want_strict=False).obj
        except DecodeError as error:
            raise service_unavailable(f"the answer to POST {target} cannot be read: {error}") from None

    async def apply(self, target: str, obj: Any, manager: str) -> None:
        """Applies an object, whoever owns its fields. Raises StatusError as `get` does."""
        await self._ask_again("PATCH", f"{target}?fieldManager={manager}&force=true", encode(obj), media=_APPLY)

    async def watch(self, target: str) -> AsyncGenerator[bytes, None]:
        """The events of a watch, each as JSON, until it ends. Raises StatusError as `get` does."""
        try:
            async with asyncio.timeout(SECONDS):
                answer = await self._send("GET", target, b"", _JSON)
            try:
                if answer.status != 200:
                    raise _refusal(answer.status, await answer.read(_SHOWN), "")
                async for line in _lines(answer):
                    yield line
            finally:
                await answer.close()
        except (DialError, BadAnswer, BodyAborted, OSError, ValueError) as error:
            raise self._unavailable("GET", target, str(error)) from None

    async def _ask_again(self, method: str, target: str, body: bytes = b"", *, media: str = _JSON) -> bytes:
        """The body of the answer; what failed in passing is tried again while there is time."""
        try:
            async with asyncio.timeout(SECONDS):
                for step in range(_STEPS - 1):
                    try:
                        return await self._ask(method, target, body, media)
                    except StatusError as error:
                        if error.reason not in _PASSING and not error.retry_after:
                            raise
                        await asyncio.sleep(error.retry_after or _BACKOFF.wait(step))
                return await self._ask(method, target, body, media)
        except TimeoutError:
            raise self._unavailable(method, target, "context deadline exceeded") from None

    async def _ask(self, method: str, target: str, body: bytes, media: str) -> bytes:
        try:
            answer = await self._send(method, target, body, media)
            after = answer.header("retry-after")
            data = await bounded(answer, MAX_ANSWER_BYTES, SECONDS)
        except (DialError, BadAnswer, BodyAborted, OSError, ValueError) as error:
            raise self._unavailable(method, target, str(error)) from None
        if data is None:
            raise self._unavailable(method, target, f"the answer is longer than {MAX_ANSWER_BYTES} bytes")
        if not 200 <= answer.status <= 206:
            raise _refusal(answer.status, data, after)
        return data

    async def _send(self, method: str, target: str, body: bytes, media: str) -> Answer:
        """The answer, its head read. Whatever is asked here may be asked twice."""
        endpoint = self._endpoint
        headers = [
            ("Host", endpoint.url.partition("://")[2].partition("/")[0]),
            ("User-Agent", "steersman"),
            ("Accept", _JSON),
        ]
        if body:
            headers += [("Content-Type", media), ("Content-Length", str(len(body)))]
        if credentials := endpoint.credentials():
            headers.append(("Authorization", credentials))
        return await self._transport.send(
            endpoint.address, method, self._prefix + target, headers, whole=body, again=True
        )

    def _unavailable(self, method: str, target: str, why: str) -> StatusError:
        place = urlsplit(self._endpoint.url)
        return service_unavailable(f"{method} {place.scheme}://{place.netloc}{target.partition('?')[0]}: {why}")


async def _lines(answer: Answer) -> AsyncIterator[bytes]:
    """Raises BadAnswer for a line that is too long."""
    rest = bytearray()
    async for piece in answer:
        *lines, last = piece.split(b"\n")
        for line in lines:
            yield bytes(rest) + line
            rest.clear()
        rest += last
        if len(rest) > _MAX_LINE:
            raise BadAnswer(f"an event is longer than {_MAX_LINE} bytes")


def _refusal(code: int, data: bytes, after: str) -> StatusError:
    """The error that an answer is: its Status if it has one, else what its code says."""
    retry_after = int(after) if is_digits(after) and len(after) < 6 else 0
    status = status_in(data)
    if status is None:
        return generic_server_response(
            code, "GET", message=trim_space(data[:_SHOWN].decode("utf-8", "replace")), retry_after=retry_after
        )
    details = status.details
    return StatusError(
        status.code or code,
        status.reason,
        status.message,
        retry_after=retry_after if details is None else details.retry_after_seconds,
        details_present=False,
    )


_READ_STATUS: Final = msgspec.json.Decoder(_Status)


def status_in(data: bytes) -> _Status | None:
    """The Status that is told of a failure; None for anything else."""
    try:
        status = _READ_STATUS.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return status if status.kind == "Status" and status.status != "Success" else None
