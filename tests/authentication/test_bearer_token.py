"""Bearer tokens in headers and in WebSocket subprotocols."""

import base64
from collections.abc import Awaitable
from typing import Any

import pytest

from steersman.authentication.bearer_token import (
    BearerTokenAuthenticator,
    bearer_token,
    has_misplaced_space,
    subprotocol_token,
)
from steersman.authentication.interface import AuthenticationError, Credentials, TokenIdentity
from steersman.authentication.token_file import StaticTokens
from steersman.authentication.user import UserInfo
from tests.counted_work import calls

PREFIX = "base64url.bearer.authorization.k8s.io."


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer abc", "abc"),
        ("  Bearer abc  ", "abc"),
        ("Bearer abc def", "abc"),
        ("Bearer  abc", None),
        ("Bearer", None),
        ("Bearer ", None),
        ("Basic abc", None),
        ("abc", None),
        ("", None),
    ],
)
def test_the_token_of_an_authorization_header(header: str, token: str | None) -> None:
    assert bearer_token(header) == token
    assert has_misplaced_space(header) == (header == "Bearer  abc")


def encoded(token: bytes) -> str:
    return PREFIX + base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def test_a_subprotocol_carries_the_token_and_is_not_passed_on() -> None:
    assert subprotocol_token(f"v4.channel.k8s.io, {encoded(b'a?>token')}, v5.channel.k8s.io") == (
        "a?>token",
        "v4.channel.k8s.io,v5.channel.k8s.io",
    )


def test_other_subprotocols_are_left_alone() -> None:
    assert subprotocol_token("v4.channel.k8s.io, x") == (None, "v4.channel.k8s.io, x")


@pytest.mark.parametrize(
    ("protocols", "message"),
    [
        (f"a,{encoded(b't')},{encoded(b'u')}", "multiple base64.bearer.authorization tokens specified"),
        (f"a,{PREFIX}!!", "invalid base64.bearer.authorization token encoding"),
        (f"a,{PREFIX}YQ==", "invalid base64.bearer.authorization token encoding"),
        (f"a,{encoded(bytes([255]))}", "invalid base64.bearer.authorization token"),
        (encoded(b"t"), "missing additional subprotocol"),
    ],
)
def test_bad_subprotocol_tokens_are_refused(protocols: Any, message: str) -> None:
    with pytest.raises(AuthenticationError) as refused:
        subprotocol_token(protocols)
    assert str(refused.value) == message


async def test_unknown_tokens_are_refused_whether_or_not_the_answer_takes_time() -> None:
    class Slow:
        async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> TokenIdentity | None:
            return TokenIdentity(UserInfo("alice")) if token == "good" else None

    fast = BearerTokenAuthenticator(StaticTokens({"good": UserInfo("alice")}), ())
    slow = BearerTokenAuthenticator(Slow(), ())
    assert fast.authenticate(Credentials()) is None
    known = fast.authenticate(Credentials(bearer_token="good"))
    assert isinstance(known, UserInfo)
    assert known.name == "alice"
    later = slow.authenticate(Credentials(bearer_token="good"))
    assert isinstance(later, Awaitable)
    found = await later
    assert found is not None
    assert found.name == "alice"
    with pytest.raises(AuthenticationError, match=r"^invalid bearer token$"):
        fast.authenticate(Credentials(bearer_token="bad"))
    later = slow.authenticate(Credentials(bearer_token="bad"))
    assert isinstance(later, Awaitable)
    with pytest.raises(AuthenticationError, match=r"^invalid bearer token$"):
        await later


def test_a_token_among_very_many_protocols_is_refused_without_looking_at_them() -> None:
    protocols = f"{',' * 900_000}a,{encoded(b'token')}"

    def refused() -> None:
        with pytest.raises(AuthenticationError, match="too many subprotocols"):
            subprotocol_token(protocols)

    assert calls(refused) < 1000
