"""What is looked at before a cluster is used: whether it is one cluster, new enough, and holds what is ours."""

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
"""Below the root, before any other key there: a copy into this cluster is under way, or was cut off."""
_NEEDED: Final = "3.4.31, 3.5.13 or later is needed"
"""Members before these may say that a watch has told everything up to a revision when it has not, and whoever reads
would be shown what is old (kubernetes issue 123192)."""
_ANSWER_SECONDS: Final = 3.0
_SHORT_SECONDS: Final = 1.0
"""A member may be silent while the others are used, and the start is not to wait for it."""
_HUNG_UP: Final = "unexpected EOF"
"""What is told of a member that closes the connection before it has answered."""
_FORMS: Final = (b"{", b"k8s\0", SEALED, b"apiVersion:", b"kind:")
"""With what values begin: JSON, protobuf, encrypted ones, YAML."""


async def statuses(
    found: Sequence[Endpoint], tls: ssl.SSLContext | None, seconds: float = _ANSWER_SECONDS
) -> list[Status | Exception]:
    """What each of the members says of itself within some seconds, or why it does not."""
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
        return False  # somebody's own
    number = tuple(map(int, parts))
    return number < (3, 4, 31) or (3, 5) <= number < (3, 5, 13)


def wrong_with_members(found: Sequence[Endpoint], told: Sequence[Status | Exception]) -> str:
    """Why these members cannot be used together; those that do not answer may be members all the same."""
    answered = [(each.text, status) for each, status in zip(found, told, strict=True) if isinstance(status, Status)]
    clusters = {status.cluster: text for text, status in reversed(answered)}
    if len(clusters) > 1:
        listed = ", ".join(f"{text} of {cluster:x}" for cluster, text in sorted(clusters.items()))
        return f"--etcd-servers are members of different clusters: {listed}"
    for text, status in answered:
        if _is_too_old(status.version):
            return f"{text} runs etcd {status.version}; {_NEEDED}"
    return ""


def why_silent(found: Sequence[Endpoint], told: Sequence[Status | Exception], last: str) -> str:
    """Why a cluster answers nothing that a majority has to agree on; `last` is what was said at the last try."""
    answered = [each.text for each, status in zip(found, told, strict=True) if isinstance(status, Status)]
    wrong = wrong_with_members(found, told)
    if wrong:
        return wrong
    if answered:
        return f"etcd has no quorum: {', '.join(answered)} answers, and a majority of its members does not ({last})"
    listed = "; ".join(f"{each.text}: {status}{_hint(each, status)}" for each, status in zip(found, told, strict=True))
    return f"no member of etcd answers: {listed}"


def _hint(endpoint: Endpoint, told: Status | Exception) -> str:
    """What a member that hangs up without a word most likely wants."""
    if str(told) != _HUNG_UP:
        return ""
    if not endpoint.secure:
        return " (if it speaks TLS, its URL begins with https://)"
    return " (if it asks for certificates, it does not take this one or there is none: --etcd-certfile, --etcd-keyfile)"


async def check_members(found: Sequence[Endpoint], tls: ssl.SSLContext | None) -> None:
    """Raises StorageUnavailable."""
    wrong = wrong_with_members(found, await statuses(found, tls, _SHORT_SECONDS))
    if wrong:
        raise StorageUnavailable(wrong)


async def check_keys(members: Members, root: str) -> None:
    """Raises StorageFormatError for keys below the root that no API server has stored, StorageUnavailable."""
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
            f"below {root} in etcd lies part of what `steersman storage to-etcd` was to copy: run it again, to its end"
        )
    if not first[0].value.startswith(_FORMS):
        key = first[0].key.decode(errors="replace")
        raise StorageFormatError(
            f"in etcd {key} is not what an API server stores: give this server an --etcd-prefix of its own"
        )
