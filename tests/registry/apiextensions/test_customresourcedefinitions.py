"""Create, update, status update and deletion of definitions."""

from __future__ import annotations

import json

import pytest

from steersman.api.apiextensions.v1 import CustomResourceDefinitionCondition, CustomResourceDefinitionNames
from steersman.api.meta.v1 import DeleteOptions, Preconditions
from steersman.machinery.codec.serializer import encode
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.status import StatusError
from steersman.registry.apiextensions.customresourcedefinitions import (
    CLEANUP_FINALIZER,
    CUSTOM_RESOURCE_DEFINITIONS,
    CustomResourceDefinitionStatusStrategy,
)
from steersman.rest.context import Context
from tests.registry.apiextensions.definitions import (
    STRATEGY,
    created,
    definition,
    read,
    schema,
    texts,
    updated,
    version,
)


def test_a_new_one_has_no_status_but_what_is_stored() -> None:
    body = definition(versions=[version(storage=False), version("v2", storage=True)])
    body["status"] = {"storedVersions": ["v9"], "acceptedNames": {"plural": "a", "kind": "b"}, "conditions": []}
    found = created(body)[0]
    assert json.loads(encode(found.status)) == {
        "acceptedNames": {"kind": "", "plural": ""},
        "conditions": None,
        "storedVersions": ["v2"],
    }
    assert found.metadata.generation == 1


def test_an_update_keeps_the_status_and_notes_what_is_stored() -> None:
    old = created(definition())[0]
    old.status.accepted_names = CustomResourceDefinitionNames(plural="foos", kind="Foo")
    body = definition(versions=[version(storage=False), version("v2", storage=True)])
    body["status"] = {"storedVersions": [], "acceptedNames": {"plural": "x", "kind": "X"}}
    new, errors, _ = updated(body, old)
    assert not errors
    assert new.status.stored_versions == ["v1", "v2"]
    assert new.status.accepted_names.kind == "Foo"
    assert old.status.stored_versions == ["v1"]


def test_the_generation_follows_the_spec() -> None:
    old = created(definition(versions=[version(of=schema(a={"type": "integer", "default": 1}))]))[0]
    same = updated(definition(versions=[version(of=schema(a={"type": "integer", "default": 1}))]), old)[0]
    other = updated(definition(versions=[version(of=schema(a={"type": "integer", "default": True}))]), old)[0]
    assert (same.metadata.generation, other.metadata.generation) == (1, 2)


def test_the_status_is_written_with_metadata_and_without_the_spec() -> None:
    strategy = CustomResourceDefinitionStatusStrategy()
    old = created(definition())[0]
    body = definition({"labels": {"a": "b"}}, scope="Cluster")
    body["status"] = {"storedVersions": ["v9"], "acceptedNames": {"plural": "foos", "kind": "Foo_"}}
    new = read(body)
    strategy.prepare_for_update(Context(), new, old)
    assert new.spec.scope == "Namespaced"
    assert new.metadata.labels == {"a": "b"}
    (error,) = texts(list(strategy.validate_update(Context(), new, old)))
    assert error.startswith('status.acceptedNames.kind: Invalid value: "Foo_": may have mixed case, but should')


def test_the_first_delete_marks_it() -> None:
    old = created(definition({"finalizers": ["example.com/a"]}))[0]
    assert STRATEGY.begin_delete(Context(), old)
    assert old.metadata.deletion_timestamp is not None
    assert old.metadata.finalizers == ["example.com/a", CLEANUP_FINALIZER]
    [condition] = list(old.status.conditions or ())
    assert (condition.type, condition.status, condition.reason) == ("Terminating", "True", "InstanceDeletionPending")
    assert not STRATEGY.begin_delete(Context(), old)


def test_what_is_deleted_must_be_what_is_meant() -> None:
    old = created(definition())[0]
    old.metadata.uid = "a"
    wrong = DeleteOptions(preconditions=Preconditions(uid="b"))
    with pytest.raises(StatusError) as caught:
        STRATEGY.check_preconditions(Context(), wrong, old.metadata)
    assert str(caught.value.message) == (
        'Operation cannot be fulfilled on customresourcedefinitions.apiextensions.k8s.io "foos.q.example.com": '
        "Precondition failed: UID in precondition: b, UID in object meta: a"
    )


def test_a_webhook_about_which_nothing_is_said_is_none() -> None:
    found = read(definition(conversion={"strategy": "None", "webhook": {"conversionReviewVersions": []}}))
    assert found.spec.conversion is not None
    assert found.spec.conversion.webhook is None


def test_the_port_of_a_webhook_is_that_of_https() -> None:
    service = {"namespace": "a", "name": "b"}
    found = read(definition(conversion={"strategy": "Webhook", "webhook": {"clientConfig": {"service": service}}}))
    assert found.spec.conversion is not None
    assert found.spec.conversion.webhook is not None
    assert found.spec.conversion.webhook.client_config is not None
    assert found.spec.conversion.webhook.client_config.service is not None
    assert found.spec.conversion.webhook.client_config.service.port == 443


def test_it_is_judged_beside_the_loop() -> None:
    assert CUSTOM_RESOURCE_DEFINITIONS.takes_long


def test_only_the_first_established_condition_counts() -> None:
    old = created(definition())[0]
    old.status.conditions = [
        CustomResourceDefinitionCondition(type="Established", status="False"),
        CustomResourceDefinitionCondition(type="Established", status="True"),
    ]
    assert not updated(definition(scope="Cluster"), old)[1]


def test_a_number_in_a_default_that_is_no_float_is_refused() -> None:
    body = json.dumps(definition()).replace('"type": "object"', '"type": "object", "default": {"a": [1, -1e999]}', 1)
    with pytest.raises(DecodeError, match="json: cannot unmarshal number -1e999 into Go value of type float64"):
        CUSTOM_RESOURCE_DEFINITIONS.kind.read(body.encode(), "json", strict=True)
