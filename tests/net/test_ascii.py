"""ASCII case conversion of protocol texts, at bounded cost for any client text."""

from __future__ import annotations

from time import thread_time

import pytest

from steersman.net.ascii import lower


def test_letters_of_ascii_alone_are_put_in_lower_case() -> None:
    text = "".join(map(chr, range(0x3000))) + "\U0001f600\ud800\udcff"
    assert lower(text) == "".join(chr(ord(char) + 32) if "A" <= char <= "Z" else char for char in text)


@pytest.mark.parametrize("unit", ["漢", '"漢', "é"])
def test_long_text_costs_little_whatever_is_in_it(unit: str) -> None:
    text = unit * 300_000
    began = thread_time()
    assert set(text) == set(unit)  # one look at each character
    looked = thread_time()
    assert lower(text) == text
    assert thread_time() - looked < (looked - began) + 0.003
