"""Field sets and their JSON, held against plain sets of paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.machinery.managed_fields.field_set import (
    EMPTY,
    FieldSet,
    contains,
    difference,
    intersection,
    paths,
    recursive_difference,
    set_of,
    union,
)
from steersman.machinery.managed_fields.fields_v1 import FieldsError, decode_fields, encode_fields
from steersman.machinery.managed_fields.path_elements import display

ELEMENTS = st.sampled_from(["f:a", "f:b", "f:c", 'k:{"n":1}', 'k:{"n":10}', 'k:{"n":"x"}', 'v:"a"', "v:2", "i:0"])
PATHS = st.sets(st.lists(ELEMENTS, min_size=1, max_size=3).map(tuple), max_size=8)

Paths = set[tuple[str, ...]]


def members(fields: FieldSet) -> Paths:
    return set(paths(fields))


@given(PATHS)
def test_a_set_has_just_the_paths_it_was_made_of(given_paths: Paths) -> None:
    fields = set_of(given_paths)
    assert members(fields) == given_paths
    assert all(contains(fields, path) for path in given_paths)


@given(PATHS, PATHS)
def test_operations_are_those_of_sets_of_paths(a: Paths, b: Paths) -> None:
    one, other = set_of(a), set_of(b)
    assert members(union(one, other)) == a | b
    assert members(difference(one, other)) == a - b
    assert members(intersection(one, other)) == a & b


@given(PATHS, PATHS)
def test_a_recursive_difference_takes_what_is_below_along(a: Paths, b: Paths) -> None:
    kept = {path for path in a if not any(path[: i + 1] in b for i in range(len(path)))}
    assert members(recursive_difference(set_of(a), set_of(b))) == kept


@given(PATHS, PATHS)
def test_operations_leave_their_operands_alone(a: Paths, b: Paths) -> None:
    one, other = set_of(a), set_of(b)
    before = bytes(encode_fields(one)), bytes(encode_fields(other))
    for operation in (union, difference, recursive_difference, intersection):
        operation(one, other)
    assert (bytes(encode_fields(one)), bytes(encode_fields(other))) == before


@given(PATHS, PATHS)
def test_what_is_the_same_comes_back_as_the_same_object(a: Paths, b: Paths) -> None:
    one, other = set_of(a), set_of(b - a)
    assert difference(one, EMPTY) is one
    assert difference(one, set_of(path for path in b if path not in a)) is one or not other
    assert union(one, one) is one
    assert union(one, EMPTY) is one


@given(PATHS)
def test_json_and_back(given_paths: Paths) -> None:
    fields = set_of(given_paths)
    decoded, is_canonical = decode_fields(bytes(encode_fields(fields)))
    assert members(decoded) == given_paths
    assert is_canonical


@given(PATHS, PATHS)
def test_a_union_is_in_the_order_of_the_format(a: Paths, b: Paths) -> None:
    merged = bytes(encode_fields(union(set_of(a), set_of(b))))
    assert merged == bytes(encode_fields(set_of(a | b)))
    assert decode_fields(merged)[1]


def test_what_a_client_wrote_is_put_in_canonical_form() -> None:
    # As kube-apiserver answered it.
    text = (
        b'{"f:data":{"k:{\\"b\\": 1,\\"a\\":\\"<x\\"}":{},"f:k1":{},"q:x":{},"i:03":{},"v:1.50":{},'
        b'"v:\\"a<\\"":{},".":{}},'
        b'"f:metadata":{"f:labels":{}},"f:a":null}'
    )
    fields, is_canonical = decode_fields(text)
    assert not is_canonical
    assert bytes(encode_fields(fields)) == (
        b'{"f:a":{},"f:data":{".":{},"f:k1":{},"k:{\\"a\\":\\"\\\\u003cx\\",\\"b\\":1}":{},"v:1.5":{},'
        b'"v:\\"a\\\\u003c\\"":{},"i:3":{}},"f:metadata":{"f:labels":{}}}'
    )


def test_keys_are_sorted_by_their_values_not_their_text() -> None:
    fields = set_of(
        [(f'k:{{"port":{port},"protocol":"{protocol}"}}',) for port in (443, 80, 9) for protocol in ("UDP", "TCP")]
    )
    assert [display(element) for element in fields] == [
        '[port=9,protocol="TCP"]',
        '[port=9,protocol="UDP"]',
        '[port=80,protocol="TCP"]',
        '[port=80,protocol="UDP"]',
        '[port=443,protocol="TCP"]',
        '[port=443,protocol="UDP"]',
    ]


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b'{"z":{}}', b'{"fx":{}}', b'{"f:a":[1]}', b'{"f:a":1}', b'{"v:{":{}}', b'{"i:x":{}}', b'{"k:1":{}}'],
)
def test_what_is_no_field_set_is_refused(text: bytes) -> None:
    with pytest.raises(FieldsError):
        decode_fields(text)


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises(FieldsError):
        decode_fields(b'{"f:a":' * 100_000 + b"{}" + b"}" * 100_000)
