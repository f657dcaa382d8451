"""PEM blocks (RFC 7468) out of text that may hold anything else."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Final

_BEGIN: Final = b"-----BEGIN "
_DASHES: Final = b"-----"

MAX_BROKEN_BLOCKS: Final = 16
"""How many blocks that cannot be read are passed over, as each costs a search through the rest."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block: what it says it is, its bytes, and whether there were headers before them."""

    type: str
    content: bytes
    has_headers: bool


def decode_block(text: bytes) -> tuple[Block | None, bytes]:
    """The first block in `text` that can be read, and the text after it; None and all of `text` without one."""
    start = 0
    for _ in range(MAX_BROKEN_BLOCKS):
        begin = text.find(_BEGIN, start)
        if begin < 0:
            break
        line_end = text.find(b"\n", begin)
        line = text[begin:line_end].rstrip() if line_end >= 0 else b""
        at_line_start = begin == 0 or text[begin - 1 : begin] == b"\n"
        if at_line_start and len(line) > len(_BEGIN) + len(_DASHES) and line.endswith(_DASHES):
            kind = line[len(_BEGIN) : -len(_DASHES)]
            closing = b"-----END " + kind + _DASHES
            end = text.find(closing, line_end)
            if end >= 0 and (block := _block(kind, text[line_end + 1 : end])) is not None:
                return block, text[end + len(closing) :].lstrip(b"\r\n")
        start = begin + len(_BEGIN)
    return None, text


def _block(kind: bytes, body: bytes) -> Block | None:
    lines = body.split(b"\n")
    headers = 0
    while headers < len(lines) and b":" in lines[headers]:
        headers += 1
    try:
        content = base64.b64decode(b"".join(b"".join(lines[headers:]).split()), validate=True)
    except binascii.Error:
        return None
    return Block(kind.decode("utf-8", "replace"), content, headers > 0)
