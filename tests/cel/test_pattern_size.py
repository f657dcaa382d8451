"""Estimates of the sizes of regular expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from re import Match
from threading import Thread, current_thread, main_thread
from typing import Any

import pytest

from steersman.cel import pattern_size
from steersman.cel.pattern_size import NESTS_TOO_DEEPLY, TOO_LARGE, too_large_to_compile, too_large_to_read
from steersman.cel.regular import PatternError, check_pattern, compiled
from steersman.schema.patterns import matches
from steersman.work.offloading import offload

ORDINARY = (
    r"^(([a-z0-9]|[a-z0-9][a-z0-9\-]{0,61}[a-z0-9])\.){1,15}$",
    r"^(/[A-Za-z0-9\/\-._~%!$&'()*+,;=:]{0,1000}){0,1}$",
    r"^([\p{L}\p{Z}\p{N}_.:/=+\-@]*)$",
    r"^.{0,1000}$",
    "^[\\pL\\pN]{1,30}$",
    "a" * 5_000,
    "|".join(f"name{number}" for number in range(1_000)),
)


@pytest.mark.parametrize("pattern", ORDINARY)
def test_what_definitions_have_is_read_and_compiled(pattern: str) -> None:
    check_pattern(pattern)
    compiled(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["(a{1,1000})" * 100, "(?:a{0,1000})" * 20, "\\pL{1000}", "(?:\\pL{30}){30}", "a" * 70_000, "[^a]{900}" * 10],
)
def test_what_would_take_long_to_compile_is_not_compiled(pattern: str) -> None:
    """`(a{1,1000})` a hundred times takes RE2 twelve seconds, in which nothing else is done."""
    assert too_large_to_compile(pattern) == TOO_LARGE
    with pytest.raises(PatternError, match=r"^error parsing regexp: expression too large: "):
        compiled(pattern)
    with pytest.raises(ValueError, match="expression too large"):
        matches(pattern, "a")


@pytest.mark.parametrize("pattern", ["\\pL" * 300, "a" * 300_001, "[\\pL\\pN]" * 300])
def test_what_would_take_long_to_read_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"^error parsing regexp: expression too large: "):
        check_pattern(pattern)


@pytest.mark.parametrize("opening", ["(", "(?:", "(?P<a>"])
def test_what_nests_too_deeply_is_refused_in_go_s_words(opening: str) -> None:
    def nested(depth: int) -> str:
        return opening * depth + "a" + ")*" * depth

    assert not too_large_to_read(nested(498 if opening != "(?:" else 999))
    assert too_large_to_read(nested(500 if opening != "(?:" else 1000)) == NESTS_TOO_DEEPLY
    with pytest.raises(PatternError, match=r"^error parsing regexp: expression nests too deeply: "):
        check_pattern(nested(1_000))


@pytest.mark.parametrize(
    "part",
    ["[", "[:", "[:a", "\\Q", "\\p{", "(?P<a", "(?<a", "{", "a{1", "[\\", "(", ")", "|", "a{1,", "[^]", "*", "(?i"],
)
def test_the_text_is_read_once(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each token begins where the last one ended, and no longer part of the text is looked at for it in vain: a text
    of twice the length has no more than twice the tokens."""
    lengths = []

    class Counting:
        def finditer(self, text: str) -> Iterator[Match[str]]:
            found = list(_TOKEN.finditer(text))
            assert all(before.end() == after.start() for before, after in pairwise(found))
            lengths.append(len(found))
            return iter(found)

    monkeypatch.setattr(pattern_size, "TOKEN", Counting())
    for count in (1_000, 2_000):
        too_large_to_compile("{" + part * count)
    assert lengths[1] <= 2 * lengths[0] + 2


_TOKEN = pattern_size.TOKEN


async def test_nothing_is_compiled_on_the_loop() -> None:
    threads: list[Thread] = []

    def noted(work: Callable[..., Any], *args: str) -> Any:
        threads.append(current_thread())
        return work(*args)

    assert not await offload(noted, matches, "only here", "a")
    assert [each is main_thread() for each in threads] == [True, False]
    assert not await offload(noted, matches, "only here", "a")
    assert threads[2] is main_thread()
    await offload(noted, compiled, "nor this one")
    assert [each is main_thread() for each in threads[3:]] == [True, False]
