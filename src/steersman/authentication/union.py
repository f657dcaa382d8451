"""Unions of authenticators: the first one that authenticates the user wins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeVar

from steersman.authentication.aggregate import aggregate
from steersman.authentication.interface import (
    AuthenticationError,
    Authenticator,
    Credentials,
    TokenAuthenticator,
    TokenIdentity,
)
from steersman.authentication.user import UserInfo, authenticated
from steersman.tracing.trace import Step, current_step

T = TypeVar("T")


def _note(opened: Step, found: object) -> None:
    """Note in the step of authentication which authenticator knows the user; the innermost one is noted first."""
    if opened.name == "authentication":
        opened.attributes.setdefault("authenticator", type(found).__name__)


class UnionAuthenticator:
    """Tries each authenticator in turn, and adds the user to `system:authenticated`.

    After a refusal by one authenticator the next may still authenticate the user. If none does, any refusal refuses the
    request: only a request without invalid credentials may be `anonymous`, if that is given.
    """

    def __init__(self, authenticators: Iterable[Authenticator], anonymous: Authenticator | None = None) -> None:
        self._authenticators = tuple(authenticators)
        self._anonymous = anonymous

    def authenticate(self, credentials: Credentials) -> UserInfo | Awaitable[UserInfo | None] | None:
        """Return the user of the first authenticator that knows the credentials, else the anonymous user, if allowed.

        Returns an awaitable if an authenticator has to wait. Raises AuthenticationError with all errors if no
        authenticator knows the credentials and at least one refuses them.
        """
        errors: list[str] = []
        rest = iter(self._authenticators)
        for each in rest:
            try:
                user = each.authenticate(credentials)
            except AuthenticationError as error:
                errors.append(str(error))
                continue
            if user is None:
                continue
            if not isinstance(user, UserInfo):
                return self._resume(user, rest, credentials, errors)
            if (opened := current_step()) is not None:
                _note(opened, each)
            return authenticated(user)
        _refuse_after(errors)
        return None if self._anonymous is None else self._anonymous.authenticate(credentials)

    async def _resume(
        self,
        pending: Awaitable[UserInfo | None],
        rest: Iterator[Authenticator],
        credentials: Credentials,
        errors: list[str],
    ) -> UserInfo | None:
        """Continue with an authenticator whose answer has to be awaited."""
        following = ((lambda each=each: each.authenticate(credentials)) for each in rest)
        user = await _first_known(pending, following, UserInfo, errors)
        if user is not None:
            return authenticated(user)
        if self._anonymous is None:
            return None
        anonymous = self._anonymous.authenticate(credentials)
        return anonymous if anonymous is None or isinstance(anonymous, UserInfo) else await anonymous


class UnionTokenAuthenticator:
    """Tries each token authenticator in turn; a refusal counts only if none of them authenticates the token."""

    def __init__(self, authenticators: Iterable[TokenAuthenticator]) -> None:
        self._authenticators = tuple(authenticators)

    def authenticate_token(
        self, token: str, audiences: tuple[str, ...]
    ) -> TokenIdentity | Awaitable[TokenIdentity | None] | None:
        """Return the identity from the first authenticator that knows the token, None if there is none.

        Returns an awaitable if an authenticator has to wait. Raises AuthenticationError with all errors if no
        authenticator knows the token and at least one refuses it.
        """
        errors: list[str] = []
        rest = iter(self._authenticators)
        for each in rest:
            try:
                identity = each.authenticate_token(token, audiences)
            except AuthenticationError as error:
                errors.append(str(error))
                continue
            if identity is None:
                continue
            if not isinstance(identity, TokenIdentity):
                following = ((lambda each=each: each.authenticate_token(token, audiences)) for each in rest)
                return _first_known(identity, following, TokenIdentity, errors)
            if (opened := current_step()) is not None:
                _note(opened, each)
            return identity
        _refuse_after(errors)
        return None


async def _first_known(
    pending: Awaitable[T | None],
    following: Iterator[Callable[[], T | Awaitable[T | None] | None]],
    kind: type[T],
    errors: list[str],
) -> T | None:
    """Return the first result among `pending` and the calls. Raises AuthenticationError after a refusal without a
    result.
    """
    answer: T | Awaitable[T | None] | None = pending
    call: Callable[[], T | Awaitable[T | None] | None] | None = None
    while True:
        try:
            if call is not None:
                answer = call()
            known = answer if answer is None or isinstance(answer, kind) else await answer  # type: ignore[misc]
            if known is not None:
                return known
        except AuthenticationError as error:
            errors.append(str(error))
        call = next(following, None)
        if call is None:
            _refuse_after(errors)
            return None


def _refuse_after(errors: list[str]) -> None:
    if errors:
        raise AuthenticationError(aggregate(errors))
