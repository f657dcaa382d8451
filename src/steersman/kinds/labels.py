"""Members that every body has, decoded without the rest of the body."""

from __future__ import annotations

from typing import Final

import msgspec


class _Labels(msgspec.Struct, gc=False):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}


class _Name(msgspec.Struct, gc=False):
    name: str = ""


class _Named(msgspec.Struct, gc=False):
    metadata: _Name


class _Labelled(msgspec.Struct, gc=False):
    metadata: _Labels


_NAME: Final = msgspec.json.Decoder(_Named)
_LABELS: Final = msgspec.json.Decoder(_Labelled)


def name_of(body: bytes) -> str:
    """Return the name in a body; everything else is skipped."""
    return _NAME.decode(b"{" + body).metadata.name


def labels_of(body: bytes) -> tuple[dict[str, str], str, str]:
    """Return labels, name and namespace of a body; everything else is skipped."""
    metadata = _LABELS.decode(b"{" + body).metadata
    return metadata.labels, metadata.name, metadata.namespace
