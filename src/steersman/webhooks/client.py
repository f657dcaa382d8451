"""Client of webhooks, as client-go's RESTClient and apiserver's `util/webhook`.

It posts JSON, retries transient failures, and raises errors with upstream's texts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import urljoin

import msgspec

from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import StatusError, generic_server_response
from steersman.machinery.go.strings import trim_space
from steersman.machinery.go.urls import redacted_url
from steersman.machinery.values.durations import format_duration
from steersman.net.ascii import is_digits
from steersman.net.client.answer import Answer, BadAnswer
from steersman.net.client.dial import DialError
from steersman.net.client.transport import Sender, Transport
from steersman.net.message import BodyAborted
from steersman.tracing.trace import current_recorder, http_client_span, outgoing
from steersman.webhooks.kubeconfig import Endpoint
from steersman.work.backoff import Backoff

TIMEOUT: Final = 30.0
"""Seconds of one attempt including its response."""
MAX_ANSWER_BYTES: Final = 3 << 20
AT_ONCE: Final = 64
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_REPEATING_REDIRECTS: Final = frozenset({307, 308})
"""Redirects after which the POST is repeated. After other redirects the target is fetched with GET."""
_MAX_REDIRECTS: Final = 10
LONGEST_LOCATION: Final = 16384
"""Most characters of a redirect's Location header."""
_MAX_SHOWN_URL: Final = 200
_STEPS: Final = 5
_FACTOR: Final = 1.5
_JITTER: Final = 0.2
_MAX_RETRIES: Final = 10
"""Most retries of one attempt because the webhook answers with a `Retry-After`."""
_MAX_MESSAGE: Final = 2048
"""Most bytes of a text response that go into an error message."""
_TRANSIENT_REASONS: Final = frozenset({"InternalError", "Timeout", "TooManyRequests"})


Through = Callable[[Sender], Sender]
"""Function that returns the sender of one call, given the client's own one."""

Attempt = Callable[[Callable[[], Awaitable[bytes]]], Awaitable[bytes]]
"""Wrapper of one attempt: it calls its argument, and may raise errors about the response."""


class WebhookError(Exception):
    """There is no response, or none that can be used. The text is upstream's."""

    def __init__(self, text: str, *, again: bool = False, timed_out: bool = False) -> None:
        super().__init__(text)
        self.is_retriable = again
        """True if another attempt may succeed."""
        self.timed_out = timed_out


class WebhookClient:
    """Posts to one endpoint over kept connections.

    `backoff` is the pause in seconds before the second attempt; it grows with each attempt. With None there is only one
    attempt. At most `at_once` requests run at the same time, and as many through other senders; further ones wait.
    `timeout` limits one attempt in seconds. With `only_delivers` the response may be empty, and every failure is
    retried. With `passes_trace` the trace context of the client's request is passed on.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        backoff: float | None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        *,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
        at_once: int = AT_ONCE,
        user_agent: str = "steersman",
        timeout: float | None = None,
        only_delivers: bool = False,
        passes_trace: bool = False,
    ) -> None:
        self._timeout = TIMEOUT if timeout is None else timeout
        self._endpoint = endpoint
        self._backoff = None if backoff is None else Backoff(backoff, factor=_FACTOR, jitter=_JITTER)
        self._sleep = sleep
        self._separator = "&" if "?" in endpoint.target else "?"
        self._sender = endpoint.sender or Transport(
            endpoint.tls,
            endpoint.server_name,
            protocols=endpoint.protocols,
            locate=endpoint.locate,
            leave=endpoint.leave,
        )
        self._max_answer_bytes = max_answer_bytes
        self._permits = asyncio.Semaphore(at_once)
        self._permits_of_others = asyncio.Semaphore(at_once)
        """Permits of calls through another sender, which may wait long and must not hold up the usual ones."""
        self._user_agent = user_agent
        self._only_delivers = only_delivers
        self._passes_trace = passes_trace

    def close(self) -> None:
        """Close the kept connections."""
        self._sender.close()

    async def post(self, body: bytes, attempt: Attempt | None = None, *, through: Through | None = None) -> bytes:
        """Post `body` and return the response body, which is not empty unless `only_delivers`.

        `attempt` wraps each attempt; `through` replaces the sender. Raises WebhookError, and StatusError for a response
        that reports a failure.
        """

        def send() -> Awaitable[bytes]:
            return self._post_with_retries(body, self._timeout, through)

        if self._backoff is None:
            return await (send() if attempt is None else attempt(send))
        for step in range(_STEPS):
            try:
                return await (send() if attempt is None else attempt(send))
            except (StatusError, WebhookError) as error:
                again = error.is_retriable if isinstance(error, WebhookError) else _is_transient(error)
                if step == _STEPS - 1 or not (again or self._only_delivers):
                    raise
            await self._sleep(self._backoff.wait(step))
        raise AssertionError("every attempt returns or raises")

    async def post_with_timeout(self, body: bytes, seconds: float, *, through: Through | None = None) -> bytes:
        """Post `body` in one attempt within `seconds`, a time limit that is also sent in the query. Return the
        response body.

        `through` replaces the sender. Raises WebhookError, StatusError.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._post_with_retries(body, seconds, through)
        except TimeoutError:
            raise self._error("context deadline exceeded", self._query(seconds)) from None

    async def _post_with_retries(self, body: bytes, seconds: float, through: Through | None) -> bytes:
        """Post `body`, and retry as often as the webhook asks for it by `Retry-After`."""
        for _ in range(_MAX_RETRIES):
            try:
                return await self._post(body, seconds, through)
            except StatusError as error:
                if not error.retry_after or (error.code != 429 and error.code < 500):
                    raise
                await self._sleep(error.retry_after)
        return await self._post(body, seconds, through)

    def _query(self, seconds: float) -> str:
        return f"timeout={format_duration(int(seconds * 1e9))}"

    async def _post(self, body: bytes, seconds: float, through: Through | None) -> bytes:
        sender = self._sender if through is None else through(self._sender)
        permits = self._permits if through is None else self._permits_of_others
        query = self._query(seconds)
        try:
            async with asyncio.timeout(self._timeout), permits:
                return await self._exchange(sender, body, query)
        except TimeoutError:
            why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            raise self._error(why, query, timed_out=True) from None
        except (DialError, BadAnswer, ValueError, OSError) as error:
            raise self._error(str(error), query, again="connection reset" in str(error)) from None
        except BodyAborted as error:
            raise WebhookError(
                f"unexpected error when reading response body. Please retry. Original error: {error}"
            ) from None

    def _error(self, why: str, query: str, *, again: bool = False, timed_out: bool = False) -> WebhookError:
        shown = quote(f"{self._endpoint.shown}?{query}")
        return WebhookError(f"Post {shown}: {why}", again=again, timed_out=timed_out)

    async def _exchange(self, sender: Sender, body: bytes, query: str) -> bytes:
        """Return the body of the last response: redirects on the same server are followed as Go's client does."""
        method, target = "POST", self._endpoint.target + self._separator + query
        for _ in range(_MAX_REDIRECTS + 1):
            answer, data = await self._send(sender, method, target, body)
            location = answer.header("location")
            if answer.status not in _REDIRECTS or not location:
                return self._checked_body(answer, data)
            target = self._redirect_target(target, location)
            if answer.status not in _REPEATING_REDIRECTS:
                method, body = "GET", b""
        raise BadAnswer(f"stopped after {_MAX_REDIRECTS} redirects")

    async def _send(self, sender: Sender, method: str, target: str, body: bytes) -> tuple[Answer, bytes]:
        """Send a request, and return the response and its body up to one byte beyond the limit."""
        endpoint = self._endpoint
        headers = [
            ("Host", endpoint.url.partition("://")[2].partition("/")[0]),
            ("User-Agent", self._user_agent),
            ("Accept", "application/json, */*"),
            ("Content-Type", "application/json"),
        ]
        if method == "POST":
            headers.append(("Content-Length", str(len(body))))
        if credentials := endpoint.credentials():
            headers.append(("Authorization", credentials))
        if self._passes_trace and current_recorder() is not None:
            return await self._send_in_span(sender, method, target, headers, body)
        return await self._exchanged(sender, method, target, headers, body)

    async def _send_in_span(
        self, sender: Sender, method: str, target: str, headers: list[tuple[str, str]], body: bytes
    ) -> tuple[Answer, bytes]:
        """Send a request that passes the trace context on, and return as `_send` does."""
        url = self._endpoint.url.partition("://")
        with http_client_span(method, f"{url[0]}://{url[2].partition('/')[0]}{target}") as opened:
            answer, data = await self._exchanged(sender, method, target, [*headers, *outgoing()], body)
            if opened is not None:
                opened.set("network.protocol.version", answer.version)
                opened.set("http.response.status_code", answer.status)
            return answer, data

    async def _exchanged(
        self, sender: Sender, method: str, target: str, headers: list[tuple[str, str]], body: bytes
    ) -> tuple[Answer, bytes]:
        endpoint = self._endpoint
        answer = await sender.send(endpoint.address, method, target, headers, whole=body, again=True)
        try:
            return answer, await answer.read(self._max_answer_bytes + 1)
        finally:
            await answer.close()

    def _checked_body(self, answer: Answer, data: bytes) -> bytes:
        if len(data) > self._max_answer_bytes:
            raise WebhookError(f"the answer is longer than {self._max_answer_bytes} bytes")
        if not 200 <= answer.status <= 206:
            raise _error_of_response(answer, data)
        if not data and not self._only_delivers:
            content_type = answer.header("content-type")
            raise WebhookError(f"0-length response with status code: {answer.status} and content type: {content_type}")
        return data

    def _redirect_target(self, target: str, location: str) -> str:
        """Return the path and query of a redirect. Raises BadAnswer for a redirect to another server.

        A webhook's server must not choose which other servers this server sends requests to.
        """
        if len(location) > LONGEST_LOCATION:
            raise BadAnswer(f"failed to parse Location header: it has more than {LONGEST_LOCATION} characters")
        scheme, _, rest = self._endpoint.url.partition("://")
        own = f"{scheme}://{rest.partition('/')[0]}"
        to = urljoin(own + target, location)
        if to != own and not to.startswith(f"{own}/"):
            raise BadAnswer(f"redirects to other servers are not followed: {quote(redacted_url(to)[:_MAX_SHOWN_URL])}")
        if not (to.isascii() and to.isprintable()) or " " in to:
            raise BadAnswer("failed to parse Location header: it has characters that no URL has")
        return to.removeprefix(own).partition("#")[0] or "/"


def _is_transient(error: StatusError) -> bool:
    return error.reason in _TRANSIENT_REASONS or bool(error.retry_after)


class _Details(msgspec.Struct, rename="camel"):
    retry_after_seconds: int = 0


class _Status(msgspec.Struct, rename="camel"):
    """A Status in a webhook's response."""

    kind: str = ""
    api_version: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


_STATUS: Final = msgspec.json.Decoder(_Status)


def _error_of_response(answer: Answer, data: bytes) -> StatusError:
    """Return the error of a response: its own Status, or a generic error for its code."""
    try:
        status = _STATUS.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        status = _Status()
    if (status.kind, status.api_version) == ("Status", "v1") and status.status != "Success":
        wait = status.details.retry_after_seconds if status.details is not None else 0
        return StatusError(status.code, status.reason, status.message, retry_after=wait, details_present=bool(wait))
    text = "unknown"
    if answer.header("content-type").startswith("text/"):
        text = trim_space(data[:_MAX_MESSAGE].decode("utf-8", "replace"))
    after = answer.header("retry-after")
    retry_after = int(after) if is_digits(after) and len(after) < 6 else 0
    return generic_server_response(answer.status, "POST", message=text, retry_after=retry_after)
