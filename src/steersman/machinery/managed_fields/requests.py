"""Who a request writes as, and when a write is not worth a new time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from steersman.api.meta.v1 import ManagedFieldsEntry
from steersman.machinery.go.printable import is_printable

MAX_MANAGER: Final = 128
"""Bytes of a manager's name."""


_REMEMBERED: Final = 256
"""Characters of a user agent that is remembered."""


def manager_name(field_manager: str, user_agent: str) -> str:
    """The manager of a request: its fieldManager, or what its user agent says up to a slash.

    Of a user agent, characters that cannot be printed and what is beyond 128 bytes are left out.
    """
    if field_manager:
        return field_manager
    return _from_user_agent(user_agent) if len(user_agent) <= _REMEMBERED else _from_user_agent.__wrapped__(user_agent)


@lru_cache(maxsize=512)
def _from_user_agent(user_agent: str) -> str:
    out = ""
    size = 0
    for character in user_agent.partition("/")[0]:
        if not is_printable(character):
            continue
        size += len(character.encode("utf-8", "replace"))
        if size > MAX_MANAGER:
            break
        out += character
    return out


def differ_in_times_only(new: Sequence[ManagedFieldsEntry], old: Sequence[ManagedFieldsEntry]) -> bool:
    """Whether entries are the same but for their times, of which one at least is another."""
    if len(new) != len(old) or all(a is b or a.time == b.time for a, b in zip(new, old, strict=True)):
        return False
    return all(a is b or _without_time(a) == _without_time(b) for a, b in zip(new, old, strict=True))


def _without_time(entry: ManagedFieldsEntry) -> tuple[object, ...]:
    fields = b"" if entry.fields_v1 is None else bytes(entry.fields_v1)
    return entry.manager, entry.operation, entry.api_version, entry.fields_type, fields, entry.subresource
