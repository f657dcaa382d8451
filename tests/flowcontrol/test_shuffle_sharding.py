"""Shuffle sharding: hands of queues."""

from __future__ import annotations

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from steersman.flowcontrol.shuffle_sharding import can_deal, deal, flow_hash, required_entropy_bits


@given(st.integers(1, 500), st.integers(1, 8), st.integers(0, (1 << 64) - 1))
def test_no_card_is_dealt_twice(deck: int, hand: int, value: int) -> None:
    hand = min(hand, deck)
    cards = deal(deck, hand, value)
    assert len(set(cards)) == hand
    assert all(0 <= card < deck for card in cards)


def test_small_decks_are_dealt_as_upstream_deals_them() -> None:
    # the first card is the remainder, the others skip what was dealt before them
    assert deal(6, 6, 0) == (0, 1, 2, 3, 4, 5)
    assert deal(4, 2, 3 + 4 * 2) == (3, 2)
    assert deal(4, 2, 1 + 4 * 1) == (1, 2)


def test_a_flow_is_hashed_with_its_schema() -> None:
    assert flow_hash("s", "alice") == int.from_bytes(sha256(b"s\0alice").digest()[:8], "little")
    assert flow_hash("sa", "lice") != flow_hash("s", "alice")


def test_hands_take_no_more_of_a_hash_than_there_is() -> None:
    assert required_entropy_bits(128, 6) == 42
    assert can_deal(128, 8)
    assert not can_deal(128, 9)
    assert not can_deal(2, 3)
    assert not can_deal(0, 0)
