"""Decoding of valid and invalid messages of etcd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.storage.etcd import messages
from steersman.storage.etcd.messages import MessageError

READERS: Final[tuple[Callable[[bytes], object], ...]] = (
    messages.read_range,
    messages.read_txn,
    messages.read_watch,
    messages.read_cluster,
    messages.read_lease,
    messages.read_status,
    messages.read_seconds_left,
    messages.read_revision,
)
HUGE: Final = b"\xff\xff\xff\xff\xff\xff\xff\xff\xf7\x01"
_NUMBERS: Final = st.sampled_from([b"\0", b"\x01", b"\x7f", b"\xff\x01", HUGE])
_FIELDS: Final = st.builds(lambda number, value: bytes((number << 3,)) + value, st.integers(1, 15), _NUMBERS)
_MESSAGES: Final = st.recursive(
    st.lists(_FIELDS, max_size=3).map(b"".join),
    lambda inner: st.lists(
        st.builds(
            lambda number, value: bytes((number << 3 | 2, len(value))) + value,
            st.integers(1, 15),
            inner.filter(lambda found: len(found) < 128),
        ),
        max_size=3,
    ).map(b"".join),
    max_leaves=8,
)


@pytest.mark.parametrize("read", [messages.read_range, messages.read_txn, messages.read_watch, messages.read_status])
@pytest.mark.parametrize("number", [b"\0", b"\x05", HUGE])
def test_a_number_is_no_header(read: Callable[[bytes], object], number: bytes) -> None:
    with pytest.raises(MessageError, match="where a header belongs"):
        read(b"\x08" + number)


@pytest.mark.parametrize("read", READERS)
@given(data=st.one_of(st.binary(max_size=40), _MESSAGES.filter(lambda found: len(found) < 128)))
def test_whatever_is_said_is_read_or_refused(read: Callable[[bytes], object], data: bytes) -> None:
    try:
        found = read(data)
    except MessageError as error:
        found = str(error)
    assert found is not None


@given(data=st.one_of(st.binary(max_size=40), _MESSAGES.filter(lambda found: len(found) < 128)))
def test_items_one_by_one_are_those_of_the_whole(data: bytes) -> None:
    def whole() -> messages.RangeAnswer:
        return messages.read_range(data)

    def one_by_one() -> messages.RangeAnswer:
        answer = messages.RangeAnswer(0, [], False, 0)
        answer.items.extend(messages.read_items(data, answer))
        return answer

    found: list[object] = []
    for read in (whole, one_by_one):
        try:
            found.append(read())
        except MessageError:
            found.append("refused")
    assert found[0] == found[1]
