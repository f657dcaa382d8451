"""Validation of AuthenticationConfiguration, with upstream's messages."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from steersman.api.apiserver.v1 import AuthenticationConfiguration
from steersman.authentication.jwt.configuration import read_configuration
from steersman.authentication.jwt.validation import configuration_errors
from steersman.machinery.codec.strict import DecodeError

ISSUER = {"url": "https://a.com", "audiences": ["x"]}
USERNAME = {"claim": "sub", "prefix": ""}
EMAIL = (
    "claims.email_verified must be used in claimMappings.username.expression or "
    "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in "
    "claimMappings.username.expression"
)


def errors(*jwt: dict[str, Any], **more: Any) -> list[str]:
    given = msgspec.convert({"jwt": list(jwt), **more}, AuthenticationConfiguration)
    return [str(each) for each in configuration_errors(given, ["https://kubernetes.default"])]


def one(issuer: dict[str, Any] | None = None, username: dict[str, Any] | None = None, **more: Any) -> list[str]:
    mappings = {"username": USERNAME if username is None else username, **more.pop("mappings", {})}
    return errors({"issuer": {**ISSUER, **(issuer or {})}, "claimMappings": mappings, **more})


def test_what_is_right_has_no_errors() -> None:
    assert errors() == []
    assert one() == []
    assert one({"audiences": ["a", "b"], "audienceMatchPolicy": "MatchAny", "discoveryURL": "https://b.com/x"}) == []
    assert one(username={"expression": "claims.email + string(claims.email_verified)"}) == []
    rule = {"expression": "claims.?email_verified.orValue(true) == true"}
    assert one(username={"expression": "claims.email"}, claimValidationRules=[rule]) == []


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (one({"url": ""}), ["jwt[0].issuer.url: Required value"]),
        (
            one({"url": "http://u@a.com?q#f"}),
            [
                'jwt[0].issuer.url: Invalid value: "http://u@a.com?q#f": URL scheme must be https',
                'jwt[0].issuer.url: Invalid value: "http://u@a.com?q#f": URL must not contain a username or password',
                'jwt[0].issuer.url: Invalid value: "http://u@a.com?q#f": URL must not contain a query',
                'jwt[0].issuer.url: Invalid value: "http://u@a.com?q#f": URL must not contain a fragment',
            ],
        ),
        (
            one({"url": "https://kubernetes.default"}),
            [
                'jwt[0].issuer.url: Invalid value: "https://kubernetes.default": URL must not overlap with disallowed '
                "issuers: [https://kubernetes.default]"
            ],
        ),
        (
            one({"discoveryURL": "https://a.com/"}),
            ['jwt[0].issuer.discoveryURL: Invalid value: "https://a.com/": discoveryURL must be different from URL'],
        ),
        (
            one({"audiences": []}),
            ["jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required"],
        ),
        (
            one({"audiences": ["a", "a"]}),
            [
                'jwt[0].issuer.audiences[1]: Duplicate value: "a"',
                'jwt[0].issuer.audienceMatchPolicy: Invalid value: "": audienceMatchPolicy must be MatchAny for multiple '
                "audiences",
            ],
        ),
        (
            one({"certificateAuthority": "none"}),
            [
                'jwt[0].issuer.certificateAuthority: Invalid value: "<omitted>": data does not contain any valid RSA or '
                "ECDSA certificates"
            ],
        ),
        (
            one({"egressSelectorType": "etcd"}),
            [
                'jwt[0].issuer.egressSelectorType: Invalid value: "etcd": egress selector must be either controlplane or '
                "cluster"
            ],
        ),
        (
            one(username={"claim": "sub"}),
            [
                "jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set "
                "to an empty string to disable prefixing"
            ],
        ),
        (one(username={}), ["jwt[0].claimMappings.username: Required value: claim or expression is required"]),
        (
            one(username={"claim": "a", "expression": "b"}),
            ['jwt[0].claimMappings.username: Invalid value: "": claim and expression can\'t both be set'],
        ),
        (
            one(username={"expression": "claims.email"}),
            [f'jwt[0].claimMappings.username.expression: Invalid value: "claims.email": {EMAIL}'],
        ),
        (
            one(username={"expression": "claims.?email.orValue('')"}),
            [f"jwt[0].claimMappings.username.expression: Invalid value: \"claims.?email.orValue('')\": {EMAIL}"],
        ),
        (
            one(
                mappings={
                    "extra": [
                        {"key": "Foo.k8s.io/a", "valueExpression": "''"},
                        {"key": "a.b/c"},
                        {"key": "a.b/c"},
                        {"key": "x"},
                    ]
                }
            ),
            [
                'jwt[0].claimMappings.extra[0].key: Invalid value: "Foo.k8s.io": a lowercase RFC 1123 subdomain must '
                "consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
                "character (e.g. 'example.com', regex used for validation is "
                r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                'jwt[0].claimMappings.extra[0].key: Invalid value: "Foo.k8s.io/a": must be lowercase',
                'jwt[0].claimMappings.extra[0].key: Invalid value: "Foo.k8s.io/a": k8s.io, kubernetes.io and their '
                "subdomains are reserved for Kubernetes use",
                "jwt[0].claimMappings.extra[1].valueExpression: Required value",
                'jwt[0].claimMappings.extra[2].key: Duplicate value: "a.b/c"',
                'jwt[0].claimMappings.extra[3].key: Invalid value: "x": must be a domain-prefixed path (such as '
                '"acme.io/foo")',
                "jwt[0].claimMappings.extra[3].valueExpression: Required value",
            ],
        ),
        (
            one(
                claimValidationRules=[
                    {"claim": "a", "message": "m"},
                    {"claim": "a"},
                    {},
                    {"claim": "a", "expression": "true"},
                    {"expression": "'a'"},
                    {"expression": "claims.a", "requiredValue": "b"},
                ]
            ),
            [
                'jwt[0].claimValidationRules[0].message: Invalid value: "m": may not be specified when claim is set',
                'jwt[0].claimValidationRules[1].claim: Duplicate value: "a"',
                "jwt[0].claimValidationRules[2]: Required value: claim or expression is required",
                'jwt[0].claimValidationRules[3]: Invalid value: "a": claim and expression can\'t both be set',
                "jwt[0].claimValidationRules[4].expression: Invalid value: \"'a'\": must evaluate to bool",
                'jwt[0].claimValidationRules[5].requiredValue: Invalid value: "b": may not be specified when expression is '
                "set",
                'jwt[0].claimValidationRules[5].expression: Invalid value: "claims.a": must evaluate to bool',
            ],
        ),
        (
            one(userValidationRules=[{}, {"expression": "true"}, {"expression": "true"}]),
            [
                "jwt[0].userValidationRules[0].expression: Required value",
                'jwt[0].userValidationRules[2].expression: Duplicate value: "true"',
            ],
        ),
        (
            errors(anonymous={"conditions": [{"path": "/a"}]}),
            [
                'anonymous.conditions: Invalid value: [{"Path":"/a"}]: enabled should be set to true when conditions are '
                "defined"
            ],
        ),
    ],
)
def test_what_is_wrong_is_told(found: list[str], wanted: list[str]) -> None:
    assert found == wanted


def test_issuers_stand_once() -> None:
    each = {"issuer": {**ISSUER, "discoveryURL": "https://d.com"}, "claimMappings": {"username": USERNAME}}
    assert errors(each, each) == [
        'jwt[1].issuer.url: Duplicate value: "https://a.com"',
        'jwt[1].issuer.discoveryURL: Duplicate value: "https://d.com"',
    ]
    assert errors(*[each] * 65) == ["jwt: Too many: 65: must have at most 64 items"]


def test_unknown_members_of_expressions_are_told() -> None:
    (found,) = one(userValidationRules=[{"expression": "user.foo == 'a'"}])
    assert "compilation failed: ERROR: <input>:1:5: undefined field 'foo'" in found


def document(text: str, version: str = "v1") -> bytes:
    head = f"apiVersion: apiserver.config.k8s.io/{version}\nkind: AuthenticationConfiguration\n"
    return (head + text).encode()


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_a_file_is_read_in_any_version(version: str) -> None:
    configuration = read_configuration(document("jwt:\n- issuer: {url: https://a.com, discoveryURL: null}\n", version))
    (found,) = configuration.jwt or []
    assert found.issuer.url == "https://a.com"
    assert found.issuer.discovery_url is None
    assert configuration.anonymous is None


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "empty config data"),
        (b"jwt: []", "Object 'Kind' is missing in 'jwt: []'"),
        (document("jwts: []"), 'strict decoding error: unknown field "jwts"'),
        (document("jwt: 5"), "cannot unmarshal number into Go struct field AuthenticationConfiguration.jwt"),
        (b"apiVersion: v1\nkind: Pod", 'no kind "Pod" is registered for version "v1"'),
    ],
)
def test_what_is_no_configuration_is_told(data: bytes, text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        read_configuration(data)
    assert text in str(caught.value)
