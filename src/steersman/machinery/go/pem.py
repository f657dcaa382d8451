"""PEM blocks (RFC 7468) in text that may hold anything else, found as Go's encoding/pem finds them."""

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
    """A PEM block: the type that its first line names, its decoded bytes, and a flag for headers before these."""

    type: str
    content: bytes
    has_headers: bool


def decode_block(text: bytes) -> tuple[Block | None, bytes]:
    """Return the first readable block in `text` and the text after the block.

    Returns None and all of `text` if there is none.
    """
    block, after = _next_block(text, 0)
    return block, text if block is None else text[after:]


def blocks(text: bytes) -> Iterator[Block]:
    """Yield every readable block in `text`, in one pass."""
    block, at = _next_block(text, 0)
    while block is not None:
        yield block
        block, at = _next_block(text, at)


def _next_block(text: bytes, start: int) -> tuple[Block | None, int]:
    """Return the first readable block at or after `start`, and the offset after its last line.

    Returns None and `start` if there is no block. Each line that ends a block is paired with the last line before that
    begins one. So lines that begin a block without an end cost nothing.
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
    """Return the block between the lines that start at `begin` and `end`.

    Returns None if the two lines do not belong together or the text between them is not base64.
    """
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
