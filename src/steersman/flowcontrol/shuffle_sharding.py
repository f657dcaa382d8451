"""Assignment of queues to flows: a hand of cards, dealt from a deck by the hash of the flow.

Follows k8s.io/apiserver `util/shufflesharding`: the same hash gives the same hand.
"""

from __future__ import annotations

import math
from hashlib import sha256
from typing import Final

MAX_HASH_BITS: Final = 60
"""Limit of bits of a hash that a hand may use."""
MAX_DECK: Final = 1 << 26


def required_entropy_bits(deck: int, hand: int) -> int:
    """Return the bits of a hash that dealing a hand of this size uses."""
    return math.ceil(math.log2(deck) * hand)


def can_deal(deck: int, hand: int) -> bool:
    """Return True if hands of this size can be dealt from a deck of that size."""
    return 0 < hand <= deck <= MAX_DECK and required_entropy_bits(deck, hand) <= MAX_HASH_BITS


def flow_hash(schema: str, distinguisher: str) -> int:
    """Return the 64-bit hash of the flow of a flow schema and a user or namespace."""
    flow = f"{schema}\0{distinguisher}".encode("utf-8", "surrogateescape")
    return int.from_bytes(sha256(flow).digest()[:8], "little")


def deal(deck: int, hand: int, hash_value: int) -> tuple[int, ...]:
    """Return the cards of a hand, distinct numbers below `deck`."""
    remainders: list[int] = []
    for dealt in range(hand):
        hash_value, remainder = divmod(hash_value, deck - dealt)
        remainders.append(remainder)
    cards = []
    for at, card in enumerate(remainders):
        for before in reversed(remainders[:at]):
            if card >= before:
                card += 1
        cards.append(card)
    return tuple(cards)
