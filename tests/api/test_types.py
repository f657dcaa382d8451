"""The generated types: every kind goes to JSON and back, omits what Go omits, and takes what a real server sent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steersman import api
from steersman.api import scalars, tables
from steersman.api.apiextensions.v1 import JSONSchemaProps
from steersman.api.core.v1 import ConfigMap, Container, Event, Pod, PodSpec, Service, ServicePort
from steersman.api.index import ON_REQUEST
from steersman.api.meta.v1 import ObjectMeta
from steersman.kinds.built_in import classes_of
from steersman.machinery.codec.serializer import decode_json, encode, from_plain, to_plain
from steersman.machinery.identity.schema import GroupVersionKind, parse_group_version
from tests import ROOT

DATA = Path(__file__).with_name("recorded_objects.json")
VECTORS = ROOT.parent / "shared" / "vectors" / "encodings.json"

KINDS = [
    (GroupVersionKind(group, version, kind), cls)
    for group, version in api.MODULES
    for kind, cls in api.load(group, version).items()
]

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6)
QUANTITIES = st.sampled_from(["0", "1", "500m", "1Gi", "1e3", "10k"])
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    scalars.Quantity: QUANTITIES,
    scalars.Time: st.sampled_from(["2024-02-29T12:00:00Z", "1999-12-31T23:59:59Z"]),
    scalars.MicroTime: st.just("2024-02-29T12:00:00.123456Z"),
    scalars.Duration: st.sampled_from(["0s", "1h0m0s", "1.5s"]),
    scalars.Float64: st.sampled_from([0, 1, -5, 0.5, 1e-7, 123456789]),
    msgspec.Raw: st.sampled_from([msgspec.Raw(b'{"b":1,"a":[]}'), msgspec.Raw(b'"x"')]),
    str: TEXT,
    bool: st.booleans(),
    int: st.integers(-(2**31), 2**31 - 1),
    float: st.just(0.5),
    bytes: st.binary(max_size=5),
    Any: st.sampled_from([None, 1, "x", {"a": [True]}, []]),
}


def values_of(annotation: Any, depth: int) -> st.SearchStrategy[Any]:
    """Values that a member of this type can have, shallower with each level."""
    if annotation in SCALARS:
        return SCALARS[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is list:
        return st.lists(values_of(arguments[0], depth + 1), max_size=1 if depth > 1 else 2)
    if origin is dict:
        return st.dictionaries(TEXT, values_of(arguments[1], depth + 1), max_size=2)
    if origin is not None and hasattr(annotation, "__metadata__"):
        return values_of(arguments[0], depth)
    if arguments:
        return st.one_of([st.none() if each is type(None) else values_of(each, depth) for each in arguments])
    return objects_of(annotation, depth + 1)


def objects_of(cls: type[msgspec.Struct], depth: int = 0) -> st.SearchStrategy[Any]:
    """Objects of a class with a few of their members set."""
    fields = {field.name: field for field in msgspec.structs.fields(cls)}
    if depth > 4:
        return st.builds(cls)

    def filled(names: list[str]) -> st.SearchStrategy[Any]:
        return st.builds(cls, **{name: values_of(fields[name].type, depth) for name in names})

    return (
        st.lists(st.sampled_from(sorted(fields)), max_size=4, unique=True).flatmap(filled) if fields else st.builds(cls)
    )


@pytest.mark.parametrize(("gvk", "cls"), KINDS, ids=str)
def test_every_kind_is_the_same_after_json_and_back(gvk: GroupVersionKind, cls: type[msgspec.Struct]) -> None:
    @settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(objects_of(cls))
    def check(obj: msgspec.Struct) -> None:
        data = encode(obj)
        again = decode_json(cls, data)
        assert encode(again) == data
        assert from_plain(cls, to_plain(obj)) == again

    check()


def test_all_group_versions_served_by_default_are_there() -> None:
    assert len(api.SERVED) == 22
    assert set(api.SERVED) <= set(api.MODULES)
    assert len(ON_REQUEST) == 10
    assert set(ON_REQUEST) <= set(api.MODULES)


def test_zero_values_are_omitted_exactly_where_go_omits_them() -> None:
    assert encode(Pod()) == b'{"metadata":{},"spec":{"containers":null},"status":{}}'
    assert encode(ServicePort(port=80)) == b'{"port":80,"targetPort":0}'
    assert encode(Container(name="c")) == b'{"name":"c","resources":{}}'
    assert encode(ObjectMeta(labels={}, finalizers=[], generation=0)) == b"{}"
    assert encode(Event()).startswith(b'{"metadata":{},"involvedObject":{},"source":{},"firstTimestamp":null')
    assert encode(PodSpec(containers=[], host_network=False, priority=0)) == b'{"containers":[],"priority":0}'


def test_wire_names_keep_their_acronyms() -> None:
    service = decode_json(Service, b'{"spec":{"clusterIP":"None","externalIPs":["1.2.3.4"]}}')
    assert service.spec.cluster_ip == "None"
    assert service.spec.external_ips == ["1.2.3.4"]
    schema = decode_json(JSONSchemaProps, b'{"$ref":"a","x-kubernetes-int-or-string":true,"not":{"items":[{}]}}')
    assert schema.ref == "a"
    assert schema.x_kubernetes_int_or_string
    assert schema.not_ == JSONSchemaProps(items=[JSONSchemaProps()])


@pytest.mark.parametrize("value", [b"2147483648", b'"1"', b"1.5"])
def test_an_int32_takes_no_more_than_go_lets_it(value: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_json(Container, b'{"ports":[{"containerPort":' + value + b"}]}")


def test_an_unknown_member_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_json(ConfigMap, b'{"dat":{}}')


def recorded() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DATA.read_bytes())
    if VECTORS.is_file():
        found += [each["json"] for each in json.loads(VECTORS.read_bytes())["objects"] if each["json"]]
    return found


def test_objects_of_a_real_server_are_read_and_written_without_a_difference() -> None:
    objects = recorded()
    assert len(objects) >= 15
    for plain in objects:
        cls = classes_of(*parse_group_version(plain["apiVersion"]))[plain["kind"]]
        assert to_plain(from_plain(cls, plain)) == plain


def test_tables_know_every_member_of_every_class() -> None:
    def attributes(module: str, name: str) -> set[str]:
        found = set()
        for each in tables.table(module).structs[name]:
            if each.inline:
                package, version, embedded = each.type.split(".")
                found |= attributes(f"{package}.{version}", embedded)
            elif each.attribute:
                found.add(each.attribute)
        return found

    for _, cls in KINDS:
        assert attributes(tables.module_of(cls), cls.__name__) == set(cls.__struct_fields__)


def test_tables_have_patch_strategies_list_types_and_tags() -> None:
    containers = next(each for each in tables.fields_of(PodSpec) if each.name == "containers")
    assert (containers.strategy, containers.key, containers.list, containers.keys) == (
        "merge",
        "name",
        "map",
        ("name",),
    )
    assert (containers.tag, containers.wire, containers.type) == (2, "bytes,rep", "[]core.v1.Container")
    assert tables.table("meta.v1").map_types["LabelSelector"] == "atomic"


def test_importing_the_package_imports_no_types() -> None:
    script = (
        "import sys, steersman.api as api; assert not any('.v1' in name for name in sys.modules);"
        "api.load('node.k8s.io', 'v1'); assert 'steersman.api.apps.v1' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)
