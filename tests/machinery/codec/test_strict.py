"""Reading what clients send. The messages are those kube-apiserver 1.36 gives for the same body."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.apiextensions.v1 import CustomResourceDefinition
from steersman.api.apps.v1 import ControllerRevision, Deployment
from steersman.api.core.v1 import ConfigMap, Event, Pod, Secret, Service
from steersman.machinery.codec.serializer import encode
from steersman.machinery.codec.strict import (
    DecodeError,
    decode_object,
    decode_untyped,
    duplicate_members,
    peek_type_meta,
    strict_error,
)
from steersman.machinery.values.quantity import FORMAT_WRONG

UNKNOWN_SHAPE = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


def read(cls: Any, data: bytes, *, want_strict: bool = True) -> tuple[bytes, list[str]]:
    decoded = decode_object(cls, data, "json", want_strict=want_strict)
    return encode(decoded.obj), decoded.warnings


def test_unknown_and_repeated_members_are_told_by_their_paths_in_the_order_of_the_document() -> None:
    data = (
        b'{"metadata":{"name":"x","name":"y"},"top":1,'
        b'"spec":{"foo":1,"containers":[{"name":"a","oops":1},{"name":"b","name":"c"}],"foo":2}}'
    )
    obj, warnings = read(Pod, data)
    assert warnings == [
        'duplicate field "metadata.name"',
        'unknown field "top"',
        'unknown field "spec.foo"',
        'unknown field "spec.containers[0].oops"',
        'duplicate field "spec.containers[1].name"',
    ]
    assert json.loads(obj)["metadata"] == {"name": "y"}
    assert strict_error(warnings[:2]) == ('strict decoding error: duplicate field "metadata.name", unknown field "top"')


def test_keys_of_maps_given_twice_are_told_too() -> None:
    assert read(ConfigMap, b'{"data":{"k":"1","k":"2"}}') == (
        b'{"metadata":{},"data":{"k":"2"}}',
        ['duplicate field "data.k"'],
    )
    assert read(dict, b'{"spec":{"a":1,"a":{"q":1,"q":2}}}')[1] == [
        'duplicate field "spec.a"',
        'duplicate field "spec.a.q"',
    ]


def test_at_most_a_hundred_are_told() -> None:
    data = b'{"data":{' + b",".join(b'"k%d":"","k%d":""' % (i, i) for i in range(150)) + b"}}"
    assert len(read(ConfigMap, data)[1]) == 100


def test_nothing_is_told_of_what_is_not_looked_into() -> None:
    data = b'{"data":{"a":1,"a":2},"metadata":{"managedFields":[{"fieldsV1":{"f:a":{},"f:a":{}}}]},"revision":1}'
    obj, warnings = read(ControllerRevision, data)
    assert warnings == []
    assert b'"data":{"a":1,"a":2}' in obj


def test_without_strictness_unknown_members_are_dropped_silently() -> None:
    assert read(ConfigMap, b'{"dat":{},"data":{"k":"1"}}', want_strict=False) == (
        b'{"metadata":{},"data":{"k":"1"}}',
        [],
    )


def test_names_are_case_sensitive() -> None:
    assert read(ConfigMap, b'{"DATA":{}}')[1] == ['unknown field "DATA"']


def test_null_means_nothing_everywhere() -> None:
    data = (
        b'{"metadata":null,"spec":{"containers":[{"name":null,"args":["a",null],"resources":null}],"nodeName":null,'
        b'"securityContext":null,"terminationGracePeriodSeconds":null,"volumes":null,"hostNetwork":null},"status":null}'
    )
    assert read(Pod, data) == (
        b'{"metadata":{},"spec":{"containers":[{"name":"","args":["a",""],"resources":{}}]},"status":{}}',
        [],
    )
    assert read(Service, b'{"spec":{"ports":[{"targetPort":null}]}}')[0].count(b'"targetPort":0') == 1


def test_structs_given_twice_are_merged_as_go_does() -> None:
    obj, warnings = read(Pod, b'{"metadata":{"name":"a"},"metadata":{"namespace":"b"}}')
    assert json.loads(obj)["metadata"] == {"name": "a", "namespace": "b"}
    assert warnings == ['duplicate field "metadata"']


@pytest.mark.parametrize(
    ("cls", "data", "message"),
    [
        (
            Deployment,
            b'{"spec":{"replicas":"3"}}',
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            Deployment,
            b'{"spec":{"replicas":1.5}}',
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            Deployment,
            b'{"spec":{"replicas":2147483648}}',
            "json: cannot unmarshal number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            ConfigMap,
            b'{"data":{"a":1}}',
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            ConfigMap,
            b'{"data":["a"]}',
            "json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string",
        ),
        (
            Pod,
            b'{"spec":{"containers":{}}}',
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            Pod,
            b'{"spec":{"volumes":[{"emptyDir":5}]}}',
            "json: cannot unmarshal number into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type "
            "v1.EmptyDirVolumeSource",
        ),
        (
            Pod,
            b'{"spec":{"restartPolicy":true}}',
            "json: cannot unmarshal bool into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy",
        ),
        (
            Pod,
            b'{"metadata":{"creationTimestamp":5}}',
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (
            Pod,
            b'{"metadata":{"creationTimestamp":"x"}}',
            'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
        ),
        (
            Event,
            b'{"eventTime":"2024-01-01T00:00:00Z"}',
            'parsing time "2024-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"',
        ),
        (Pod, b'{"spec":{"containers":[{"resources":{"limits":{"cpu":"x"}}}]}}', FORMAT_WRONG),
        (Pod, b'{"spec":{"containers":[{"resources":{"limits":{"cpu":[]}}}]}}', FORMAT_WRONG),
        (
            Service,
            b'{"spec":{"ports":[{"targetPort":1.5}]}}',
            "json: cannot unmarshal number 1.5 into Go struct field ServicePort.spec.ports.targetPort of type int32",
        ),
        (Secret, b'{"data":{"a":"!!!"}}', "illegal base64 data at input byte 0"),
        (Secret, b'{"data":{"a":"YWJ"}}', "illegal base64 data at input byte 0"),
        (Secret, b'{"data":{"a":"YWJjYQ"}}', "illegal base64 data at input byte 4"),
        (
            CustomResourceDefinition,
            b'{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"additionalProperties":5}}}]}}',
            "boolean or JSON schema expected",
        ),
        (dict, b"[]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (dict, b'{"a":1e999}', "json: cannot unmarshal number 1e999 into Go value of type float64"),
    ],
)
def test_wrong_types_are_told_in_gos_words(cls: Any, data: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_object(cls, data, "json", want_strict=True)
    assert str(caught.value) == message


def test_the_first_wrong_type_is_told_unless_a_later_error_ends_the_reading() -> None:
    wrong = b'{"spec":{"replicas":"a","paused":"b"},"metadata":{"creationTimestamp":%s}}'
    with pytest.raises(DecodeError, match=r"spec\.replicas"):
        decode_object(Deployment, wrong % b"null", "json", want_strict=True)
    with pytest.raises(DecodeError, match="parsing time"):
        decode_object(Deployment, wrong % b'"x"', "json", want_strict=True)


def test_bytes_that_are_no_characters_are_replaced() -> None:
    assert read(ConfigMap, b'{"data":{"a":"\xff"}}') == ('{"metadata":{},"data":{"a":"\ufffd"}}'.encode(), [])


def test_white_space_does_not_stay_in_raw_parts() -> None:
    data = b'{\n "metadata": {},\n "data": { "a" : [ 1, 2 ] },\n "revision": 1\n}\n'
    assert read(ControllerRevision, data) == (b'{"metadata":{},"data":{"a":[1,2]},"revision":1}', [])


def test_yaml_is_read_and_its_repeated_keys_are_told() -> None:
    data = b"apiVersion: v1\nkind: ConfigMap\ndata:\n  a: x\n  a: z\nextra: 1\n"
    decoded = decode_object(ConfigMap, data, "yaml", want_strict=True)
    assert decoded.warnings == [
        'yaml: unmarshal errors:\n  line 5: key "a" already set in map',
        'unknown field "extra"',
    ]
    assert decoded.obj.data == {"a": "z"}
    with pytest.raises(DecodeError, match="of type string"):
        decode_object(ConfigMap, b"data: {a: yes}", "yaml", want_strict=True)
    with pytest.raises(DecodeError, match="yaml: line 2: "):
        decode_object(ConfigMap, b"a: 1\n b: 2", "yaml", want_strict=True)


def test_the_kind_is_found_without_reading_the_object() -> None:
    assert peek_type_meta(b'{"spec":{"kind":"x"},"kind":"Pod","apiVersion":"v1"}') == ("v1", "Pod")
    assert peek_type_meta(b"kind: Pod\napiVersion: v1\n", "yaml") == ("v1", "Pod")
    assert peek_type_meta(b'{"Kind":"Pod","APIVERSION":"v1"}') == ("v1", "Pod")
    assert peek_type_meta(b'{"kind":null}') == ("", "")
    assert peek_type_meta(b"null") == ("", "")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "unexpected end of JSON input"),
        (b"[]", f"json: cannot unmarshal array into Go value of type {UNKNOWN_SHAPE}"),
        (b'"x"', f"json: cannot unmarshal string into Go value of type {UNKNOWN_SHAPE}"),
        (b'{"kind":5}', "json: cannot unmarshal number into Go struct field .kind of type string"),
    ],
)
def test_a_document_without_a_readable_kind_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        peek_type_meta(data)
    assert str(caught.value) == f"couldn't get version/kind; json parse error: {message}"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "unexpected end of JSON input"),
        (b"{a", "invalid character 'a' looking for beginning of object key string"),
        (b'{"a":1e400}', "json: cannot unmarshal number 1e400 into Go value of type float64"),
        (b"[" * 100_000, "exceeded max depth"),
    ],
)
def test_what_is_no_json_is_refused_in_the_words_of_go(data: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_untyped(data)
    assert str(caught.value) == message


def test_json_of_no_type_is_read_as_go_reads_it() -> None:
    assert decode_untyped(b'{"a":[1,1.0,null],"a":2}') == {"a": 2}
    assert type(decode_untyped(b"1.0", as_sent=True)) is float
    assert decode_untyped(b'"\xff"') == "\ufffd"
    assert decode_untyped(b"null") is None


def test_members_given_twice_are_told_by_their_paths() -> None:
    assert duplicate_members(b'{"a":1}', {"a": 1}) == []
    assert duplicate_members(b'[{"a":{"b":1,"b":2},"a":3}]', [{"a": 3}]) == [
        'duplicate field "[0].a.b"',
        'duplicate field "[0].a"',
    ]


MANGLED = st.recursive(
    st.sampled_from([None, True, 5, 1.5, "", "x", "1Gi", "2024-01-01T00:00:00Z"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["metadata", "name", "spec", "containers", "resources", "limits", "ports", "status", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status", "x"]), MANGLED, max_size=3))
def test_whatever_is_sent_is_read_or_refused_and_reads_the_same_again(body: dict[str, Any]) -> None:
    try:
        obj, _ = read(Pod, json.dumps(body).encode())
    except DecodeError:
        return
    assert read(Pod, obj) == (obj, [])


@pytest.mark.parametrize(("text", "shown"), [(".inf", "+Inf"), ("-.inf", "-Inf"), (".nan", "NaN")])
def test_numbers_of_yaml_that_json_does_not_have_are_refused(text: str, shown: str) -> None:
    with pytest.raises(DecodeError, match=re.escape(f"json: unsupported value: {shown}")):
        peek_type_meta(f"data: {{a: {text}}}".encode(), "yaml")
