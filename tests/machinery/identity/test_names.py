"""Generated names and uids."""

import uuid
from collections import Counter

import pytest

from steersman.machinery.identity import names


@pytest.mark.parametrize("base", ["a-", "", "x" * 58])
def test_generated_name_is_the_base_and_five_letters(base: str) -> None:
    name = names.generate_name(base)
    assert name.startswith(base)
    assert len(name) == len(base) + 5
    assert set(name[len(base) :]) <= set("bcdfghjklmnpqrstvwxz2456789")


def test_long_base_is_cut_so_that_the_name_has_63_bytes() -> None:
    assert len(names.generate_name("x" * 100)) == 63
    assert names.generate_name("é" * 100).startswith("é" * 29)


def test_every_letter_is_as_likely_as_any_other() -> None:
    counts = Counter(names.random_text(100_000))
    assert set(counts) == set(names.ALPHABET)
    assert max(counts.values()) < 1.2 * min(counts.values())


def test_generated_names_differ() -> None:
    assert len({names.generate_name("a-") for _ in range(1000)}) > 990


def test_uid_is_a_random_uuid() -> None:
    uids = [names.new_uid() for _ in range(1000)]
    assert len(set(uids)) == 1000
    for text in uids:
        uid = uuid.UUID(text)
        assert (str(uid), uid.version, uid.variant) == (text, 4, uuid.RFC_4122)
    assert {text[19] for text in uids} == set("89ab")
