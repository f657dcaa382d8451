"""Responses of the API server that consist of lines, such as watches, as batches of whole JSON documents."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

import msgspec

MAX_LINE: Final = 8 << 20
"""Longest line in bytes; API servers store objects of at most 3 MiB. Each stream of a page may hold one."""
_DOCUMENT: Final = msgspec.json.Decoder(msgspec.Raw)


class BadLine(Exception):
    """A line of a response that is too long, or no JSON document."""


async def batches_of_lines(pieces: AsyncIterator[bytes]) -> AsyncGenerator[list[bytes], None]:
    """Yield the lines that have arrived, as soon as at least one is complete. Raises BadLine."""
    rest: list[bytes] = []
    size = 0
    async for piece in pieces:
        end = piece.rfind(b"\n")
        if end < 0:
            rest.append(piece)
            size += len(piece)
            if size > MAX_LINE:
                raise _too_long()
            continue
        whole = b"".join((*rest, piece[:end]))
        rest, size = [piece[end + 1 :]], len(piece) - end - 1
        if lines := _documents(whole):
            yield lines
    if lines := _documents(b"".join(rest)):
        yield lines


def _documents(text: bytes) -> list[bytes]:
    """Return the lines of a text that are not empty. Raises BadLine."""
    lines = [line for line in text.split(b"\n") if line.strip(b" \t\r")]
    try:
        for line in lines:
            if len(line) > MAX_LINE:
                raise _too_long()
            _DOCUMENT.decode(line)
            if not line.isascii():
                line.decode()  # the decoder above does not look into strings
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadLine("the response is not JSON") from None
    return lines


def _too_long() -> BadLine:
    return BadLine("a line of the response is too long for the page")
