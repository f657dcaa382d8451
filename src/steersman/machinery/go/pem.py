"""PEM blocks (RFC 7468) out of text that may hold anything else, as Go's encoding/pem finds them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

_BEGIN: Final = b"-----BEGIN "
_END: Final = b"\n-----END "
_DASHES: Final = b"-----"
_SPACE: Final = b" \t\r\n"


class Block(Struct, frozen=True):
    """One block: what it says it is, its bytes, and whether there were headers before them."""

    type: str
    content: bytes
    has_headers: bool


def decode_block(text: bytes) -> tuple[Block | None, bytes]:
    """The first block in `text` that can be read, and the text after it; None and all of `text` without one."""
    block, after = _next_block(text, 0)
    return block, text if block is None else text[after:]


def blocks(text: bytes) -> Iterator[Block]:
    """Every block in `text` that can be read, in one pass."""
    block, at = _next_block(text, 0)
    while block is not None:
        yield block
        block, at = _next_block(text, at)


def _next_block(text: bytes, start: int) -> tuple[Block | None, int]:
    """The first block at or after `start`, and where the line of its end is over.

    Each line that ends a block is held against the last line before it that begins one, so that beginnings without an
    end cost nothing.
    """
    at = start
    while (end := text.find(_END, at)) >= 0:
        trailer = end + len(_END)
        begin = text.rfind(_BEGIN, at, end)
        if begin == at or (begin > at and text[begin - 1 : begin] == b"\n"):
            block = _block(text, begin, end + 1)
            if block is not None:
                line_end = text.find(b"\n", trailer)
                return block, len(text) if line_end < 0 else line_end + 1
        at = trailer
    return None, start


def _block(text: bytes, begin: int, end: int) -> Block | None:
    """The block between two lines that start at `begin` and `end`; None if they do not belong together or what is
    between them cannot be read."""
    first, *lines = text[begin:end].split(b"\n")
    kind = first.rstrip(b" \t\r")[len(_BEGIN) :]
    line_end = text.find(b"\n", end)
    last = text[end : line_end if line_end >= 0 else None].rstrip(b" \t\r")
    if not kind.endswith(_DASHES) or last != _END[1:] + kind:
        return None
    headers = 0
    while headers < len(lines) and b":" in lines[headers]:
        headers += 1
    try:
        body = b"".join(lines[headers:]).translate(None, _SPACE)
        content = base64.b64decode(body, validate=True)
    except binascii.Error:
        return None
    return Block(kind[: -len(_DASHES)].decode("utf-8", "replace"), content, headers > 0)
