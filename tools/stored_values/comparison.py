"""Keys and values of two stores, without what is another one each time: uids, times, generated names and keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

_MASKS: Final = (
    (re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), b"UID"),
    (re.compile(rb"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z"), b"TIME"),
    (re.compile(rb"\x08[\x80-\xff]{4}[\x01-\x7f]\x10[\x80-\xff]{0,4}[\x00-\x7f]"), b"TIMESTAMP"),
    (re.compile(rb"apiserver-[a-z0-9]{26}"), b"IDENTITY"),
)
"""In JSON and in protobuf, where times are Timestamps of seconds (since 2004 five bytes) and nanoseconds."""


def masked(value: bytes) -> bytes:
    """A value without what differs from time to time."""
    for pattern, name in _MASKS:
        value = pattern.sub(name, value)
    return value


def masked_keys(contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """The contents by masked keys."""
    return {masked(key.encode()).decode(): value for key, value in contents.items()}


def forms(contents: Mapping[str, bytes]) -> dict[str, str]:
    """Return the form of each value, by masked keys."""
    return {key: _form(value) for key, value in masked_keys(contents).items()}


def _form(value: bytes) -> str:
    if value.startswith(b"k8s\0"):
        return "protobuf"
    return "JSON" if value.startswith(b"{") else "text"


def differences(theirs: Mapping[str, bytes], ours: Mapping[str, bytes]) -> Iterator[str]:
    """A paragraph for each key that only one of them has, and for each value that is not the same."""
    theirs, ours = masked_keys(theirs), masked_keys(ours)
    for key in sorted(theirs.keys() | ours.keys()):
        if key not in ours:
            yield f"only kube-apiserver: {key}"
        elif key not in theirs:
            yield f"only ours: {key}"
        else:
            a, b = masked(theirs[key]), masked(ours[key])
            if a != b:
                at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
                begin = max(at - 60, 0)
                yield f"{key} at {at}:\n  theirs {a[begin : at + 120]!r}\n  ours   {b[begin : at + 120]!r}"
