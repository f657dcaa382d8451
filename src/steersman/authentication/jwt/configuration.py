"""The file of `--authentication-config`: an AuthenticationConfiguration (apiserver.config.k8s.io)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import msgspec

from steersman.machinery.codec.configuration import (
    BOOL,
    STRING,
    STRINGS,
    decode_document,
    document_type,
    list_type,
    struct_type,
)
from steersman.machinery.codec.strict import DecodeError

GROUP: Final = "apiserver.config.k8s.io"
KIND: Final = "AuthenticationConfiguration"
MATCH_ANY: Final = "MatchAny"


class Issuer(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Who signs tokens, where that is discovered, and whom tokens must be for."""

    url: str = ""
    discovery_url: str = msgspec.field(name="discoveryURL", default="")
    certificate_authority: str = ""
    audiences: tuple[str, ...] = ()
    audience_match_policy: str = ""
    egress_selector_type: str = ""


class ClaimValidationRule(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """A claim that must have a value, or an expression that must hold."""

    claim: str = ""
    required_value: str = ""
    expression: str = ""
    message: str = ""


class ClaimOrExpression(msgspec.Struct, frozen=True, kw_only=True):
    """Where a text comes from."""

    claim: str = ""
    expression: str = ""


class PrefixedClaimOrExpression(msgspec.Struct, frozen=True, kw_only=True):
    """Where texts come from, and what is put before those of a claim."""

    claim: str = ""
    prefix: str | None = None
    expression: str = ""


class ExtraMapping(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """An extra attribute of users."""

    key: str = ""
    value_expression: str = ""


class ClaimMappings(msgspec.Struct, frozen=True, kw_only=True):
    """What claims become of users."""

    username: PrefixedClaimOrExpression = PrefixedClaimOrExpression()
    groups: PrefixedClaimOrExpression = PrefixedClaimOrExpression()
    uid: ClaimOrExpression = ClaimOrExpression()
    extra: tuple[ExtraMapping, ...] = ()


class UserValidationRule(msgspec.Struct, frozen=True, kw_only=True):
    """An expression that must hold for a user."""

    expression: str = ""
    message: str = ""


class JWTAuthenticator(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """One issuer, and what its tokens say."""

    issuer: Issuer = Issuer()
    claim_validation_rules: tuple[ClaimValidationRule, ...] = ()
    claim_mappings: ClaimMappings = ClaimMappings()
    user_validation_rules: tuple[UserValidationRule, ...] = ()


class AnonymousCondition(msgspec.Struct, frozen=True, kw_only=True):
    """A path that may be asked for anonymously."""

    path: str = ""


class AnonymousConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """Whether there are anonymous requests; with conditions, only those that meet one."""

    enabled: bool = False
    conditions: tuple[AnonymousCondition, ...] = ()


class AuthenticationConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file."""

    jwt: tuple[JWTAuthenticator, ...] = ()
    anonymous: AnonymousConfiguration | None = None


_OPTIONAL_TEXT: Final = replace(STRING, pointer=True)


def read_configuration(data: bytes) -> AuthenticationConfiguration:
    """The configuration in a file, which nobody has judged yet. Raises DecodeError in upstream's words."""
    if not data:
        raise DecodeError("empty config data")
    _, found = decode_document(data, _KINDS)
    return msgspec.convert(_without_nulls(found), AuthenticationConfiguration)


def _without_nulls(value: Any) -> Any:
    """A null leaves a member as it is in Go; of a list's item nothing is set then."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _document(version: str) -> Any:
    def struct(name: str, members: dict[str, Any]) -> Any:
        return struct_type(f"{version}.{name}", members)

    claim_or_expression = {"claim": STRING, "expression": STRING}
    prefixed = struct("PrefixedClaimOrExpression", {**claim_or_expression, "prefix": _OPTIONAL_TEXT})
    issuer = dict.fromkeys(("url", "certificateAuthority", "audienceMatchPolicy", "egressSelectorType"), STRING)
    mappings = {
        "username": prefixed,
        "groups": prefixed,
        "uid": struct("ClaimOrExpression", claim_or_expression),
        "extra": list_type(struct("ExtraMapping", {"key": STRING, "valueExpression": STRING})),
    }
    rule = dict.fromkeys(("claim", "requiredValue", "expression", "message"), STRING)
    authenticator = {
        "issuer": struct("Issuer", {**issuer, "discoveryURL": _OPTIONAL_TEXT, "audiences": STRINGS}),
        "claimValidationRules": list_type(struct("ClaimValidationRule", rule)),
        "claimMappings": struct("ClaimMappings", mappings),
        "userValidationRules": list_type(struct("UserValidationRule", {"expression": STRING, "message": STRING})),
    }
    conditions = list_type(struct("AnonymousAuthCondition", {"path": STRING}))
    anonymous = replace(struct("AnonymousAuthConfig", {"enabled": BOOL, "conditions": conditions}), pointer=True)
    return document_type(
        f"{version}.{KIND}", {"jwt": list_type(struct("JWTAuthenticator", authenticator)), "anonymous": anonymous}
    )


_KINDS: Final = {(f"{GROUP}/{version}", KIND): _document(version) for version in ("v1", "v1beta1", "v1alpha1")}
