"""Invalid policies at the start, with upstream's messages."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from steersman.audit.policy_file import PolicyError, load_policy, read_policy

HEAD = b"apiVersion: audit.k8s.io/v1\nkind: Policy\n"


def test_a_policy_is_read_with_all_that_rules_may_say() -> None:
    policy = read_policy(
        HEAD
        + b"""
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: Request
  users: [a]
  userGroups: [b]
  verbs: [get]
  resources: [{group: apps, resources: [deployments/scale], resourceNames: [x]}]
  namespaces: [default]
  omitStages: [Panic]
  omitManagedFields: false
- level: None
  nonResourceURLs: [/healthz*]
"""
    )
    assert policy.rules is not None
    assert (policy.omit_stages, policy.omit_managed_fields) == (["RequestReceived"], True)
    assert policy.rules[0].resources[0].resource_names == ["x"]
    assert policy.rules[0].omit_managed_fields is False
    assert policy.rules[1].non_resource_urls == ["/healthz*"]


NO_VERSION = "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy"


def test_a_document_with_a_version_need_not_say_its_kind() -> None:
    policy = read_policy(b"apiVersion: audit.k8s.io/v1\nrules: [{level: Metadata}]\n")
    assert [each.level for each in policy.rules or ()] == ["Metadata"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"kind: Policy\nrules: []\n", NO_VERSION),
        (b"rules: [{level: None}]\n", NO_VERSION),
        (b"", NO_VERSION),
        (b"null\n", NO_VERSION),
        (b"apiVersion: v1\nrules: []\n", 'failed decoding: no kind "Policy" is registered for version "v1"'),
        (b"apiVersion: audit.k8s.io/v1\n", "loaded illegal policy with 0 rules"),
        (b"apiVersion: audit.k8s.io/v1beta1\nkind: Policy\n", 'failed decoding: no kind "Policy" is registered for'),
        (HEAD, "loaded illegal policy with 0 rules"),
        (HEAD + b"rules: [{}]\n", "rules[0].level: Required value"),
        (
            HEAD + b"rules: [{level: All}]\n",
            'rules[0].level: Unsupported value: "All": supported values: "None", "Metadata", "Request", '
            '"RequestResponse"',
        ),
        (
            HEAD + b"omitStages: [Begin]\nrules: [{level: None}]\n",
            'omitStages[0]: Invalid value: "Begin": allowed stages are '
            "RequestReceived,ResponseStarted,ResponseComplete,Panic",
        ),
        (
            HEAD + b"rules: [{level: None, nonResourceURLs: [healthz, /a*b]}]\n",
            "[rules[0].nonResourceURLs[0]: Invalid value: \"healthz\": non-resource URL rules must begin with a '/' "
            "character, rules[0].nonResourceURLs[1]: Invalid value: \"/a*b\": non-resource URL wildcards '*' must be "
            "the final character of the rule]",
        ),
        (
            HEAD + b"rules: [{level: None, nonResourceURLs: [/a], namespaces: [b]}]\n",
            'rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and '
            "non-resource URLs",
        ),
        (
            HEAD + b"rules: [{level: None, resources: [{group: apps/v1, resourceNames: [a]}]}]\n",
            '[rules[0].resources.group: Invalid value: "apps/v1": a lowercase RFC 1123 subdomain must consist of',
        ),
    ],
)
def test_what_is_wrong_is_told(text: bytes, why: str) -> None:
    with pytest.raises(PolicyError) as error:
        read_policy(text)
    assert str(error.value).startswith(why)


def test_unknown_members_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        policy = read_policy(HEAD + b"rules: [{level: Metadata, verb: [get]}]\n")
    assert policy.rules is not None
    assert 'unknown field "rules[0].verb"' in caplog.text


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r'failed to read file path ".*none": open .*none: no such file or directory'):
        load_policy(tmp_path / "none")


def test_what_is_wrong_with_a_file_ends_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_bytes(HEAD)
    with pytest.raises(PolicyError, match=r"loaded illegal policy with 0 rules: from file .*empty\.yaml"):
        load_policy(tmp_path / "empty.yaml")
