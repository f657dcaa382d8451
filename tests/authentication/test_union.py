"""Chains of authenticators: order, refusals, anonymous requests, slow answers."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.authentication.anonymous import AnonymousAuthenticator
from steersman.authentication.interface import AuthenticationError, Credentials, TokenIdentity
from steersman.authentication.union import UnionAuthenticator, UnionTokenAuthenticator
from steersman.authentication.user import UserInfo

NOBODY = Credentials()


class Says:
    """Answers with a user or None, or refuses; at once or later."""

    def __init__(self, answer: Any, later: Any) -> None:
        self.answer, self.later = answer, later

    def authenticate(self, credentials: Any) -> Any:
        return self.wait() if self.later else self.now()

    def authenticate_token(self, token: Any, audiences: Any) -> Any:
        return self.wait() if self.later else self.now()

    async def wait(self) -> Any:
        return self.now()

    def now(self) -> Any:
        if isinstance(self.answer, str):
            raise AuthenticationError(self.answer)
        return self.answer


async def settle(answer: Any) -> Any:
    return await answer if hasattr(answer, "__await__") else answer


LATER = [[False] * 3, [True, False, False], [False, True, False], [False, False, True], [True] * 3]


@pytest.mark.parametrize("later", LATER)
class TestUsers:
    async def test_the_first_who_knows_wins_and_the_user_is_authenticated(self, later: Any) -> None:
        answers = [None, UserInfo("alice", groups=("dev",)), UserInfo("bob")]
        union = UnionAuthenticator(map(Says, answers, later))
        assert await settle(union.authenticate(NOBODY)) == UserInfo("alice", groups=("dev", "system:authenticated"))

    async def test_a_refusal_does_not_keep_others_from_knowing(self, later: Any) -> None:
        union = UnionAuthenticator(map(Says, ["bad", None, UserInfo("bob")], later))
        assert (await settle(union.authenticate(NOBODY))).name == "bob"

    async def test_bad_credentials_are_never_anonymous(self, later: Any) -> None:
        union = UnionAuthenticator(map(Says, ["bad", None, "worse"], later), AnonymousAuthenticator())
        with pytest.raises(AuthenticationError, match=r"^\[bad, worse\]$"):
            await settle(union.authenticate(NOBODY))

    async def test_no_credentials_are_anonymous_if_that_is_allowed(self, later: Any) -> None:
        nobody = [None, None, None]
        union = UnionAuthenticator(map(Says, nobody, later), AnonymousAuthenticator())
        user = await settle(union.authenticate(NOBODY))
        assert user == UserInfo("system:anonymous", groups=("system:unauthenticated",))
        assert await settle(UnionAuthenticator(map(Says, nobody, later)).authenticate(NOBODY)) is None


@pytest.mark.parametrize("later", LATER)
async def test_tokens_follow_the_same_rules(later: Any) -> None:
    alice = TokenIdentity(UserInfo("alice"))
    known = UnionTokenAuthenticator(map(Says, ["bad", alice, None], later))
    assert await settle(known.authenticate_token("t", ())) is alice
    unknown = UnionTokenAuthenticator(map(Says, [None, None, None], later))
    assert await settle(unknown.authenticate_token("t", ())) is None
    refused = UnionTokenAuthenticator(map(Says, [None, "bad", "bad"], later))
    with pytest.raises(AuthenticationError, match=r"^bad$"):
        await settle(refused.authenticate_token("t", ()))


@pytest.mark.parametrize("groups", [("system:authenticated",), ("system:unauthenticated",)])
def test_groups_that_say_it_already_are_kept(groups: tuple[Any, ...]) -> None:
    union = UnionAuthenticator([Says(UserInfo("alice", groups=groups), False)])
    user = union.authenticate(NOBODY)
    assert isinstance(user, UserInfo)
    assert user.groups == groups


def test_anonymous_may_be_limited_to_paths() -> None:
    anonymous = AnonymousAuthenticator(["/healthz"])
    assert anonymous.authenticate(Credentials(path="/healthz")) is not None
    assert anonymous.authenticate(Credentials(path="/healthz/")) is None
