"""The token cache: valid tokens are cached, invalid ones are not, and tokens cannot be read from memory."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable

import pytest

from steersman.authentication import token_cache
from steersman.authentication.interface import AuthenticationError, TokenIdentity
from steersman.authentication.token_cache import CachedTokenAuthenticator
from steersman.authentication.user import UserInfo
from steersman.machinery.errors.status import StatusError
from steersman.work.single_flight import Flight
from tests.counted_work import calls


class Counting:
    """Accepts every token but `unknown` and `bad`, and counts calls."""

    def __init__(self, *, waits: bool = False) -> None:
        self.asked: list[str] = []
        self.waits = waits

    def authenticate_token(
        self, token: str, audiences: tuple[str, ...]
    ) -> TokenIdentity | Awaitable[TokenIdentity | None] | None:
        self.asked.append(token)
        if token == "bad":
            raise AuthenticationError("bad")
        answer = None if token == "unknown" else TokenIdentity(UserInfo(token), audiences)
        return self._later(answer) if self.waits else answer

    async def _later(self, answer: TokenIdentity | None) -> TokenIdentity | None:
        return answer


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_good_token_is_judged_once_in_ten_seconds() -> None:
    counting, clock = Counting(), Clock()
    cached = CachedTokenAuthenticator(counting, clock=clock)
    first = cached.authenticate_token("good", ("a",))
    clock.now += 9.9
    assert cached.authenticate_token("good", ("a",)) is first
    assert counting.asked == ["good"]
    clock.now += 0.1
    assert cached.authenticate_token("good", ("a",)) == first
    assert counting.asked == ["good", "good"]


async def test_an_answer_that_is_waited_for_is_remembered_too() -> None:
    counting = Counting(waits=True)
    cached = CachedTokenAuthenticator(counting)
    pending = cached.authenticate_token("good", ())
    assert isinstance(pending, Awaitable)
    known = await pending
    assert known is not None
    assert cached.authenticate_token("good", ()) is known
    unknown = cached.authenticate_token("unknown", ())
    assert isinstance(unknown, Awaitable)
    assert await unknown is None


def test_refusals_are_judged_every_time() -> None:
    counting = Counting()
    cached = CachedTokenAuthenticator(counting)
    for _ in range(2):
        with pytest.raises(AuthenticationError):
            cached.authenticate_token("bad", ())
        assert cached.authenticate_token("unknown", ()) is None
    assert len(counting.asked) == 4


def test_each_list_of_audiences_has_its_own_answer() -> None:
    cached = CachedTokenAuthenticator(Counting())
    lists: list[tuple[str, ...]] = [(), ("b",), ("b", "c"), ("bc",), ("1:b",), ("",)]
    answers = [
        identity for each in lists if isinstance(identity := cached.authenticate_token("a", each), TokenIdentity)
    ]
    assert [answer.audiences for answer in answers] == lists
    assert [cached.authenticate_token("a", audiences) for audiences in lists] == answers


def test_what_was_used_longest_ago_is_forgotten_first() -> None:
    counting = Counting()
    cached = CachedTokenAuthenticator(counting, size=2)
    for token in ["a", "b", "a", "c", "a", "b"]:
        cached.authenticate_token(token, ())
    assert counting.asked == ["a", "b", "c", "b"]


def keys_in(cached: CachedTokenAuthenticator) -> set[bytes]:
    """Return the keys of all mappings in attributes of an authenticator."""
    mappings = [each for each in vars(cached).values() if isinstance(each, dict)]
    return {key for mapping in mappings for key in mapping if isinstance(key, bytes)}


def test_tokens_themselves_are_not_kept() -> None:
    cached = CachedTokenAuthenticator(Counting())
    identity = cached.authenticate_token("secret-token", ())
    assert isinstance(identity, TokenIdentity)
    other = CachedTokenAuthenticator(Counting())
    other.authenticate_token("secret-token", ())
    kept = keys_in(cached)
    assert kept
    assert not any(b"secret" in key for key in kept)
    assert not kept & keys_in(other)


class Silent:
    """Never answers for its first token, and at once for others."""

    def __init__(self) -> None:
        self.asked = 0

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> TokenIdentity | None:
        self.asked += 1
        if self.asked == 1:
            await asyncio.get_running_loop().create_future()
        return TokenIdentity(UserInfo(token), audiences)


async def test_a_token_without_an_answer_is_asked_about_again_after_thirty_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(token_cache, "LOOKUP_SECONDS", 0.01)
    silent = Silent()
    cached = CachedTokenAuthenticator(silent)
    pending = cached.authenticate_token("good", ())
    assert isinstance(pending, Awaitable)
    with pytest.raises(AuthenticationError, match="context deadline exceeded"):
        await pending
    again = cached.authenticate_token("good", ())
    assert isinstance(again, Awaitable)
    assert await again == TokenIdentity(UserInfo("good"))


async def test_a_lookup_that_fails_when_nobody_waits_any_more_is_no_error_of_a_task(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(token_cache, "LOOKUP_SECONDS", 0.01)
    cached = CachedTokenAuthenticator(Silent())
    pending = cached.authenticate_token("good", ())
    assert isinstance(pending, Flight)
    asking = asyncio.ensure_future(pending)
    await asyncio.sleep(0)
    asking.cancel()
    await pending.ended()
    assert pending.has_failed
    del pending, asking
    gc.collect()
    assert not caplog.records


def test_many_audiences_take_no_more_calls_than_few() -> None:
    cached = CachedTokenAuthenticator(Counting())
    many = tuple(f"audience-{number}" for number in range(10_000))
    assert calls(lambda: cached.authenticate_token("unknown", many)) < 100


def test_tokens_that_are_made_up_drive_no_good_one_out() -> None:
    class Nobody(Counting):
        def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> TokenIdentity | None:
            self.asked.append(token)
            return TokenIdentity(UserInfo(token)) if token == "good" else None

    nobody = Nobody()
    cached = CachedTokenAuthenticator(nobody, unknown_seconds=10.0, size=4)
    for token in ("good", *map(str, range(20)), "good", "19", "0"):
        cached.authenticate_token(token, ())
    assert nobody.asked == ["good", *map(str, range(20)), "0"]


async def test_no_more_tokens_are_asked_about_at_once_than_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_cache, "MOST_WAITING", 3)
    counting = Counting(waits=True)
    cached = CachedTokenAuthenticator(counting)
    waiting = [cached.authenticate_token(f"token-{number}", ()) for number in range(3)]
    with pytest.raises(StatusError) as refused:
        cached.authenticate_token("token-3", ())
    assert (refused.value.code, refused.value.retry_after) == (429, 1)
    again = cached.authenticate_token("token-2", ())
    for each in (*waiting, again):
        assert isinstance(each, Awaitable)
        await each
    assert len(counting.asked) == 3
    assert cached.authenticate_token("token-2", ()) == TokenIdentity(UserInfo("token-2"))
