"""Ownership as writes that are not applies change it."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from steersman import api
from steersman.api.meta.v1 import ManagedFieldsEntry
from steersman.kinds.built_in import built_in
from steersman.machinery.codec.serializer import deep_copy, from_plain
from steersman.machinery.managed_fields import FieldManager, custom_schema, fields_at, manager_name
from steersman.machinery.managed_fields.requests import differ_in_times_only
from tests.machinery.managed_fields.plain_kind import PlainKind

CORE = api.load("", "v1")
CONFIG_MAP = CORE["ConfigMap"]
FIELDS = FieldManager(built_in(CONFIG_MAP))
T1, T2 = "2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z"


def config_map(data: dict[str, str], entries: list[ManagedFieldsEntry] | None = None, **metadata: Any) -> Any:
    obj: Any = from_plain(CONFIG_MAP, {"metadata": {"name": "c", "uid": "u", **metadata}, "data": data})
    obj.metadata.managed_fields = entries or []
    return obj


def shown(entries: list[ManagedFieldsEntry]) -> dict[str, Any]:
    return {entry.manager: msgspec.json.decode(entry.fields_v1 or b"null") for entry in entries}


def entry(manager: str, fields: Any, **more: Any) -> ManagedFieldsEntry:
    values = {"operation": "Update", "api_version": "v1", "fields_type": "FieldsV1"} | more
    return ManagedFieldsEntry(manager=manager, fields_v1=msgspec.Raw(json.dumps(fields).encode()), **values)


def test_the_maker_owns_all_but_what_identifies_the_object() -> None:
    obj = config_map({"a": "1"}, labels={"x": "y"}, resourceVersion="3", generation=2, creationTimestamp=T1)
    [made] = FIELDS.create(obj, "maker", T1)
    assert (made.manager, made.operation, made.api_version, made.time, made.fields_type, made.subresource) == (
        "maker",
        "Update",
        "v1",
        T1,
        "FieldsV1",
        "",
    )
    assert bytes(made.fields_v1 or b"") == (b'{"f:data":{".":{},"f:a":{}},"f:metadata":{"f:labels":{".":{},"f:x":{}}}}')


def test_an_object_without_fields_to_own_has_no_entries() -> None:
    assert FIELDS.create(config_map({}), "maker", T1) == []


def test_a_writer_without_a_name_is_unknown() -> None:
    assert FIELDS.create(config_map({"a": "1"}), "", T1)[0].manager == "unknown"


def test_who_changes_a_field_takes_it_and_the_time_of_others_stays() -> None:
    made = FIELDS.create(config_map({"a": "1", "b": "1"}), "maker", T1)
    entries = FIELDS.update(config_map({"a": "2", "b": "1"}), config_map({"a": "1", "b": "1"}, made), "changer", T2)
    assert shown(entries) == {
        "maker": {"f:data": {".": {}, "f:b": {}}},
        "changer": {"f:data": {"f:a": {}}},
    }
    assert [each.time for each in entries] == [T1, T2]


def test_a_write_that_changes_nothing_leaves_the_entries_as_they_are() -> None:
    made = FIELDS.create(config_map({"a": "1"}), "maker", T1)
    entries = FIELDS.update(config_map({"a": "1"}, made), config_map({"a": "1"}, made), "other", T2)
    assert entries == made


def test_who_removes_a_field_owns_nothing_of_it() -> None:
    made = FIELDS.create(config_map({"a": "1", "b": "1"}), "maker", T1)
    entries = FIELDS.update(config_map({"b": "1"}), config_map({"a": "1", "b": "1"}, made), "remover", T2)
    assert shown(entries) == {"maker": {"f:data": {".": {}, "f:b": {}}}}


def test_a_manager_that_is_left_with_nothing_is_gone() -> None:
    made = FIELDS.create(config_map({"a": "1"}), "maker", T1)
    entries = FIELDS.update(config_map({}, labels={"x": "y"}), config_map({"a": "1"}, made), "other", T2)
    assert shown(entries) == {"other": {"f:metadata": {"f:labels": {".": {}, "f:x": {}}}}}


def test_an_object_without_entries_stays_without_them() -> None:
    assert FIELDS.update(config_map({"a": "2"}), config_map({"a": "1"}), "other", T2) == []


def test_one_empty_entry_forgets_all_managers() -> None:
    made = FIELDS.create(config_map({"a": "1"}), "maker", T1)
    old = config_map({"a": "1"}, made)
    assert FIELDS.update(config_map({"a": "2"}, [ManagedFieldsEntry()]), old, "other", T2) == []


def test_entries_that_cannot_be_read_are_ignored() -> None:
    made = FIELDS.create(config_map({"a": "1"}), "maker", T1)
    for bad in (
        entry("x", {"z": {}}),
        entry("x", {}, operation="Patch"),
        entry("x", {}, api_version=""),
        entry("x", {}, fields_type=""),
        entry("x", {}, fields_type="FieldsV2"),
    ):
        entries = FIELDS.update(config_map({"a": "1"}, [bad]), config_map({"a": "1"}, made), "other", T2)
        assert entries == made


def test_entries_of_the_request_count_but_not_on_a_subresource() -> None:
    made = FIELDS.create(config_map({"a": "1"}), "maker", T1)
    sent = [entry("sent", {"f:data": {"f:a": {}}})]
    assert shown(FIELDS.update(config_map({"a": "1"}, sent), config_map({"a": "1"}, made), "other", T2)) == {
        "sent": {"f:data": {"f:a": {}}}
    }
    status = FieldManager(built_in(CONFIG_MAP), "status")
    assert status.update(config_map({"a": "1"}, sent), config_map({"a": "1"}, made), "other", T2) == made


def test_entries_of_an_object_to_create_are_kept_and_those_of_unknown_versions_dropped() -> None:
    # As kube-apiserver answered it.
    sent = [
        entry("own", {"f:data": {"f:x": {}, "f:z": {}}}, operation="Apply"),
        entry("gone", {"f:data": {"f:x": {}, "f:q": {}}}, api_version="v9"),
    ]
    entries = FIELDS.create(config_map({"z": "2"}, sent), "maker", T1)
    assert shown(entries) == {"own": {"f:data": {"f:x": {}}}, "maker": {"f:data": {".": {}, "f:z": {}}}}
    assert [each.time for each in entries] == [None, T1]


def test_updaters_beyond_ten_become_ancient_changes() -> None:
    data = {f"k{i}": "1" for i in range(14)}
    old = config_map(data, FIELDS.create(config_map(data), "creator", T1))
    for i in range(13):
        new = config_map({**old.data, f"k{i}": "2"})
        new.metadata.managed_fields = FIELDS.update(new, old, f"m{i}", T1)
        old = new
    entries = old.metadata.managed_fields
    assert [each.manager for each in entries] == [
        "ancient-changes",
        "m12",
        "m2",
        "m3",
        "m4",
        "m5",
        "m6",
        "m7",
        "m8",
        "m9",
    ]
    assert shown(entries)["ancient-changes"] == {
        "f:data": {".": {}, "f:k0": {}, "f:k1": {}, "f:k10": {}, "f:k11": {}, "f:k13": {}}
    }


def test_appliers_come_first_then_the_oldest() -> None:
    sent = [
        entry("b", {"f:data": {"f:a": {}}}, time=T2),
        entry("c", {"f:data": {"f:a": {}}}, time=T1),
        entry("z", {"f:data": {"f:a": {}}}, time=T2, operation="Apply"),
    ]
    entries = FIELDS.update(config_map({"a": "1"}, sent), config_map({"a": "1"}), "other", T2)
    assert [each.manager for each in entries] == ["z", "c", "b"]


def env_pod(*env: tuple[str, str]) -> Any:
    spec = {"containers": [{"name": "a", "image": "i", "env": [{"name": name, "value": value} for name, value in env]}]}
    return from_plain(CORE["Pod"], {"metadata": {"name": "p", "uid": "u"}, "spec": spec})


def env_of(entries: list[ManagedFieldsEntry], manager: str) -> Any:
    return shown(entries)[manager]["f:spec"]["f:containers"]['k:{"name":"a"}']["f:env"]


def test_items_that_cannot_be_told_apart_are_owned_together() -> None:
    # As kube-apiserver answered it.
    fields = FieldManager(built_in(CORE["Pod"]))
    whole: dict[str, Any] = {".": {}, "f:name": {}, "f:value": {}}
    steps = [
        (("X", "1"), ("X", "2"), ("Y", "2")),
        (("X", "1"), ("X", "3"), ("Y", "2")),
        (("X", "1"), ("Y", "2")),
        (("Y", "7"), ("X", "1"), ("Y", "2")),
    ]
    pod = env_pod(*steps[0])
    pod.metadata.managed_fields = fields.create(pod, "q", T1)
    assert env_of(pod.metadata.managed_fields, "q") == {".": {}, 'k:{"name":"X"}': {}, 'k:{"name":"Y"}': whole}
    seen = []
    for number, step in enumerate(steps[1:]):
        new = env_pod(*step)
        new.metadata.managed_fields = fields.update(new, pod, f"e{number}", T1)
        pod = new
        seen.append(
            {each.manager: env_of(pod.metadata.managed_fields, each.manager) for each in pod.metadata.managed_fields}
        )
    rest = {".": {}, 'k:{"name":"Y"}': whole}
    assert seen[0] == {"e0": {'k:{"name":"X"}': {}}, "q": rest}
    assert seen[1] == {"e1": {'k:{"name":"X"}': whole}, "q": rest}
    assert seen[2] == {"e1": {'k:{"name":"X"}': whole}, "e2": {'k:{"name":"Y"}': {}}, "q": {}}


def test_an_object_that_does_not_fit_its_schema_has_no_entries() -> None:
    account = from_plain(CORE["ServiceAccount"], {"metadata": {"name": "s"}, "secrets": [{"namespace": "no name"}]})
    assert FieldManager(built_in(CORE["ServiceAccount"])).create(account, "q", T1) == []


def test_what_the_strategy_resets_is_owned_by_nobody() -> None:
    fields = FieldManager(built_in(CORE["Pod"]), resets={"v1": fields_at("status", "metadata/labels")})
    pod = env_pod()
    pod.status.phase = "Running"
    pod.metadata.labels = {"a": "b"}
    assert set(shown(fields.create(pod, "q", T1))["q"]) == {"f:spec"}


def test_a_custom_resource_goes_by_its_own_schema() -> None:
    listed = {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}
    schema = custom_schema(
        {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": {
                        "m": {
                            "type": "array",
                            "items": listed,
                            "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["k"],
                        },
                        "s": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                        "a": {"type": "array", "items": {"type": "string"}},
                        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        "whole": {
                            "type": "object",
                            "x-kubernetes-map-type": "atomic",
                            "properties": {"x": {"type": "string"}},
                        },
                    },
                }
            },
        }
    )
    spec = {
        "m": [{"k": "z", "v": 1}, {"k": "a"}],
        "s": ["b", "a"],
        "a": ["x"],
        "free": {"q": {"r": [1]}},
        "whole": {"x": "1"},
    }
    metadata = {"name": "a", "labels": {"l": "1"}}
    obj = {"apiVersion": "e.x/v1", "kind": "Foo", "metadata": metadata, "spec": spec}
    fields = FieldManager(PlainKind(schema))
    entries = fields.create(obj, "q", T1)
    assert bytes(entries[0].fields_v1 or b"").decode() == (
        '{"f:metadata":{"f:labels":{".":{},"f:l":{}}},"f:spec":{".":{},"f:a":{},"f:free":{".":{},"f:q":{".":{},"f:r":{}}},'
        '"f:m":{".":{},"k:{\\"k\\":\\"a\\"}":{".":{},"f:k":{}},"k:{\\"k\\":\\"z\\"}":{".":{},"f:k":{},"f:v":{}}},'
        '"f:s":{".":{},"v:\\"a\\"":{},"v:\\"b\\"":{}},"f:whole":{}}}'
    )
    old = {**obj, "metadata": {**metadata, "managedFields": json.loads(msgspec.json.encode(entries))}}
    new = json.loads(json.dumps({**old, "spec": {**spec, "s": ["b"], "free": {"q": {"r": [2]}}}}))
    after = shown(fields.update(new, old, "r", T2))
    assert after["r"] == {"f:spec": {"f:free": {"f:q": {"f:r": {}}}}}
    assert after["q"]["f:spec"]["f:s"] == {".": {}, 'v:"b"': {}}


def test_a_part_that_is_of_one_piece_now_is_owned_as_such() -> None:
    sent = [entry("old", {"f:data": {"f:a": {}}, "f:metadata": {"f:ownerReferences": {}}, "f:immutable": {"f:x": {}}})]
    spec = {"selector": {"a": "b"}}
    service: Any = from_plain(CORE["Service"], {"metadata": {"name": "s", "uid": "u"}, "spec": spec})
    service.metadata.managed_fields = [entry("old", {"f:spec": {"f:selector": {".": {}, "f:a": {}}}})]
    fields = FieldManager(built_in(CORE["Service"]))
    assert shown(fields.update(deep_copy(service), service, "x", T1)) == {"old": {"f:spec": {"f:selector": {}}}}
    assert shown(FIELDS.update(config_map({}, sent), config_map({}), "x", T1)) == {
        "old": {"f:data": {"f:a": {}}, "f:metadata": {"f:ownerReferences": {}}, "f:immutable": {"f:x": {}}}
    }


def test_a_manager_is_named_by_the_user_agent_up_to_a_slash() -> None:
    assert manager_name("", "kubectl/v1.36 (linux)") == "kubectl"
    assert manager_name("mine", "kubectl/v1.36") == "mine"
    assert manager_name("", "a\x00b\tc") == "abc"
    assert manager_name("", "é" * 100) == "é" * 64
    assert manager_name("", "") == ""


def test_only_times_differ() -> None:
    a, b = entry("m", {"f:a": {}}, time=T1), entry("m", {"f:a": {}}, time=T2)
    assert differ_in_times_only([b], [a])
    assert not differ_in_times_only([a], [a])
    assert not differ_in_times_only([b, b], [a])
    assert not differ_in_times_only([entry("m", {"f:b": {}}, time=T2)], [a])


def test_the_managers_in_a_template_are_a_field_like_any_other() -> None:
    kind = CORE["PodTemplate"]
    fields = FieldManager(built_in(kind))
    template = {"metadata": {"managedFields": [{"manager": "of nothing"}]}}
    obj: Any = from_plain(kind, {"metadata": {"managedFields": [{"manager": "me"}]}, "template": template})
    owned: dict[str, Any] = {"f:template": {"f:metadata": {"f:managedFields": {}}}}
    obj.metadata.managed_fields = fields.create(obj, "maker", T1)
    assert shown(obj.metadata.managed_fields) == {"maker": owned}
    changed = deep_copy(obj)
    changed.template.metadata.managed_fields = [ManagedFieldsEntry(manager="of something")]
    assert shown(fields.update(changed, obj, "changer", T1))["changer"] == owned
