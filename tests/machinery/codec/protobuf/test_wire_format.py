"""Protobuf documents against those of the reference server, and against the rules of the wire format."""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import random
import types
import typing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman import api
from steersman.api import scalars, tables
from steersman.api.apiextensions.v1 import JSONSchemaProps
from steersman.api.apps.v1 import Deployment
from steersman.api.core.v1 import (
    ConfigMap,
    Container,
    ContainerPort,
    EnvVar,
    EnvVarSource,
    List,
    Pod,
    PodSpec,
    Probe,
    Secret,
    Service,
    ServicePort,
    ServiceSpec,
    TCPSocketAction,
)
from steersman.api.meta.v1 import ListMeta, ManagedFieldsEntry, ObjectMeta, Status, Table
from steersman.api.resource.v1 import DeviceAttribute
from steersman.kinds.built_in import classes_of
from steersman.machinery.codec import serializer
from steersman.machinery.codec.protobuf import documents as protobuf
from steersman.machinery.codec.serializer import decode_json, from_plain, to_plain
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.schema import GroupVersionKind

VECTORS = json.loads(Path(__file__).with_name("recorded_documents.json").read_bytes())
OBJECTS = [pytest.param(each, id=f"{each['kind']}.{each['version']}.{each['group']}") for each in VECTORS["objects"]]
VARIANTS = [pytest.param(each, id=each["name"].replace(" ", "-")) for each in VECTORS["variants"]]
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")


def class_of(data: Any) -> Any:
    group, _, version = data["apiVersion"].rpartition("/")
    return classes_of(group, version)[data["kind"]]


def object_of(data: Any) -> Any:
    return decode_json(class_of(data), json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode())


def gvk_of(data: Any) -> Any:
    group, _, version = data["apiVersion"].rpartition("/")
    return GroupVersionKind(group, version, data["kind"])


def without_item_kinds(data: Any) -> Any:
    return data | {
        "items": [{k: v for k, v in item.items() if k not in ("kind", "apiVersion")} for item in data["items"]]
    }


@pytest.mark.parametrize("vector", OBJECTS + VARIANTS)
def test_a_document_of_the_reference_server_is_read_as_its_json_says(vector: Any) -> None:
    document = base64.b64decode(vector["protobuf_base64"])
    obj = protobuf.decode_object(class_of(vector["json"]), document)
    expected = to_plain(object_of(vector["json"]))
    if "items" in expected:
        expected = without_item_kinds(expected)
    assert to_plain(obj) == expected


@pytest.mark.parametrize("vector", OBJECTS + VARIANTS)
def test_an_object_is_written_byte_for_byte_as_the_reference_server_does(vector: Any) -> None:
    assert protobuf.encode(object_of(vector["json"]), gvk_of(vector["json"])) == base64.b64decode(
        vector["protobuf_base64"]
    )


def test_a_list_is_joined_out_of_its_items() -> None:
    vector = next(each for each in VECTORS["objects"] if each["kind"] == "ConfigMapList")
    found = object_of(vector["json"])
    items = [protobuf.list_item(protobuf.encode_body(item)) for item in found.items]
    message = b"".join([protobuf.list_head(found.metadata), *items])
    assert protobuf.envelope(message, gvk_of(vector["json"])) == base64.b64decode(vector["protobuf_base64"])


def test_a_watch_stream_is_framed_as_the_reference_server_does() -> None:
    expected = base64.b64decode(VECTORS["watch"]["protobuf_base64"])
    events = VECTORS["watch"]["json"]
    events = [json.loads(line) for line in events.splitlines()] if isinstance(events, str) else events
    frames = [
        protobuf.frame(event["type"].encode(), protobuf.encode(object_of(event["object"]), gvk_of(event["object"])))
        for event in events
    ]
    assert b"".join(frames) == expected


SERVED = [
    pytest.param(cls, id=f"{version}.{kind}.{group}")
    for group, version in api.SERVED
    for kind, cls in api.load(group, version).items()
] + [pytest.param(cls, id=cls.__name__) for cls in (JSONSchemaProps, DeviceAttribute, PodSpec)]


@functools.cache
def hints_of(cls: Any) -> Any:
    """Return the types of the members of a class by name."""
    return typing.get_type_hints(cls, include_extras=True)


@functools.cache
def wire_names(cls: Any) -> Any:
    """The members of a class that are in its message, those of embedded structs among them."""
    rows = list(tables.fields_of(cls))
    names = set()
    while rows:
        row = rows.pop()
        if row.inline and row.tag:
            module, _, name = row.type.rpartition(".")
            rows += tables.table(module).structs[name]
        elif row.tag:
            names.add(row.attribute)
    return names


class Generator(random.Random):
    """Draws objects of at most some hundred structs."""

    structs_left = 150

    def object(self, cls: Any, depth: Any = 0) -> Any:
        self.structs_left -= 1
        chance = (0.9, 0.9, 0.6, 0.4)[depth] if depth < 4 else 0.2
        hints = hints_of(cls)
        names = [name for name in sorted(wire_names(cls)) if self.random() < chance and self.structs_left > 0]
        return cls(**{name: self.value(hints[name], depth + 1) for name in names})

    def value(self, hint: Any, depth: Any) -> Any:
        if hint in SCALARS:
            return self.choice(SCALARS[hint])
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin in (typing.Union, types.UnionType):
            return self.value(self.choice([each for each in arguments if each is not types.NoneType]), depth)
        if origin is list:
            return [self.value(arguments[0], depth) for _ in range(self.randint(1, 3))]
        if origin is dict:
            return {self.choice(SCALARS[str]): self.value(arguments[1], depth) for _ in range(self.randint(1, 3))}
        return self.object(hint, depth)


SCALARS = {
    scalars.Quantity: ("1", "500m", "1Gi", "0", "-3"),
    scalars.Time: ("2026-11-21T08:32:04Z", "1969-12-31T23:59:59Z", "0001-01-01T00:00:01Z", "9999-12-31T23:59:59Z"),
    scalars.MicroTime: ("2026-11-21T08:32:04.000001Z", "1969-12-31T23:59:59.999999Z"),
    scalars.Duration: ("1h0m0s", "-1.5s", "0s", "1ns"),
    scalars.Float64: (0, 1, -2.5, 1e300),
    str: ("", "a", "é漢", "x" * 200, "a\0b"),
    bool: (True, False),
    bytes: (b"a", b"\xff" * 130),
    msgspec.Raw: (msgspec.Raw(b'{"a":[1,"b c",null]}'), msgspec.Raw(b"[]"), msgspec.Raw(b'"\xc3\xa9"')),
    scalars.Int32: (0, 1, 127, 128, 2**31 - 1, -1, -(2**31)),
    scalars.Int64: (0, 300, 2**63 - 1, -1, -(2**63)),
    typing.Any: ({"b": 1, "a": [True, None]}, "text", 1.5, 0, False),
}


@pytest.mark.parametrize("cls", SERVED)
def test_every_kind_is_read_as_it_was_written(cls: Any) -> None:
    for seed in range(8):
        obj = Generator(f"{seed}{cls.__qualname__}").object(cls)
        again = protobuf.decode(cls, protobuf.encode_body(obj))
        assert to_plain(again) == to_plain(obj)
        assert again == obj or "Raw" in repr(obj)


@pytest.mark.parametrize("cls", SERVED)
def test_stored_json_becomes_the_message_its_object_would(cls: Any) -> None:
    texts = [serializer.encode(Generator(f"{seed}{cls.__qualname__}").object(cls)) for seed in range(8)]
    for text in texts + texts[:2]:  # the second time parts of it are known
        assert protobuf.transcode(cls, text) == protobuf.encode_body(decode_json(cls, text))


@pytest.mark.parametrize(
    "text", [b'{"metadata":[]}', b'{"metadata":{"name":1}}', b'{"spec":{"containers":[{"name":true}]}}']
)
def test_stored_json_of_other_types_is_refused(text: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        protobuf.transcode(Pod, text)


@pytest.fixture(scope="module")
def pod_message() -> Any:
    vector = next(each for each in VECTORS["objects"] if each["kind"] == "Pod")
    return protobuf.decode_envelope(base64.b64decode(vector["protobuf_base64"])).raw


@given(data=st.data())
def test_broken_data_are_refused_and_never_break_the_reader(pod_message: Any, data: Any) -> None:
    broken = bytearray(pod_message[: data.draw(st.integers(0, len(pod_message)))])
    for _ in range(data.draw(st.integers(0, 5))):
        if broken:
            broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    try:
        obj = protobuf.decode(Pod, bytes(broken))
    except protobuf.DecodeError:
        return
    assert to_plain(protobuf.decode(Pod, protobuf.encode_body(obj))) == to_plain(obj)


@given(st.binary(max_size=60), st.sampled_from([Pod, Secret, Status, List]))
def test_any_bytes_are_read_or_refused(data: Any, cls: Any) -> None:
    for read in (protobuf.decode, lambda cls, data: protobuf.decode_object(cls, protobuf.PREFIX + data)):
        with contextlib.suppress(protobuf.DecodeError):
            to_plain(read(cls, data))


def test_a_truncated_message_is_refused_at_every_length_that_cuts_a_field() -> None:
    message = protobuf.encode_body(ConfigMap(data={"a": "b" * 200}))
    readable = [size for size in range(len(message) + 1) if is_readable(ConfigMap, message[:size])]
    assert readable == [0, len(protobuf.encode_body(ConfigMap())), len(message)]
    with pytest.raises(protobuf.DecodeError, match="unexpected EOF"):
        protobuf.decode(ConfigMap, message[:-1])


def is_readable(cls: Any, data: Any) -> Any:
    try:
        protobuf.decode(cls, data)
    except protobuf.DecodeError:
        return False
    return True


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x08\x01", "proto: wrong wireType = 0 for field ObjectMeta"),
        (b"\x22\x00", "proto: wrong wireType = 2 for field Immutable"),
        (b"\x0a\x02\x08\x01", "proto: wrong wireType = 0 for field Name"),
        (b"\x0c", "proto: ConfigMap: wiretype end group for non-group"),
        (b"\x02\x00", "proto: ConfigMap: illegal tag 0 (wire type 2)"),
        (b"\x0f", "proto: wrong wireType = 7 for field ObjectMeta"),
        (b"\x7f", "proto: illegal wireType 7"),
        (b"\x7a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "proto: negative length found during unmarshaling"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "proto: negative length found during unmarshaling"),
        (b"\x20" + b"\xff" * 11, "proto: integer overflow"),
        (b"\x7b\x08\x01\x7b\x7c", "unexpected EOF"),
        (b"\x7b\x0c\x0c", "proto: ConfigMap: wiretype end group for non-group"),
        (b"\x0a\x05\x0a", "unexpected EOF"),
        (b"\x0a\x02\x0a\x05abcdefgh", "unexpected EOF"),
        (b"\x12\x03\x0a\x05ab", "unexpected EOF"),
    ],
)
def test_malformed_messages_are_refused_in_upstreams_words(data: bytes, message: str) -> None:
    with pytest.raises(protobuf.DecodeError) as caught:
        protobuf.decode(ConfigMap, data)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty data"),
        (b"{}", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (b"k8s\0", "empty body"),
        (b"k8s\0\x08\x01", "proto: wrong wireType = 0 for field TypeMeta"),
        (b"k8s\0\x12\x05a", "unexpected EOF"),
    ],
)
def test_malformed_documents_are_refused_in_upstreams_words(data: bytes, message: str) -> None:
    with pytest.raises(protobuf.DecodeError) as caught:
        protobuf.decode_envelope(data)
    assert str(caught.value) == message


def test_an_envelope_tells_the_kind_and_how_its_object_is_encoded() -> None:
    document = protobuf.envelope(b"body", GroupVersionKind("apps", "v1", "Deployment"))
    assert protobuf.decode_envelope(document) == ("apps/v1", "Deployment", b"body", "", "")
    other = document[:-4] + b"\x1a\x04gzip\x22\x10application/json"
    assert protobuf.decode_envelope(other)[3:] == ("gzip", "application/json")


def test_fields_that_are_not_known_are_passed_over() -> None:
    unknown = b"\xf8\x07\x05\xf9\x07abcdefgh\xfa\x07\x02ab\xfb\x07\x08\x01\xfb\x07\xfc\x07\xfc\x07\xfd\x07abcd"
    body = protobuf.encode_body(ConfigMap(data={"a": "b"}))
    assert protobuf.decode(ConfigMap, unknown + body + unknown) == ConfigMap(data={"a": "b"})


def test_repeated_messages_merge_and_of_repeated_values_the_last_one_counts() -> None:
    first = protobuf.encode_body(Pod(metadata=ObjectMeta(name="a", uid="u", finalizers=["x"], labels={"a": "1"})))
    second = b"\x0a\x12" + b"\x0a\x01b\x72\x01y" + b"\x5a\x06\x0a\x01a\x12\x01\x32" + b"\x42\x02\x08\x01"
    pod = protobuf.decode(Pod, first + second + b"\x0a\x00")
    assert (pod.metadata.name, pod.metadata.uid) == ("b", "u")
    assert pod.metadata.finalizers == ["x", "y"]
    assert pod.metadata.labels == {"a": "2"}
    assert pod.metadata.creation_timestamp == "1970-01-01T00:00:01Z"


def test_messages_nested_without_end_are_refused() -> None:
    schema = classes_of("apiextensions.k8s.io", "v1")["CustomResourceDefinition"]
    nested: Any = protobuf.decode(schema, nested_schema(100))
    assert nested.spec.versions[0].schema is not None
    with pytest.raises(protobuf.DecodeError, match="depth"):
        protobuf.decode(schema, nested_schema(5000))


def length_of(body: Any) -> Any:
    out, size = bytearray(), len(body)
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes((*out, size))


def nested_schema(depth: Any) -> Any:
    """A CustomResourceDefinition with schemas nested by `not` (28)."""
    body = b""
    for _ in range(depth):
        body = b"\xe2\x01" + length_of(body) + body
    for key in (b"\x0a", b"\x22", b"\x3a", b"\x12"):  # openAPIV3Schema, schema, versions, spec
        body = key + length_of(body) + body
    return body


def test_packed_numbers_are_read_as_well() -> None:
    container_status = classes_of("", "v1")["Pod"]
    user = b"\x1a\x04\x01\x02\xac\x02\x18\x07"  # LinuxContainerUser.supplementalGroups, packed and not
    body = user
    for key in (b"\x0a", b"\x6a", b"\x42", b"\x1a"):  # linux, user, containerStatuses, status
        body = key + length_of(body) + body
    pod: Any = protobuf.decode(container_status, body)
    assert pod.status.container_statuses[0].user.linux.supplemental_groups == [1, 2, 300, 7]


def test_fields_that_nobody_knows_count_as_objects_do() -> None:
    pod = classes_of("", "v1")["Pod"]
    protobuf.decode(pod, b"\x78\x00" * 30_000)
    with pytest.raises(StatusError, match="limit is 32768 objects"):
        protobuf.decode(pod, b"\x78\x00" * 33_000)


@pytest.mark.parametrize("packed", [(70_000,), (40_000, 40_000), (65_536, 0)])
def test_numbers_of_one_list_are_counted_however_they_come(packed: tuple[Any, ...]) -> None:
    body = b"".join(b"\x1a" + length_of(b"\x01" * count) + b"\x01" * count for count in packed)
    for key in (b"\x0a", b"\x6a", b"\x42", b"\x1a"):  # linux, user, containerStatuses, status
        body = key + length_of(body) + body
    if sum(packed) > 65_536:
        with pytest.raises(StatusError, match="limit is 65536 values"):
            protobuf.decode(classes_of("", "v1")["Pod"], body)
    else:
        protobuf.decode(classes_of("", "v1")["Pod"], body)


def test_numbers_are_cut_to_their_size() -> None:
    port = protobuf.decode(ContainerPort, b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x80\x80\x80\x80\x10")
    assert (port.container_port, port.host_port) == (-1, 0)


def test_text_that_is_not_utf_8_is_read_as_go_prints_it() -> None:
    assert protobuf.decode(ConfigMap, b"\x12\x08\x0a\x01a\x12\x03x\xffy").data == {"a": "x\ufffdy"}


def test_what_go_holds_by_pointer_is_written_when_it_is_set_even_to_zero() -> None:
    service = Service(
        spec=ServiceSpec(ports=[ServicePort(target_port=0), ServicePort(target_port=""), ServicePort(app_protocol="")])
    )
    again = protobuf.decode(Service, protobuf.encode_body(service)).spec.ports
    assert [port.target_port for port in again] == [0, "", 0]
    assert [port.app_protocol for port in again] == [None, None, ""]
    assert protobuf.encode_body(ConfigMap(immutable=False)).endswith(b"\x20\0")
    assert protobuf.encode_body(ConfigMap()).endswith(b"\x1a\0\x22\0\x2a\0\x32\0\x38\0\x42\0")


def test_a_schema_that_allows_nothing_and_a_default_that_is_empty_are_written() -> None:
    schema = JSONSchemaProps(additional_properties=False, additional_items=True, default=0, example="", enum=[None, {}])
    assert protobuf.decode(JSONSchemaProps, protobuf.encode_body(schema)) == schema


def test_members_of_embedded_structs_stand_in_a_message_of_their_own() -> None:
    probe = Probe(tcp_socket=TCPSocketAction(port=80), period_seconds=10)
    assert protobuf.encode_body(probe)[:2] == b"\x0a\x0c"
    env = EnvVar(name="a", value_from=EnvVarSource(config_map_key_ref=from_plain_key()))
    assert protobuf.decode(EnvVar, protobuf.encode_body(env)) == env


def from_plain_key() -> Any:
    source = typing.get_type_hints(EnvVarSource)["config_map_key_ref"]
    cls = next(each for each in typing.get_args(source) if each is not types.NoneType)
    return from_plain(cls, {"name": "n", "key": "k", "optional": False})


def test_raw_json_within_a_message_must_be_json_and_is_kept_without_white_space() -> None:
    def entry(raw: Any) -> Any:
        return b"\x3a" + length_of(b"\x0a" + length_of(raw) + raw) + b"\x0a" + length_of(raw) + raw

    spaced = protobuf.decode(ManagedFieldsEntry, entry(b'{"f:a" : {}}'))
    assert spaced.fields_v1 is not None
    assert bytes(spaced.fields_v1) == b'{"f:a":{}}'
    for bad in (b'{},"x":{}', b"{", b"k8s\0", b"[" * 5000):
        with pytest.raises(protobuf.DecodeError, match="json: error calling MarshalJSON"):
            protobuf.decode(ManagedFieldsEntry, entry(bad))
    with pytest.raises(protobuf.DecodeError, match="RawExtension: unexpected end of JSON input"):
        protobuf.decode(ManagedFieldsEntry, entry(b"{"))


def test_a_quantity_that_cannot_be_read_is_refused() -> None:
    limits = b"\x0a\x09\x0a\x01a\x12\x04\x0a\x02xx"
    with pytest.raises(protobuf.DecodeError, match="quantities must match the regular expression"):
        protobuf.decode(Container, b"\x42" + length_of(limits) + limits)


def test_kinds_without_a_protobuf_form_say_so() -> None:
    with pytest.raises(protobuf.NotMarshalableError) as caught:
        protobuf.encode(Table(), GroupVersionKind("meta.k8s.io", "v1", "Table"))
    assert str(caught.value) == (
        "object *v1.Table does not implement the protobuf marshalling interface and cannot be encoded to a protobuf "
        "message"
    )


def test_an_object_is_not_changed_by_writing_and_shares_nothing_with_what_was_read() -> None:
    deployment = Deployment(metadata=ObjectMeta(name="a"))
    body = protobuf.encode_body(deployment)
    assert protobuf.encode_body(deployment) == body
    one, two = protobuf.decode(Deployment, body), protobuf.decode(Deployment, body)
    one.metadata.labels["a"] = "b"
    assert two.metadata.labels == {}


@pytest.mark.parametrize("length", [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152])
def test_the_length_of_an_item_is_known_before_it_is_made(length: int) -> None:
    assert protobuf.list_item_size(bytes(length)) == len(protobuf.list_item(bytes(length)))


def test_an_empty_list_has_no_items() -> None:
    message = protobuf.list_head(ListMeta(resource_version="7"))
    document = protobuf.envelope(message, CONFIG_MAP._replace(kind="ConfigMapList"))
    found: Any = protobuf.decode_object(classes_of("", "v1")["ConfigMapList"], document)
    assert (found.kind, found.api_version, found.metadata.resource_version) == ("ConfigMapList", "v1", "7")
    assert not found.items


def test_pod_specs_keep_their_containers_in_order() -> None:
    spec = PodSpec(containers=[Container(name=name) for name in "cab"])
    decoded = protobuf.decode(PodSpec, protobuf.encode_body(spec))
    assert [each.name for each in decoded.containers or ()] == ["c", "a", "b"]
