"""JSON in and out: the text is the one Go's encoder writes."""

from __future__ import annotations

import copy
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.apiextensions.v1 import JSONSchemaProps
from steersman.api.apps.v1 import ControllerRevision
from steersman.api.core.v1 import ConfigMap, Pod
from steersman.api.storage.v1 import CSINode
from steersman.machinery.codec.serializer import (
    compact,
    decode_as_sent,
    decode_json,
    decode_plain,
    deep_copy,
    empty_to_null,
    encode,
    encode_in_order,
    encode_sorted,
    from_plain,
    pretty,
    to_plain,
)
from steersman.machinery.errors.field import json_float

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


def test_keys_of_maps_are_sorted_and_members_are_in_the_order_of_the_type() -> None:
    data = b'{"data":{"b":"1","a":"2"},"metadata":{"name":"x"},"kind":"ConfigMap"}'
    assert encode(decode_json(ConfigMap, data)) == (
        b'{"kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"2","b":"1"}}'
    )


def test_what_html_gives_a_meaning_is_escaped() -> None:
    assert (
        encode({"a": "<b> & \u2028\u2029é\x7f\b"}) == b'{"a":"\\u003cb\\u003e \\u0026 \\u2028\\u2029\xc3\xa9\x7f\\b"}'
    )
    assert encode_in_order({"b": "’", "a": 1}) == '{"b":"’","a":1}'.encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"1.0", b"1"),
        (b"1e3", b"1000"),
        (b"-0.5", b"-0.5"),
        (b"1e-7", b"1e-7"),
        (b"123456789012345680000.0", b"123456789012345680000"),
        (b"12345678901234567890", b"12345678901234567000"),
        (b"9223372036854775807", b"9223372036854775807"),
    ],
)
def test_untyped_numbers_are_printed_as_go_prints_them(text: bytes, expected: bytes) -> None:
    assert encode(decode_plain(text)) == expected
    if b"e" not in text and len(text) < 19:
        assert encode(decode_json(JSONSchemaProps, b'{"default":' + text + b"}")) == b'{"default":' + expected + b"}"


def test_quantities_and_times_become_canonical() -> None:
    pod = decode_json(
        Pod,
        b'{"metadata":{"creationTimestamp":"2024-01-01T01:00:00+01:00"},'
        b'"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":0.5,"memory":"1024Mi"}}}]}}',
    )
    assert pod.metadata.creation_timestamp == "2024-01-01T00:00:00Z"
    assert pod.spec.containers is not None
    assert pod.spec.containers[0].resources.limits == {"cpu": "500m", "memory": "1Gi"}


def test_raw_parts_stay_as_they_are() -> None:
    data = b'{"metadata":{},"data":{"b":1.50,"a":1e3},"revision":1}'
    assert encode(decode_json(ControllerRevision, data)) == data


def test_a_deep_copy_shares_nothing() -> None:
    pod = decode_json(Pod, b'{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c"}]}}')
    for again in (deep_copy(pod), copy.deepcopy(pod)):
        assert again == pod
        again.metadata.labels["a"] = "c"
        assert again.spec.containers is not None
        again.spec.containers[0].name = "d"
        assert pod.metadata.labels == {"a": "b"}
        assert encode(pod).count(b'"name":"c"') == 1


def test_empty_lists_become_null_where_null_is_printed() -> None:
    node = from_plain(CSINode, {"spec": {"drivers": [{"name": "a", "nodeID": "n", "topologyKeys": []}]}})
    pod = from_plain(Pod, {"spec": {"containers": [{"name": "c", "args": []}], "volumes": [{"projected": {}}]}})
    for obj in (node, pod):
        empty_to_null(obj)
    assert to_plain(node)["spec"] == {"drivers": [{"name": "a", "nodeID": "n", "topologyKeys": None}]}
    assert (pod.spec.containers or [])[0].args == []
    none = from_plain(CSINode, {"spec": {"drivers": []}})
    empty_to_null(none)
    assert to_plain(none)["spec"] == {"drivers": None}


def test_pretty_leaves_what_is_empty_on_one_line() -> None:
    data = b'{"a":{},"b":[],"c":[1,{"d":null}]}'
    assert pretty(data) == b'{\n  "a": {},\n  "b": [],\n  "c": [\n    1,\n    {\n      "d": null\n    }\n  ]\n}'
    assert compact(pretty(data)) == data


def test_nesting_without_end_is_an_error_and_no_crash() -> None:
    with pytest.raises(RecursionError):
        decode_plain(b"[" * 100_000 + b"]" * 100_000)


@given(JSON)
def test_plain_data_is_the_same_after_json_and_back(value: object) -> None:
    assert decode_plain(encode(value)) == value


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=4))
def test_plain_and_typed_forms_say_the_same(data: dict[str, str]) -> None:
    plain = {"metadata": {"name": "x"}} | ({"data": data} if data else {})
    assert to_plain(from_plain(ConfigMap, plain)) == plain


def test_decoding_refuses_what_is_not_json() -> None:
    for data in (b"", b"{", b'{"a":1}x', b"\xef\xbb\xbf{}"):
        with pytest.raises(msgspec.DecodeError):
            decode_plain(data)


def test_numbers_beyond_a_float_are_refused() -> None:
    for decode in (decode_plain, decode_as_sent):
        with pytest.raises(msgspec.DecodeError):
            decode(b'{"a":[1e400]}')


def test_floats_can_be_told_from_integers_where_they_are_kept_as_sent() -> None:
    text = b"[1,1.0,18446744073709551616,9223372036854775807]"
    assert list(map(type, decode_as_sent(text))) == [int, float, float, int]
    assert list(map(type, decode_plain(text))) == [int, int, int, int]


@given(st.floats(allow_nan=False, allow_infinity=False), st.text())
def test_numbers_are_written_as_go_writes_them(value: float, text: str) -> None:
    data = json.dumps({"a": [value, f":{value}"], "b": text}).encode()
    found = encode(decode_plain(data))
    assert found.startswith(b'{"a":[%b,' % json_float(value + 0.0).removesuffix(".0").encode())  # -0.0 is 0
    read = json.loads(found)
    assert (float(read["a"][0]), read["a"][1], read["b"]) == (value, f":{value}", text)


@pytest.mark.parametrize(
    ("sent", "written"),
    [("1e21", "1e+21"), ("-1.5e300", "-1.5e+300"), ("1e-6", "0.000001"), ("1e-7", "1e-7"), ("1e20", "1" + "0" * 20)],
)
def test_exponents_are_gos(sent: str, written: str) -> None:
    document = '{"a":%s,"b":"\\":1e21","c":[%s]}'
    for write in (encode, encode_in_order, encode_sorted):
        assert write(decode_plain((document % (sent, sent)).encode())) == (document % (written, written)).encode()
