"""Parsing of ABAC policy files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steersman.authentication.user import ALL_AUTHENTICATED
from steersman.authorization.abac import Policy
from steersman.authorization.abac_file import PolicyFileError, read_policies

V1BETA1 = '{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": %s}'


def read(folder: Path, *lines: str) -> list[Policy]:
    file = folder / "policy.jsonl"
    file.write_text("\n".join(lines))
    return read_policies(file)


def test_comments_and_empty_lines_are_passed_over(tmp_path: Path) -> None:
    assert read(tmp_path, "# a comment", "", "  ", V1BETA1 % '{"user": "a"}') == [Policy(user="a")]


def test_a_policy_says_all_there_is_to_say(tmp_path: Path) -> None:
    spec = (
        '{"group": "g", "readonly": true, "apiGroup": "a", "resource": "r", "namespace": "n", "nonResourcePath": "/"}'
    )
    assert read(tmp_path, V1BETA1 % spec) == [Policy("", "g", True, "a", "r", "n", "/")]


def test_all_users_are_those_who_are_authenticated(tmp_path: Path) -> None:
    (policy,) = read(tmp_path, V1BETA1 % '{"user": "*"}')
    assert policy == Policy(group=ALL_AUTHENTICATED)


@pytest.mark.parametrize(
    ("line", "policy"),
    [
        ("{}", Policy("", ALL_AUTHENTICATED, False, "*", "*", "*", "*")),
        ('{"user": "a", "resource": "pods", "readonly": true}', Policy("a", "", True, "*", "pods", "*", "")),
        ('{"group": "g", "namespace": "n"}', Policy("", "g", False, "*", "*", "n", "")),
        ('{"kind": "Policy", "user": "a"}', Policy("a", "", False, "*", "*", "*", "*")),
    ],
)
def test_lines_without_a_version_say_more_by_saying_less(tmp_path: Path, line: str, policy: Policy) -> None:
    assert read(tmp_path, line) == [policy]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "line 2: {: "),
        (V1BETA1 % '{"user": 1}', "cannot unmarshal number into Go struct field PolicySpec.spec.user of type string"),
        ('{"apiVersion": "v1", "kind": "Pod"}', 'no kind "Pod" is registered for version "v1"'),
        ("x" * (64 << 10), "bufio.Scanner: token too long"),
    ],
)
def test_what_cannot_be_read_ends_the_start(tmp_path: Path, line: Any, why: str) -> None:
    with pytest.raises(PolicyFileError, match="error reading policy file") as error:
        read(tmp_path, "", line)
    assert why in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PolicyFileError, match="no such file or directory"):
        read_policies(tmp_path / "none")
