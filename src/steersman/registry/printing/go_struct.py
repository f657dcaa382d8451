"""Values of upstream's internal types in messages: JSON with Go's member names, in the order the type has them."""

from __future__ import annotations

import msgspec

from steersman.machinery.errors.field import go_json


def go_struct(**members: object) -> msgspec.Raw:
    """A struct with these members; the keyword arguments are their Go names. Values may be structs made here."""
    return msgspec.Raw(("{" + ",".join(f'"{name}":{go_json(value)}' for name, value in members.items()) + "}").encode())
