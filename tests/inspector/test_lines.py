"""Tests of lines that arrive in pieces."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.inspector.lines import MAX_LINE, BadLine, batches_of_lines

VALUES = st.lists(st.one_of(st.integers(), st.text(), st.dictionaries(st.text(), st.none())), max_size=8)


async def pieces_of(data: bytes, sizes: list[int]) -> AsyncIterator[bytes]:
    """Yield `data` in pieces of these sizes, and the rest in one."""
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size
    yield data[at:]


async def read(data: bytes, sizes: list[int]) -> list[list[bytes]]:
    return [batch async for batch in batches_of_lines(pieces_of(data, sizes))]


@settings(max_examples=30)
@given(
    VALUES, st.lists(st.integers(0, 9), max_size=40), st.sampled_from(["\n", "\r\n", "\n\n", "\n \n"]), st.booleans()
)
async def test_lines_are_the_documents_wherever_they_are_cut(
    values: list[object], sizes: list[int], end: str, is_ended: bool
) -> None:
    text = end.join(json.dumps(each, ensure_ascii=False) for each in values) + end * is_ended
    batches = await read(
        text.encode(errors="surrogatepass") if text.isascii() else text.encode(errors="replace"), sizes
    )
    assert all(batches)
    assert len([json.loads(line) for batch in batches for line in batch]) == len(values)
    if text.isascii():
        assert [json.loads(line) for batch in batches for line in batch] == values


async def test_lines_are_given_as_soon_as_they_are_complete() -> None:
    assert await read(b'1\n2\n"3"\n4', [2, 2, 2]) == [[b"1"], [b"2"], [b'"3"'], [b"4"]]
    assert await read(b"1\n2\n3", [5]) == [[b"1", b"2"], [b"3"]]


@pytest.mark.parametrize("sizes", [[], [MAX_LINE], [1 << 20] * 8, [MAX_LINE + 1]])
async def test_the_longest_line_is_bounded_in_any_pieces(sizes: list[int]) -> None:
    fits = b'"' + b"x" * (MAX_LINE - 2) + b'"\n'
    assert len((await read(fits, sizes))[0][0]) == MAX_LINE
    with pytest.raises(BadLine, match="too long"):
        await read(b"1\n" + fits[:-2] + b'x"\n', sizes)


async def test_many_short_lines_are_no_long_line() -> None:
    many = (b'"' + b"x" * 100_000 + b'"\n') * 100
    assert sum(map(len, await read(many * 3, [len(many)] * 3))) == 300


@pytest.mark.parametrize("data", [b"x\n", b"{}\n{", b"{} {}\n", b'"\xff"\n', b"NaN\n", b"\x00\n", b"[" * 10_000])
async def test_other_text_than_json_is_an_error(data: bytes) -> None:
    with pytest.raises(BadLine, match="not JSON"):
        await read(data, [])
