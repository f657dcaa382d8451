"""Values in messages as JSON of upstream's internal types, with Go's names in Go's order."""

from __future__ import annotations

from typing import Any

from steersman.machinery.codec.serializer import encode_in_order
from steersman.machinery.errors.field import Verbatim
from steersman.registry.printing.internal_form import internal_form


def internal_text(value: Any) -> Verbatim:
    """Return `value`, a Struct or plain data in the right order, for a field error."""
    return Verbatim(encode_in_order(internal_form(value)).decode())
