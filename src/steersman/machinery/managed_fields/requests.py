"""The manager name of a request, and writes that would change nothing but the times of entries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from steersman.api.meta.v1 import ManagedFieldsEntry
from steersman.machinery.go.printable import is_printable

MAX_MANAGER: Final = 128
"""Bytes of the longest manager name."""


_REMEMBERED: Final = 256
"""Characters of the longest user agent that is cached."""


def manager_name(field_manager: str, user_agent: str) -> str:
    """Return the manager of a request: its fieldManager, or its user agent up to the first slash.

    Unprintable characters of a user agent, and bytes beyond MAX_MANAGER, are left out.
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
    """Return True if entries only differ in times, and at least one time differs."""
    if len(new) != len(old) or all(a is b or a.time == b.time for a, b in zip(new, old, strict=True)):
        return False
    return all(a is b or _without_time(a) == _without_time(b) for a, b in zip(new, old, strict=True))


def _without_time(entry: ManagedFieldsEntry) -> tuple[object, ...]:
    fields = b"" if entry.fields_v1 is None else bytes(entry.fields_v1)
    return entry.manager, entry.operation, entry.api_version, entry.fields_type, fields, entry.subresource
