"""Server-side apply: merging, ownership, conflicts."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from steersman import api
from steersman.api.meta.v1 import ManagedFieldsEntry
from steersman.kinds.built_in import built_in
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.errors.status import Cause, StatusError
from steersman.machinery.managed_fields import (
    Applied,
    Applier,
    FieldManager,
    custom_schema,
    to_parent,
    to_scale,
)
from steersman.machinery.managed_fields.last_applied import ANNOTATION
from tests.machinery.managed_fields.plain_kind import PlainKind

CORE, APPS = api.load("", "v1"), api.load("apps", "v1")
CONFIG_MAPS = Applier(FieldManager(built_in(CORE["ConfigMap"])))
DEPLOYMENTS = Applier(FieldManager(built_in(APPS["Deployment"])))
T1, T2 = "2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z"


def config_map(**members: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, **members}


def deployment(spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


def stored(cls: type[Any], applied: Applied, live: Any = None) -> Any:
    obj = live if applied.obj is None else from_plain(cls, applied.obj)
    obj.metadata.managed_fields = applied.entries
    return obj


def shown(entries: list[ManagedFieldsEntry]) -> dict[str, Any]:
    return {each.manager: msgspec.json.decode(each.fields_v1 or b"null") for each in entries}


def live_config_map(data: dict[str, str], manager: str = "one") -> Any:
    return stored(CORE["ConfigMap"], CONFIG_MAPS.apply(CORE["ConfigMap"](), config_map(data=data), manager, T1))


def test_an_apply_owns_what_it_says() -> None:
    applied = CONFIG_MAPS.apply(CORE["ConfigMap"](), config_map(data={"a": "1"}, immutable=False), "one", T1)
    assert applied.obj == config_map(data={"a": "1"}, immutable=False)
    [entry] = applied.entries
    assert (entry.manager, entry.operation, entry.api_version, entry.time) == ("one", "Apply", "v1", T1)
    assert shown([entry]) == {"one": {"f:data": {"f:a": {}}, "f:immutable": {}}}


def test_what_is_applied_no_more_goes_unless_another_owns_it() -> None:
    live = live_config_map({"a": "1", "b": "1"})
    live = stored(CORE["ConfigMap"], CONFIG_MAPS.apply(live, config_map(data={"b": "1"}), "two", T1), live)
    applied = CONFIG_MAPS.apply(live, config_map(data={"c": "1"}), "one", T2)
    assert applied.obj is not None
    assert applied.obj["data"] == {"b": "1", "c": "1"}
    assert shown(applied.entries) == {"one": {"f:data": {"f:c": {}}}, "two": {"f:data": {"f:b": {}}}}


def test_the_same_value_is_owned_together_and_changes_nothing() -> None:
    live = live_config_map({"a": "1"})
    applied = CONFIG_MAPS.apply(live, config_map(data={"a": "1"}), "two", T2)
    assert applied.obj is None
    assert [(each.manager, each.time) for each in applied.entries] == [("two", None), ("one", T1)]


def test_applying_the_same_again_changes_nothing() -> None:
    live = live_config_map({"a": "1"})
    applied = CONFIG_MAPS.apply(live, config_map(data={"a": "1"}), "one", T2)
    assert applied.obj is None
    assert applied.entries == live.metadata.managed_fields


def test_changing_what_others_own_is_a_conflict() -> None:
    live = live_config_map({"a": "1", "b": "1"})
    with pytest.raises(StatusError) as refused:
        CONFIG_MAPS.apply(live, config_map(data={"a": "2"}), "two", T2)
    assert refused.value.code == 409
    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    assert refused.value.causes == [Cause("FieldManagerConflict", 'conflict with "one"', ".data.a")]


def test_conflicts_are_told_by_manager() -> None:
    fields = CONFIG_MAPS.fields
    live = live_config_map({"a": "1", "b": "1"})
    new: Any = from_plain(CORE["ConfigMap"], {"metadata": {"name": "a"}, "data": {"a": "1", "b": "1", "c": "1"}})
    new.metadata.managed_fields = fields.update(new, live, "kubelet", T1)
    with pytest.raises(StatusError) as refused:
        CONFIG_MAPS.apply(new, config_map(data={"a": "2", "b": "2", "c": "2"}), "two", T2)
    assert refused.value.message == (
        'Apply failed with 3 conflicts: conflicts with "kubelet" using v1:\n- .data.c\n'
        'conflicts with "one":\n- .data.a\n- .data.b'
    )


def test_force_takes_the_fields() -> None:
    applied = CONFIG_MAPS.apply(
        live_config_map({"a": "1", "b": "1"}), config_map(data={"a": "2"}), "two", T2, force=True
    )
    assert applied.obj is not None
    assert applied.obj["data"] == {"a": "2", "b": "1"}
    assert shown(applied.entries) == {"one": {"f:data": {"f:b": {}}}, "two": {"f:data": {"f:a": {}}}}


def test_items_are_merged_by_key_and_unowned_ones_removed() -> None:
    container = {"name": "c", "image": "one", "ports": [{"containerPort": 80}, {"containerPort": 9}]}
    selector = {"matchLabels": {"a": "b"}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    live = stored(
        APPS["Deployment"],
        DEPLOYMENTS.apply(APPS["Deployment"](), deployment({"selector": selector, "template": template}), "one", T1),
    )
    two = {"template": {"spec": {"containers": [{"name": "side", "image": "x"}, {"name": "c", "tty": True}]}}}
    live = stored(APPS["Deployment"], DEPLOYMENTS.apply(live, deployment(two), "two", T1))
    container["ports"] = [{"containerPort": 9}]
    applied = DEPLOYMENTS.apply(live, deployment({"selector": selector, "template": template}), "one", T2)
    assert applied.obj is not None
    assert applied.obj["spec"]["template"]["spec"]["containers"] == [
        {"name": "side", "image": "x", "resources": {}},
        {"name": "c", "image": "one", "ports": [{"containerPort": 9}], "resources": {}, "tty": True},
    ]


def test_what_is_of_one_piece_is_replaced_as_a_whole() -> None:
    pods = Applier(FieldManager(built_in(CORE["Pod"])))

    def patch(*args: str) -> dict[str, Any]:
        containers = [{"name": "c", "image": "i", "args": list(args)}]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}}

    live = stored(CORE["Pod"], pods.apply(CORE["Pod"](), patch("a", "b"), "one", T1))
    with pytest.raises(StatusError, match=r'conflict with "one": .spec.containers\[name="c"\].args'):
        pods.apply(live, patch("c"), "two", T2)
    applied = pods.apply(live, patch("c"), "two", T2, force=True)
    assert applied.obj is not None
    assert applied.obj["spec"]["containers"][0]["args"] == ["c"]
    empty = pods.apply(live, patch(), "one", T2)
    assert empty.obj is not None
    assert empty.obj["spec"]["containers"][0]["args"] == []


def test_an_empty_value_of_something_made_of_parts_takes_nothing_away() -> None:
    live = live_config_map({"a": "1"})
    applied = CONFIG_MAPS.apply(live, config_map(data={}), "two", T2)
    assert applied.obj is None
    assert shown(applied.entries) == {"one": {"f:data": {"f:a": {}}}, "two": {"f:data": {}}}


def test_the_first_apply_leaves_the_rest_to_whoever_was_before() -> None:
    live = from_plain(CORE["ConfigMap"], {"metadata": {"name": "a"}, "data": {"a": "1", "b": "1"}})
    applied = CONFIG_MAPS.apply(live, config_map(data={"a": "1", "c": "1"}), "one", T2)
    assert shown(applied.entries) == {
        "one": {"f:data": {"f:a": {}, "f:c": {}}},
        "before-first-apply": {"f:data": {".": {}, "f:a": {}, "f:b": {}}},
    }


def test_kubectl_takes_over_what_it_applied_on_the_clients_side() -> None:
    last = json.dumps(config_map(data={"a": "1"}))
    live: Any = from_plain(
        CORE["ConfigMap"], {"metadata": {"name": "a", "annotations": {ANNOTATION: last}}, "data": {"a": "1"}}
    )
    live.metadata.managed_fields = CONFIG_MAPS.fields.create(live, "kubectl-client-side-apply", T1)
    patch = config_map(data={"a": "2"})
    with pytest.raises(StatusError):
        CONFIG_MAPS.apply(live, patch, "other", T2)
    applied = CONFIG_MAPS.apply(live, patch, "kubectl", T2)
    assert applied.obj is not None
    assert applied.obj["data"] == {"a": "2"}
    assert json.loads(applied.obj["metadata"]["annotations"][ANNOTATION]) == patch
    live.data["a"] = "9"
    with pytest.raises(StatusError, match=r"conflict with \"kubectl-client-side-apply\" using v1: .data.a"):
        CONFIG_MAPS.apply(live, patch, "kubectl", T2)


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        ({}, 400, "invalid object type: /, Kind="),
        ({"kind": "ConfigMap"}, 400, "invalid object type: /, Kind=ConfigMap"),
        ({"kind": "Secret", "apiVersion": "v1"}, 400, "invalid object type: /v1, Kind=Secret"),
        (config_map(metadata={"managedFields": [{}]}), 400, "metadata.managedFields must be nil"),
        (
            config_map(data={"n": 5}),
            500,
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .data.n: expected string, "
            "got &value.valueUnstructured{Value:5}",
        ),
        (
            config_map(data=["x"]),
            500,
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .data: expected map, got &{[x]}",
        ),
        (
            config_map(unknown=1),
            500,
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .unknown: field not declared in schema",
        ),
    ],
)
def test_a_patch_that_does_not_fit_is_refused(patch: dict[str, Any], code: int, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        CONFIG_MAPS.apply(CORE["ConfigMap"](), patch, "m", T1)
    assert (refused.value.code, refused.value.message) == (code, message)


@pytest.mark.parametrize(
    ("sent", "kept"), [({}, {}), (None, None), ({"a": None, "b": "1"}, {"a": "", "b": "1"}), ({ANNOTATION: "x"}, {})]
)
def test_the_annotation_says_what_was_applied_without_itself_and_without_nulls(sent: Any, kept: Any) -> None:
    live = from_plain(CORE["ConfigMap"], {"metadata": {"name": "a", "annotations": {ANNOTATION: "{}"}}})
    patch = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "annotations": sent},
        "data": {"a": "1"},
    }
    applied = CONFIG_MAPS.apply(live, patch, "kubectl", T1, force=True)
    assert applied.obj is not None
    metadata = {"name": "a"} if kept is None else {"name": "a", "annotations": kept}
    assert json.loads(applied.obj["metadata"]["annotations"][ANNOTATION]) == {**patch, "metadata": metadata}


def test_two_items_with_one_key_are_refused() -> None:
    services = Applier(FieldManager(built_in(CORE["Service"])))
    patch = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}] * 2}}
    with pytest.raises(StatusError) as refused:
        services.apply(CORE["Service"](), patch, "m", T1)
    assert refused.value.message == (
        "failed to create typed patch object (/s; /v1, Kind=Service): .spec.ports: duplicate entries for key "
        '[port=80,protocol="TCP"]'
    )


def test_sets_of_a_custom_resource_are_merged_in_order() -> None:
    items = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    schema = custom_schema({"type": "object", "properties": {"spec": {"type": "object", "properties": {"s": items}}}})
    applier = Applier(FieldManager(PlainKind(schema)))
    live: dict[str, Any] = {"apiVersion": "e.x/v1", "kind": "Foo", "metadata": {"name": "a"}}
    for manager, elements in (("one", ["b", "a"]), ("two", ["x", "a", "c"])):
        applied = applier.apply(live, {**live, "metadata": {"name": "a"}, "spec": {"s": elements}}, manager, T1)
        assert applied.obj is not None
        entries = json.loads(msgspec.json.encode(applied.entries))
        live = {**applied.obj, "metadata": {**applied.obj["metadata"], "managedFields": entries}}
        live["spec"] = applied.obj["spec"]
    assert live["spec"]["s"] == ["b", "x", "a", "c"]
    applied = applier.apply(live, {"apiVersion": "e.x/v1", "kind": "Foo", "metadata": {"name": "a"}}, "two", T2)
    assert applied.obj is not None
    assert applied.obj["spec"]["s"] == ["b", "a"]
    assert shown(applied.entries) == {"one": {"f:spec": {"f:s": {'v:"a"': {}, 'v:"b"': {}}}}}


def test_who_scales_owns_the_replicas_of_the_parent() -> None:
    paths = {"apps/v1": ("f:spec", "f:replicas")}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}}}
    made = DEPLOYMENTS.fields.create(
        from_plain(APPS["Deployment"], {"metadata": {"name": "d"}, "spec": spec}), "maker", T1
    )
    scale_class = api.load("autoscaling", "v1")["Scale"]
    old: Any = from_plain(scale_class, {"metadata": {"name": "d", "uid": "u"}, "spec": {"replicas": 1}})
    old.metadata.managed_fields = to_scale(made, paths)
    assert shown(old.metadata.managed_fields) == {"maker": {"f:spec": {"f:replicas": {}}}}
    new = from_plain(scale_class, {"metadata": {"name": "d", "uid": "u"}, "spec": {"replicas": 5}})
    scaled = FieldManager(built_in(scale_class), "scale").update(new, old, "scaler", T2)
    after = to_parent(made, scaled, "apps/v1", paths)
    # The scaler's entry has no time, as upstream leaves it.
    assert [(each.manager, each.api_version, each.subresource, each.time) for each in after] == [
        ("scaler", "apps/v1", "scale", None),
        ("maker", "apps/v1", "", T1),
    ]
    assert shown(after)["scaler"] == {"f:spec": {"f:replicas": {}}}
    assert "f:replicas" not in shown(after)["maker"]["f:spec"]
