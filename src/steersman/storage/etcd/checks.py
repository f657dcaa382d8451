"""Checks of an etcd cluster before its use: its members are one cluster, they are new enough, and the keys are ours."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from typing import Final

from steersman.net.ascii import is_digits
from steersman.net.client.grpc import CallError
from steersman.storage.etcd import messages
from steersman.storage.etcd.members import Endpoint, Members, unavailable
from steersman.storage.etcd.messages import MessageError, Status
from steersman.storage.interface import SEALED, StorageFormatError, StorageUnavailable
from steersman.storage.rewind import bounds

COPYING: Final = b"/!copying"
"""The first key below the root, while a copy into this cluster is in progress or after it was interrupted."""
_NEEDED: Final = "3.4.31, 3.5.13 or later is needed"
"""Older members may report progress of a watch before all its events have been sent (kubernetes issue 123192), so
readers would get outdated objects.
"""
_ANSWER_SECONDS: Final = 3.0
_SHORT_SECONDS: Final = 1.0
"""The timeout of members whose answer the start does not depend on, because other members can be used."""
_HUNG_UP: Final = "unexpected EOF"
"""The error of a connection that a member closes before it has answered."""
_FORMS: Final = (b"{", b"k8s\0", SEALED, b"apiVersion:", b"kind:")
"""The first bytes of values in JSON, protobuf, encrypted form and YAML."""


async def statuses(
    found: Sequence[Endpoint], tls: ssl.SSLContext | None, seconds: float = _ANSWER_SECONDS
) -> list[Status | Exception]:
    """Return the status of each member, or the error where none was received within `seconds`."""
    return list(await asyncio.gather(*(_status(each, tls, seconds) for each in found)))


async def _status(endpoint: Endpoint, tls: ssl.SSLContext | None, seconds: float) -> Status | Exception:
    member = Members([endpoint], tls)
    try:
        async with asyncio.timeout(seconds):
            return messages.read_status(await member.call(messages.STATUS, b"", repeatable=True))
    except CallError as error:
        return StorageUnavailable(error.details)
    except (TimeoutError, MessageError) as error:
        return StorageUnavailable(str(error) or f"no answer within {seconds:g} seconds")
    finally:
        member.close()


def _is_too_old(version: str) -> bool:
    parts = version.partition("-")[0].split(".")
    if len(parts) != 3 or not all(map(is_digits, parts)):
        return False  # a custom build
    number = tuple(map(int, parts))
    return number < (3, 4, 31) or (3, 5) <= number < (3, 5, 13)


def members_error(found: Sequence[Endpoint], told: Sequence[Status | Exception]) -> str:
    """Return why these members cannot be used together. Members that do not answer may still belong to the cluster."""
    answered = [(each.text, status) for each, status in zip(found, told, strict=True) if isinstance(status, Status)]
    clusters = {status.cluster: text for text, status in reversed(answered)}
    if len(clusters) > 1:
        listed = ", ".join(f"{text} of {cluster:x}" for cluster, text in sorted(clusters.items()))
        return f"--etcd-servers are members of different clusters: {listed}"
    for text, status in answered:
        if _is_too_old(status.version):
            return f"{text} runs etcd {status.version}; {_NEEDED}"
    return ""


def no_quorum_message(found: Sequence[Endpoint], told: Sequence[Status | Exception], last: str) -> str:
    """Return why a cluster answers nothing that requires a majority. `last` is the error of the last attempt."""
    answered = [each.text for each, status in zip(found, told, strict=True) if isinstance(status, Status)]
    wrong = members_error(found, told)
    if wrong:
        return wrong
    if answered:
        return f"etcd has no quorum: {', '.join(answered)} answers, but a majority of its members does not ({last})"
    listed = "; ".join(f"{each.text}: {status}{_hint(each, status)}" for each, status in zip(found, told, strict=True))
    return f"no member of etcd answers: {listed}"


def _hint(endpoint: Endpoint, told: Status | Exception) -> str:
    """Return a hint at the likely cause if a member closes connections without an answer."""
    if str(told) != _HUNG_UP:
        return ""
    if not endpoint.secure:
        return " (if it speaks TLS, its URL begins with https://)"
    return " (if it requires client certificates, none is set or this one is not accepted: --etcd-certfile, --etcd-keyfile)"


async def check_members(found: Sequence[Endpoint], tls: ssl.SSLContext | None) -> None:
    """Check that the members can be used together. Raises StorageUnavailable."""
    wrong = members_error(found, await statuses(found, tls, _SHORT_SECONDS))
    if wrong:
        raise StorageUnavailable(wrong)


async def check_keys(members: Members, root: str) -> None:
    """Check that the first key below the root was stored by an API server. Raises StorageFormatError if it was not, and
    StorageUnavailable.
    """
    low, high = bounds(f"{root}/", "")
    assert high is not None
    request = messages.range_of(low.encode(), high.encode(), limit=1)
    try:
        first = messages.read_range(await members.call(messages.RANGE, request, repeatable=True)).items
    except CallError as error:
        raise unavailable(error) from error
    except MessageError as error:
        raise StorageUnavailable(str(error)) from error
    if not first:
        return
    if first[0].key == root.encode() + COPYING:
        raise StorageFormatError(
            f"{root} in etcd has an incomplete copy by `steersman storage to-etcd`: run it again until it completes"
        )
    if not first[0].value.startswith(_FORMS):
        key = first[0].key.decode(errors="replace")
        raise StorageFormatError(
            f"{key} in etcd was not stored by an API server: give this server its own --etcd-prefix"
        )
