"""Mapping of a token's claims to a user (apiserver `token/oidc`): pure functions, with upstream's texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from steersman.api.apiserver.v1 import (
    ClaimMappings,
    ClaimValidationRule,
    JWTAuthenticator,
    PrefixedClaimOrExpression,
    UserValidationRule,
)
from steersman.authentication.interface import AuthenticationError
from steersman.authentication.jwt.expressions import CLAIMS, USER, Compiled, ExpressionError, Plain, compiled, texts_of
from steersman.authentication.user import CREDENTIAL_ID, UserInfo
from steersman.machinery.codec.go_json import unmarshal
from steersman.machinery.codec.go_types import BOOL, STRING, GoType
from steersman.machinery.codec.strict import DecodeError

_EMAIL: Final = "email"
_VERIFIED: Final = "email_verified"
_CLAIM_RULE: Final = "oidc: error evaluating claim validation expression: "
_USER_RULE: Final = "oidc: error evaluating user info validation rule: "

Claims = Mapping[str, Any]
"""All claims of a token, as plain data."""


class ClaimMapper:
    """Mapper of claims by one configuration, whose expressions are compiled in the constructor."""

    def __init__(self, configuration: JWTAuthenticator) -> None:
        self._mappings: Final[ClaimMappings] = configuration.claim_mappings
        self._required: Final = {
            each.claim: each.required_value for each in configuration.claim_validation_rules if each.claim
        }
        mappings = configuration.claim_mappings
        self._username = _maybe(mappings.username.expression)
        self._groups = _maybe(mappings.groups.expression)
        self._uid = _maybe(mappings.uid.expression)
        self._extra = [(each.key, compiled(each.value_expression, CLAIMS, is_rule=False)) for each in mappings.extra]
        self._claim_rules = list(_rules(configuration.claim_validation_rules, CLAIMS))
        self._user_rules = list(_rules(configuration.user_validation_rules, USER))
        evaluated = (self._username, self._groups, self._uid, *self._extra, *self._claim_rules, *self._user_rules)
        self.has_expressions: Final = any(each is not None for each in evaluated)
        """True if expressions are evaluated for each token, so that calls of `user` have to be offloaded."""

    def user(self, claims: dict[str, Any]) -> UserInfo:
        """Return the user of a token with these claims. Raises AuthenticationError."""
        shown = Plain(claims)
        name = self._name(claims, shown)
        groups = self._group_names(claims, shown)
        uid = self._user_uid(claims, shown)
        user = UserInfo(name, uid, groups, self._extra_fields(claims, shown))
        self._check_required(claims)
        _check(self._claim_rules, shown, _CLAIM_RULE)
        if self._user_rules:
            _check(self._user_rules, _shown(user), _USER_RULE)
        return user

    def _name(self, claims: Claims, shown: Plain) -> str:
        if self._username is not None:
            what = "oidc: error evaluating username claim expression: "
            name = _text(self._username, shown, what, "username claim expression must return a string")
            if not name:
                raise AuthenticationError("oidc: empty username via CEL expression is not allowed")
            return name
        mapping = self._mappings.username
        name = _claim(claims, mapping.claim, f'oidc: parse username claims "{mapping.claim}": ')
        if mapping.claim == _EMAIL and _VERIFIED in claims:
            is_verified = claims[_VERIFIED]
            if is_verified is not None and not isinstance(is_verified, bool):
                raise AuthenticationError(f"oidc: parse 'email_verified' claim: {_mismatch(is_verified, BOOL)}")
            if not is_verified:
                raise AuthenticationError("oidc: email not verified")
        return (mapping.prefix or "") + name

    def _group_names(self, claims: Claims, shown: Plain) -> tuple[str, ...]:
        mapping: PrefixedClaimOrExpression = self._mappings.groups
        if mapping.claim and mapping.claim in claims:
            prefix = mapping.prefix or ""
            return tuple(prefix + each for each in _texts(claims[mapping.claim], mapping.claim))
        if self._groups is None:
            return ()
        try:
            return texts_of(self._groups.evaluate(shown))
        except ExpressionError as error:
            raise AuthenticationError(f"oidc: error evaluating group claim expression: {error}") from None

    def _user_uid(self, claims: Claims, shown: Plain) -> str:
        claim = self._mappings.uid.claim
        if claim:
            return _claim(claims, claim, f'oidc: parse uid claim "{claim}": ')
        if self._uid is None:
            return ""
        what = "oidc: error evaluating uid claim expression: "
        return _text(self._uid, shown, what, "uid claim expression must return a string")

    def _extra_fields(self, claims: Claims, shown: Plain) -> dict[str, tuple[str, ...]]:
        extra: dict[str, tuple[str, ...]] = {}
        token_id = claims.get("jti")
        if isinstance(token_id, str) and token_id:
            extra[CREDENTIAL_ID] = (f"JTI={token_id}",)
        try:
            values = [(key, each, each.evaluate(shown)) for key, each in self._extra]
        except ExpressionError as error:
            raise AuthenticationError(str(error)) from None
        for key, expression, value in values:
            try:
                texts = texts_of(value)
            except ExpressionError as error:
                what = f"oidc: error evaluating extra claim expression: {expression.text}"
                raise AuthenticationError(f"{what}: {error}") from None
            if texts:
                extra[key] = texts
        return extra

    def _check_required(self, claims: Claims) -> None:
        for claim, wanted in self._required.items():
            if claim not in claims:
                raise AuthenticationError(f"oidc: required claim {claim} not present in ID token")
            found = _claim(claims, claim, f"oidc: parse claim {claim}: ")
            if found != wanted:
                raise AuthenticationError(
                    f"oidc: required claim {claim} value does not match. Got = {found}, want = {wanted}"
                )


def _maybe(expression: str) -> Compiled | None:
    return compiled(expression, CLAIMS, is_rule=False) if expression else None


def _rules(rules: Iterable[ClaimValidationRule | UserValidationRule], variable: str) -> Iterable[tuple[Compiled, str]]:
    for each in rules:
        if each.expression:
            yield compiled(each.expression, variable, is_rule=True), each.message


def _shown(user: UserInfo) -> Plain:
    return Plain({"username": user.name, "uid": user.uid, "groups": user.groups, "extra": dict(user.extra)})


def _check(rules: list[tuple[Compiled, str]], value: Plain, what: str) -> None:
    """Raise AuthenticationError unless all rules hold; as upstream, all are evaluated before the first result
    counts.
    """
    try:
        outcomes = [(rule.text, message, rule.evaluate(value)) for rule, message in rules]
    except ExpressionError as error:
        raise AuthenticationError(f"{what}{error}") from None
    for text, message, holds in outcomes:
        if not isinstance(holds, bool):
            raise AuthenticationError(f"{what}validation expression must return a boolean")
        if not holds:
            raise AuthenticationError(f"{what}validation expression '{text}' failed: {message}")


def _text(expression: Compiled, value: Plain, what: str, otherwise: str) -> str:
    """Return the text that is the value of an expression. Raises AuthenticationError."""
    try:
        found = expression.evaluate(value)
    except ExpressionError as error:
        raise AuthenticationError(f"{what}{error}") from None
    if not isinstance(found, str):
        raise AuthenticationError(f"{what}{otherwise}")
    return found


def _claim(claims: Claims, name: str, what: str) -> str:
    """Return a text claim. Raises AuthenticationError."""
    if name not in claims:
        raise AuthenticationError(f"{what}claim not present")
    value = claims[name]
    if value is None:
        return ""
    if not isinstance(value, str):
        raise AuthenticationError(f"{what}{_mismatch(value, STRING)}")
    return value


def _texts(value: Any, claim: str) -> tuple[str, ...]:
    """Return a claim that is a text or a list of texts. Raises AuthenticationError."""
    if isinstance(value, str):
        return (value,)
    if value is None:
        return ()
    if isinstance(value, list) and all(each is None or isinstance(each, str) for each in value):
        return tuple(each or "" for each in value)
    raise AuthenticationError(f'oidc: parse groups claim "{claim}": {_mismatch(value, STRING)}')


def _mismatch(value: Any, wanted: GoType) -> str:
    """Return Go's error text for a value of a wrong type."""
    try:
        unmarshal(wanted, msgspec.json.encode(value))
    except DecodeError as error:
        return str(error)
    return "it is of another type"
