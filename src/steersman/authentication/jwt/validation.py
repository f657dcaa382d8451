"""Validation of an AuthenticationConfiguration (apiserver `apis/apiserver/validation`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from steersman.api.apiserver.v1 import (
    AuthenticationConfiguration,
    ClaimMappings,
    ClaimValidationRule,
    ExtraMapping,
    Issuer,
    JWTAuthenticator,
    PrefixedClaimOrExpression,
    UserValidationRule,
)
from steersman.authentication.jwt.expressions import CLAIMS, USER, Compiled, compiled
from steersman.machinery.errors.field import FieldError, Path, duplicate, invalid, required, too_many
from steersman.machinery.go.pem import blocks
from steersman.machinery.go.strings import to_lower
from steersman.machinery.go.urls import UrlError, parse, parse_error_message
from steersman.machinery.validation.domains import is_domain_prefixed_path

_MATCH_ANY: Final = "MatchAny"
MOST: Final = 64
"""Limit of configured issuers."""
_BOTH: Final = "claim and expression can't both be set"
_RESERVED: Final = ("kubernetes.io", "k8s.io")


def configuration_errors(
    configuration: AuthenticationConfiguration, service_account_issuers: Sequence[str]
) -> Iterator[FieldError]:
    """Yield all errors of a configuration; no issuer may be an issuer of this server's service account tokens."""
    root = Path("jwt")
    authenticators = configuration.jwt or ()
    if len(authenticators) > MOST:
        yield too_many(root, len(authenticators), MOST)
        return
    issuers: set[str] = set()
    discovery_urls: set[str] = set()
    for index, each in enumerate(authenticators):
        at = root[index]
        yield from authenticator_errors(each, at, service_account_issuers)
        yield from _once(each.issuer.url, issuers, at / "issuer" / "url")
        if each.issuer.discovery_url:
            yield from _once(each.issuer.discovery_url, discovery_urls, at / "issuer" / "discoveryURL")
    anonymous = configuration.anonymous
    if anonymous is not None and not anonymous.enabled and anonymous.conditions:
        shown = [{"Path": each.path} for each in anonymous.conditions]
        detail = "enabled should be set to true when conditions are defined"
        yield invalid(Path("anonymous", "conditions"), shown, detail)


def authenticator_errors(
    authenticator: JWTAuthenticator, path: Path, service_account_issuers: Sequence[str]
) -> Iterator[FieldError]:
    """Yield the errors of one issuer's configuration."""
    yield from _issuer_errors(authenticator.issuer, path / "issuer", service_account_issuers)
    yield from _claim_rule_errors(authenticator.claim_validation_rules, path / "claimValidationRules")
    yield from _mapping_errors(authenticator, path / "claimMappings")
    yield from _user_rule_errors(authenticator.user_validation_rules, path / "userValidationRules")


def _once(value: str, seen: set[str], path: Path) -> Iterator[FieldError]:
    if value in seen:
        yield duplicate(path, value)
    seen.add(value)


def _issuer_errors(issuer: Issuer, path: Path, service_account_issuers: Sequence[str]) -> Iterator[FieldError]:
    if issuer.url:
        yield from _url_errors(issuer.url, path / "url", service_account_issuers)
    else:
        yield required(path / "url")
    if issuer.discovery_url:
        at = path / "discoveryURL"
        if issuer.url and issuer.url.rstrip("/") == issuer.discovery_url.rstrip("/"):
            yield invalid(at, issuer.discovery_url, "discoveryURL must be different from URL")
        yield from _url_errors(issuer.discovery_url, at, ())
    yield from _audience_errors(issuer, path)
    if issuer.certificate_authority and (fault := fault_of_authority(issuer.certificate_authority)):
        yield invalid(path / "certificateAuthority", "<omitted>", fault)
    if issuer.egress_selector_type not in ("", "controlplane", "cluster"):
        detail = "egress selector must be either controlplane or cluster"
        yield invalid(path / "egressSelectorType", issuer.egress_selector_type, detail)


def _url_errors(url: str, path: Path, disallowed: Sequence[str]) -> Iterator[FieldError]:
    if url in disallowed:
        yield invalid(path, url, f"URL must not overlap with disallowed issuers: [{' '.join(sorted(disallowed))}]")
    text, _, fragment = url.partition("#")
    try:
        parts = parse(text, of_request=False)
    except UrlError as error:
        yield invalid(path, url, parse_error_message(url, error))
        return
    if parts.scheme != "https":
        yield invalid(path, url, "URL scheme must be https")
    if "@" in text.partition("://")[2].partition("/")[0].partition("?")[0]:
        yield invalid(path, url, "URL must not contain a username or password")
    if parts.query:
        yield invalid(path, url, "URL must not contain a query")
    if fragment:
        yield invalid(path, url, "URL must not contain a fragment")


def _audience_errors(issuer: Issuer, path: Path) -> Iterator[FieldError]:
    at = path / "audiences"
    if not issuer.audiences:
        yield required(at, f"at least one {at} is required")
        return
    seen: set[str] = set()
    for index, audience in enumerate(issuer.audiences):
        if not audience:
            yield required(at[index])
        yield from _once(audience, seen, at[index])
    policy = issuer.audience_match_policy
    if policy == _MATCH_ANY:
        return
    at = path / "audienceMatchPolicy"
    if len(issuer.audiences) > 1:
        yield invalid(at, policy, "audienceMatchPolicy must be MatchAny for multiple audiences")
    elif policy:
        yield invalid(at, policy, "audienceMatchPolicy must be empty or MatchAny for single audience")


def fault_of_authority(pem: str) -> str:
    """Return client-go's text about a PEM text without valid certificates, "" if it has valid ones."""
    from cryptography.x509 import load_der_x509_certificate

    found = [each.content for each in blocks(pem.encode()) if each.type == "CERTIFICATE"]
    if not found:
        return "data does not contain any valid RSA or ECDSA certificates"
    try:
        for each in found:
            load_der_x509_certificate(each)
    except ValueError:
        return "x509: malformed certificate"
    return ""


def _claim_rule_errors(rules: Iterable[ClaimValidationRule], path: Path) -> Iterator[FieldError]:
    claims: set[str] = set()
    expressions: set[str] = set()
    for index, rule in enumerate(rules):
        at = path[index]
        if rule.claim and rule.expression:
            yield invalid(at, rule.claim, _BOTH)
        elif rule.claim:
            if rule.message:
                yield invalid(at / "message", rule.message, "may not be specified when claim is set")
            yield from _once(rule.claim, claims, at / "claim")
        elif rule.expression:
            if rule.required_value:
                yield invalid(at / "requiredValue", rule.required_value, "may not be specified when expression is set")
            yield from _rule_errors(rule.expression, CLAIMS, expressions, at / "expression")
        else:
            yield required(at, "claim or expression is required")


def _user_rule_errors(rules: Iterable[UserValidationRule], path: Path) -> Iterator[FieldError]:
    expressions: set[str] = set()
    for index, rule in enumerate(rules):
        at = path[index] / "expression"
        if rule.expression:
            yield from _rule_errors(rule.expression, USER, expressions, at)
        else:
            yield required(at)


def _rule_errors(text: str, variable: str, seen: set[str], path: Path) -> Iterator[FieldError]:
    if text in seen:
        yield duplicate(path, text)
        return
    seen.add(text)
    yield from _expression_errors(compiled(text, variable, is_rule=True), path)


def _expression_errors(expression: Compiled, path: Path) -> Iterator[FieldError]:
    error = expression.field_error(path)
    if error is not None:
        yield error


def _mapping_errors(authenticator: JWTAuthenticator, path: Path) -> Iterator[FieldError]:
    mappings = authenticator.claim_mappings
    yield from _text_errors(mappings.username, path / "username", is_required=True)
    yield from _text_errors(mappings.groups, path / "groups", is_required=False)
    uid = mappings.uid
    if uid.claim and uid.expression:
        yield invalid(path / "uid", "", _BOTH)
    elif uid.expression:
        yield from _expression_errors(compiled(uid.expression, CLAIMS, is_rule=False), path / "uid" / "expression")
    keys: set[str] = set()
    for index, each in enumerate(mappings.extra):
        yield from _extra_errors(each, keys, (path / "extra")[index])
    if _trusts_unverified_email(mappings, authenticator.claim_validation_rules):
        yield invalid(
            path / "username" / "expression",
            mappings.username.expression,
            "claims.email_verified must be used in claimMappings.username.expression or "
            "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in "
            "claimMappings.username.expression",
        )


def _text_errors(mapping: PrefixedClaimOrExpression, path: Path, *, is_required: bool) -> Iterator[FieldError]:
    if mapping.expression and mapping.claim:
        yield invalid(path, "", _BOTH)
    elif mapping.expression:
        if mapping.prefix is not None:
            yield invalid(path / "prefix", mapping.prefix, "may not be specified when expression is set")
        yield from _expression_errors(compiled(mapping.expression, CLAIMS, is_rule=False), path / "expression")
    elif mapping.claim:
        if mapping.prefix is None:
            detail = "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
            yield required(path / "prefix", detail)
    elif is_required:
        yield required(path, "claim or expression is required")


def _extra_errors(mapping: ExtraMapping, seen: set[str], path: Path) -> Iterator[FieldError]:
    key, at = mapping.key, path / "key"
    yield from is_domain_prefixed_path(key, at)
    if key != to_lower(key):
        yield invalid(at, key, "must be lowercase")
    domain, slash, _ = key.partition("/")
    if slash and any(domain == each or domain.endswith(f".{each}") for each in _RESERVED):
        yield invalid(at, key, "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use")
    if key in seen:
        yield duplicate(at, key)
        return
    seen.add(key)
    if mapping.value_expression:
        yield from _expression_errors(
            compiled(mapping.value_expression, CLAIMS, is_rule=False), path / "valueExpression"
        )
    else:
        yield required(path / "valueExpression")


def _trusts_unverified_email(mappings: ClaimMappings, rules: Iterable[ClaimValidationRule]) -> bool:
    """Return True if the user name is an email address whose verification nothing checks."""
    username = mappings.username
    if not username.expression or username.prefix is not None or username.claim:
        return False
    expression = compiled(username.expression, CLAIMS, is_rule=False)
    if expression.error or not expression.selects("email"):
        return False
    others = [compiled(each.value_expression, CLAIMS, is_rule=False) for each in mappings.extra]
    others += [compiled(each.expression, CLAIMS, is_rule=True) for each in rules if each.expression and not each.claim]
    return not any(each.selects("email_verified") for each in (expression, *others))
