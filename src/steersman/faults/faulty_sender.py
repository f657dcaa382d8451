"""Faults of calls that the server makes: to webhooks, and to the servers behind APIServices."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from steersman.faults.fault import GARBAGE, LONGEST, Call, Fault, Status, usual_reason
from steersman.net.client.answer import Answer, BadAnswer
from steersman.net.client.dial import DialError, host_port
from steersman.net.client.transport import Address, Dialer, Sender
from steersman.net.upgrade import UpgradedConnection
from steersman.tracing.trace import step

if TYPE_CHECKING:
    from steersman.faults.fault_set import FaultSet
    from steersman.webhooks.client import Through

_HUNG_UP: Final = "EOF"


def faulty_way(faults: FaultSet, call: Call) -> Through | None:
    """Return the sender of a webhook's call that a fault hits, None for the usual sender."""
    fault = faults.choose_for_call(call)
    return None if fault is None else partial(FaultySender, fault)


class FaultySender:
    """Sender of one call, to which a fault happens. Attempts that begin after the fault's end are not hit."""

    def __init__(self, fault: Fault, inner: Sender) -> None:
        self._fault = fault
        self._inner = inner

    def close(self) -> None:
        """Do nothing: the connections belong to the other sender."""

    async def send(
        self,
        address: Address,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: AsyncIterator[bytes] | None = None,
        *,
        chunked: bool = False,
        whole: bytes = b"",
        again: bool | None = None,
    ) -> Answer:
        """Send a request as Transport.send does, unless the fault prevents it. Raises DialError, BadAnswer."""
        fault, effect = self._fault, self._fault.spec.effect
        send = partial(
            self._inner.send, address, method, target, headers, body, chunked=chunked, whole=whole, again=again
        )
        if fault.is_over:
            return await send()
        with step("Injected fault", fault=fault.name):
            await _before(fault, address)
            if effect.status is not None:
                return _FixedAnswer(effect.status.code, "application/json", _status(effect.status))
            if effect.garbage:
                return _FixedAnswer(200, "text/html", GARBAGE)
            answer = await send()
            try:
                await fault.wait(fault.after)
            except BaseException:
                await answer.close()
                raise
            if effect.lose_answer:
                await answer.close()
                raise BadAnswer(_HUNG_UP)
            return answer


class FaultyDialer(FaultySender):
    """Sender and dialer of one call, to which a fault happens."""

    def __init__(self, fault: Fault, inner: Dialer) -> None:
        super().__init__(fault, inner)
        self._dialer = inner

    async def dial(self, address: Address) -> UpgradedConnection:
        """Return a connection for an upgraded protocol, unless the fault prevents its answer. Raises DialError."""
        fault, effect = self._fault, self._fault.spec.effect
        with step("Injected fault", fault=fault.name):
            try:
                await _before(fault, address)
            except BadAnswer as error:
                raise DialError(str(error)) from None
            if effect.status is not None or effect.garbage or effect.lose_answer:
                raise DialError(_HUNG_UP)
            return await self._dialer.dial(address)


async def _before(fault: Fault, address: Address) -> None:
    """Let happen to a call what comes before it. Raises DialError, BadAnswer."""
    effect = fault.spec.effect
    await fault.wait(LONGEST if effect.hang else fault.before)
    if effect.refuse:
        raise DialError(f"dial tcp {host_port(address.host, address.port)}: connect: connection refused")
    if effect.cut:
        raise BadAnswer(_HUNG_UP)


def _status(status: Status) -> bytes:
    """Return the body of an error, a Status."""
    reason = status.reason or usual_reason(status.code)
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": status.message or f"injected fault: {status.code}",
        "reason": reason,
        "code": status.code,
    }
    if status.retry_after_seconds:
        body["details"] = {"retryAfterSeconds": status.retry_after_seconds}
    return msgspec.json.encode(body)


class _FixedAnswer(Answer):
    """Answer that no server gave."""

    def __init__(self, code: int, media_type: str, body: bytes) -> None:
        super().__init__()
        self.status = code
        self.headers = [("content-type", media_type), ("content-length", str(len(body)))]
        self.length = len(body)
        self._body = body

    def whole(self) -> bytes | None:
        body, self._body = self._body, b""
        return body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if body := self.whole():
            yield body

    def cut_off(self) -> None:
        """Do nothing: all of the answer is there."""

    async def close(self) -> None:
        """Do nothing: there is no connection."""
