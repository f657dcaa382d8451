"""Structs of upstream's internal types in messages: JSON with Go's member names, in the order of the type."""

from __future__ import annotations

import msgspec

from steersman.machinery.errors.field import go_json


def go_struct(**members: object) -> msgspec.Raw:
    """Return a struct with these members; the keywords are Go names, and values may be results of this function."""
    return msgspec.Raw(("{" + ",".join(f'"{name}":{go_json(value)}' for name, value in members.items()) + "}").encode())
