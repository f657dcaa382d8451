"""Access reviews: conversion to attributes, statuses, and validation."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from steersman.api.authorization.v1 import (
    LocalSubjectAccessReview,
    SelfSubjectAccessReview,
    SubjectAccessReview,
)
from steersman.api.rbac.v1 import PolicyRule
from steersman.authentication.user import UserInfo
from steersman.authorization.interface import Decision, ResolvedRules, Verdict
from steersman.authorization.review_validation import (
    validate_local_subject_access_review,
    validate_self_subject_access_review,
    validate_subject_access_review,
)
from steersman.authorization.reviews import review_attributes, review_status, rules_review_status, subject_of
from steersman.machinery.identity.action import Action
from tests.counted_work import calls

ALICE = UserInfo("alice")
NO = Verdict(Decision.NO_OPINION)


def review(kind: Any, spec: Any, **metadata: Any) -> Any:
    return msgspec.convert({"metadata": metadata, "spec": spec}, kind)


def asked(resource: Any) -> Any:
    spec = review(SelfSubjectAccessReview, {"resourceAttributes": resource}).spec
    return review_attributes(ALICE, spec.resource_attributes, spec.non_resource_attributes)


def test_a_resource_question() -> None:
    attributes = asked({"verb": "get", "group": "apps", "resource": "d", "subresource": "scale", "namespace": "n"})
    assert attributes.path is None
    assert attributes.action == Action("get", "apps", "*", "d", "scale", "n")


def test_a_path_question_about_a_subject() -> None:
    spec = review(
        SubjectAccessReview,
        {"user": "u", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}, "nonResourceAttributes": {"path": "/x"}},
    ).spec
    attributes = review_attributes(subject_of(spec), spec.resource_attributes, spec.non_resource_attributes)
    assert attributes.user == UserInfo("u", "1", ("g",), {"k": ("v",)})
    assert (attributes.action, attributes.path) == (Action(), "/x")


def test_selectors_are_read() -> None:
    attributes = asked(
        {
            "verb": "list",
            "fieldSelector": {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["a"]}]},
            "labelSelector": {"rawSelector": "a in (b,c),d"},
        }
    )
    assert [str(each) for each in attributes.selectors.fields] == ["spec.nodeName=a"]
    assert [str(each) for each in attributes.selectors.labels] == ["a in (b,c)", "d"]
    assert review_status(NO, attributes).evaluation_error == ""


@pytest.mark.parametrize(
    ("selectors", "error"),
    [
        (
            {"labelSelector": {"rawSelector": "a in (b"}},
            "spec.resourceAttributes.labelSelector ignored due to parse error",
        ),
        (
            {"fieldSelector": {"rawSelector": "nonsense"}},
            "spec.resourceAttributes.fieldSelector ignored due to parse error",
        ),
        (
            {"labelSelector": {"requirements": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Near"}]}},
            "spec.resourceAttributes.labelSelector partially ignored due to parse error",
        ),
        (
            {
                "fieldSelector": {
                    "requirements": [
                        {"key": "a", "operator": "NotIn", "values": ["b"]},
                        {"key": "a", "operator": "In", "values": ["b", "c"]},
                        {"key": "a", "operator": "Exists"},
                    ]
                },
                "labelSelector": {"requirements": [{"key": "b", "operator": "Near"}]},
            },
            "spec.resourceAttributes.fieldSelector partially ignored due to parse error; "
            "spec.resourceAttributes.labelSelector ignored due to parse error",
        ),
    ],
)
def test_what_cannot_be_read_of_a_selector_is_told(selectors: dict[str, Any], error: str) -> None:
    status = review_status(Verdict(Decision.DENY, "why", "broken"), asked({"verb": "list", **selectors}))
    assert (status.allowed, status.denied, status.reason) == (False, True, "why")
    assert status.evaluation_error == f"broken; {error}"


def test_a_refusal_says_little() -> None:
    status = review_status(NO, asked({"verb": "list"}))
    assert msgspec.json.encode(status) == b'{"allowed":false}'


def test_rules_become_a_status() -> None:
    rule, url = PolicyRule(verbs=["get"], resources=["pods"]), PolicyRule(verbs=["get"], non_resource_urls=["/x"])
    status = rules_review_status(ResolvedRules((rule,), (url,), incomplete=True, error="e"))
    assert msgspec.json.decode(msgspec.json.encode(status)) == {
        "resourceRules": [{"verbs": ["get"], "resources": ["pods"]}],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
        "incomplete": True,
        "evaluationError": "e",
    }
    assert msgspec.json.decode(msgspec.json.encode(rules_review_status(ResolvedRules()))) == {
        "resourceRules": [],
        "nonResourceRules": [],
        "incomplete": False,
    }


PODS = {"verb": "get", "resource": "pods"}
EITHER = (
    "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be "
    "specified"
)
USER = 'spec.user: Invalid value: "": at least one of user or group must be specified'


@pytest.mark.parametrize(
    ("spec", "metadata", "errors"),
    [
        ({}, {}, [EITHER, USER]),
        ({"user": "u"}, {}, [EITHER]),
        ({"groups": ["g"], "resourceAttributes": PODS}, {}, []),
        (
            {"user": "u", "resourceAttributes": {}, "nonResourceAttributes": {"path": "/"}},
            {},
            [
                'spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":""}: cannot be specified in '
                "combination with resourceAttributes"
            ],
        ),
        (
            {"user": "u", "resourceAttributes": PODS},
            {"name": "n", "managedFields": [{"manager": "m"}]},
            ['metadata: Invalid value: {"name":"n","managedFields":[{"manager":"m"}]}: must be empty'],
        ),
        ({"user": "u", "resourceAttributes": PODS}, {"managedFields": [{"manager": "m"}]}, []),
    ],
)
def test_invalid_subject_reviews(spec: dict[str, Any], metadata: dict[str, Any], errors: list[Any]) -> None:
    found = validate_subject_access_review(review(SubjectAccessReview, spec, **metadata))
    assert [str(error) for error in found] == errors


@pytest.mark.parametrize(
    ("spec", "metadata", "errors"),
    [
        (
            {"user": "u", "resourceAttributes": {**PODS, "namespace": "default"}},
            {"namespace": "n"},
            ['spec.resourceAttributes.namespace: Invalid value: "default": must match metadata.namespace'],
        ),
        (
            {"user": "u", "nonResourceAttributes": {"path": "/", "verb": "get"}},
            {"namespace": "n"},
            [
                'spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":"get"}: disallowed on this kind of '
                "request"
            ],
        ),
        (
            {},
            {"name": "x", "namespace": "n"},
            [
                EITHER,
                USER,
                'metadata: Invalid value: {"name":"x","namespace":"n"}: must be empty except for namespace',
            ],
        ),
    ],
)
def test_invalid_local_reviews(spec: dict[str, Any], metadata: dict[str, Any], errors: list[Any]) -> None:
    found = validate_local_subject_access_review(review(LocalSubjectAccessReview, spec, **metadata))
    assert [str(error) for error in found] == errors


def test_invalid_selectors() -> None:
    attributes = {
        **PODS,
        "labelSelector": {
            "requirements": [
                {"key": "a", "operator": "In"},
                {"key": "", "operator": "Exists"},
                {"key": "b", "operator": "Near", "values": ["x"]},
                {"key": "c", "operator": "Exists", "values": ["y"]},
            ]
        },
        "fieldSelector": {
            "requirements": [{"key": "", "operator": "In", "values": ["a"]}, {"key": "m", "operator": "Wrong"}]
        },
    }
    found = validate_self_subject_access_review(review(SelfSubjectAccessReview, {"resourceAttributes": attributes}))
    path = "spec.resourceAttributes"
    assert [(error.field, error.type, error.detail.split(" (e.g.")[0]) for error in found] == [
        (f"{path}.fieldSelector.requirements[0].key", "FieldValueRequired", "must be specified"),
        (
            f"{path}.labelSelector.requirements[0].values",
            "FieldValueRequired",
            "must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (f"{path}.labelSelector.requirements[1].key", "FieldValueInvalid", "name part must be non-empty"),
        (
            f"{path}.labelSelector.requirements[1].key",
            "FieldValueInvalid",
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character",
        ),
        (
            f"{path}.labelSelector.requirements[3].values",
            "FieldValueForbidden",
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
    ]


def test_selectors_that_say_nothing_or_everything_twice() -> None:
    both = {"rawSelector": "a", "requirements": [{"key": "a", "operator": "Exists"}]}
    spec = {"resourceAttributes": {**PODS, "fieldSelector": {}, "labelSelector": both}}
    found = validate_self_subject_access_review(review(SelfSubjectAccessReview, spec))
    assert [str(error) for error in found] == [
        "spec.resourceAttributes.fieldSelector.requirements: Required value: when "
        "spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required",
        'spec.resourceAttributes.labelSelector.rawSelector: Invalid value: "a": may not specified at the same time '
        "as requirements",
    ]


@pytest.mark.parametrize(
    "selector",
    [
        {"rawSelector": ",".join(["a=b"] * 2000)},
        {"requirements": [{"key": f"k{number}", "operator": "In", "values": ["v"]} for number in range(1000)]},
        {"requirements": [{"key": "k", "operator": "In", "values": [f"v{number}" for number in range(2000)]}]},
    ],
)
@pytest.mark.parametrize(("kind", "read"), [("labelSelector", "labels"), ("fieldSelector", "fields")])
def test_long_selectors_are_ignored_as_those_of_requests_are_and_cost_nothing(
    selector: dict[str, Any], kind: str, read: str
) -> None:
    spec = review(SelfSubjectAccessReview, {"resourceAttributes": {"verb": "list", kind: selector}}).spec
    assert calls(lambda: review_attributes(ALICE, spec.resource_attributes, None)) < 10_000
    attributes = review_attributes(ALICE, spec.resource_attributes, None)
    assert getattr(attributes.selectors, read) == ()
    status = review_status(NO, attributes)
    assert status.evaluation_error == f"spec.resourceAttributes.{kind} ignored due to parse error"
