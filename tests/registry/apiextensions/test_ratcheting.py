"""Ratcheting: errors of a stored definition may remain in an update."""

from __future__ import annotations

from typing import Any

from steersman.api.apiextensions.v1 import CustomResourceDefinition, CustomResourceDefinitionCondition
from tests.registry.apiextensions.definitions import Body, definition, read, schema, texts, updated, version

_TEXT = {"type": "string"}


def _stored(body: Body) -> CustomResourceDefinition:
    found = read(body)
    found.status.conditions = [CustomResourceDefinitionCondition(type="Established", status="True")]
    return found


def _changed(body: Body) -> Body:
    return {**body, "spec": {**body["spec"], "names": {**body["spec"]["names"], "shortNames": ["f"]}}}


def _webhook(**members: Any) -> Body:
    return {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://x.y"}, **members}}


def _is_accepted(body: Body) -> bool:
    """Return True if an update that changes something else is accepted."""
    return not updated(_changed(body), _stored(body))[1]


def test_review_versions_that_nobody_understands() -> None:
    wrong = definition(conversion=_webhook(conversionReviewVersions=["v9"]))
    assert _is_accepted(wrong)
    (error,) = texts(updated(wrong, _stored(definition()))[1])
    assert (
        error
        == 'spec.conversion.conversionReviewVersions: Invalid value: ["v9"]: must include at least one of v1, v1beta1'
    )


def test_a_bundle_of_certificates_that_cannot_be_used() -> None:
    config = {"url": "https://x.y", "caBundle": "YWJj"}
    wrong = definition(conversion=_webhook(conversionReviewVersions=["v1"], clientConfig=config))
    assert _is_accepted(wrong)
    assert updated(wrong, _stored(definition()))[1]


def test_more_selectable_fields_than_usual() -> None:
    many = schema(**{f"x{number}": _TEXT for number in range(9)})
    fields = [{"jsonPath": f".spec.x{number}"} for number in range(9)]
    wrong = definition(versions=[version(of=many, selectableFields=fields)])
    assert _is_accepted(wrong)
    (error,) = texts(updated(wrong, _stored(definition()))[1])
    assert error == "spec.selectableFields: Too many: 9: must have at most 8 items"
    other = definition(versions=[version(of=many, selectableFields=fields), version("v2")])
    own = {**other, "spec": {**other["spec"], "versions": [*other["spec"]["versions"], version("v3")]}}
    assert not updated(own, _stored(other))[1]


def test_no_schema_where_there_was_none() -> None:
    without = {"name": "v1", "served": False, "storage": True}
    assert _is_accepted(definition(versions=[without]))
    served = definition(versions=[{**without, "served": True}])
    (error,) = texts(updated(_changed(served), _stored(served))[1])
    assert error == ("spec.versions[0].schema.openAPIV3Schema: Required value: because otherwise all fields are pruned")


def test_unknown_fields_that_were_kept() -> None:
    assert _is_accepted(definition(preserveUnknownFields=True))


def test_a_schema_that_is_not_structural_where_unknown_fields_are_kept() -> None:
    wrong = definition(preserveUnknownFields=True, versions=[version(of={"properties": {"a": {}}})])
    assert _is_accepted(wrong)
    assert not _is_accepted({**wrong, "spec": {**wrong["spec"], "preserveUnknownFields": False}})


def test_rules_that_cost_too_much_in_a_schema_that_is_the_same() -> None:
    rule = {"rule": "self.all(x, self.all(y, x != y))"}
    texts_of = {"type": "array", "maxItems": 170, "items": {"type": "string", "maxLength": 900}}
    wrong = definition(versions=[version(of=schema(a={**texts_of, "x-kubernetes-validations": [rule]}))])
    (error,) = texts(updated(wrong, _stored(definition()))[1])
    assert "estimated rule cost exceeds budget by factor of" in error
    assert _is_accepted(wrong)


def test_an_approval_that_was_missing() -> None:
    body = definition({"name": "foos.x.k8s.io"}, group="x.k8s.io")
    assert _is_accepted(body)
    approved = definition(
        {"name": "foos.x.k8s.io", "annotations": {"api-approved.kubernetes.io": "https://x.y/z"}}, group="x.k8s.io"
    )
    assert not updated(approved, _stored(body))[1]
    (error,) = texts(updated(body, _stored(approved))[1])
    assert error.startswith("metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must")
