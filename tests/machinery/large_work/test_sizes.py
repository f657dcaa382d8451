"""The sizes from which a body is large, and limits for refused bodies."""

from __future__ import annotations

import pytest

from steersman.machinery.errors.status import StatusError
from steersman.machinery.large_work.sizes import (
    MAX_OBJECTS,
    MAX_VALUES,
    check_count,
    is_large,
    is_large_protobuf,
    is_large_yaml,
)


def test_size_or_count_makes_a_body_large() -> None:
    assert not is_large(b'{"a":"b"}')
    assert not is_large(b'"' + b"x" * 60_000 + b'"')
    assert is_large(b'"' + b"x" * 70_000 + b'"')
    assert not is_large(b"[" + b"{}," * 1_200 + b"{}]")
    assert is_large(b"[" + b"{}," * 2_200 + b"{}]")
    assert is_large(b'{"a":' * 1_500 + b"1" + b"}" * 1_500)
    assert is_large_yaml(b"- {}\n" * 500)
    assert is_large_protobuf(b"\x0a\x00" * 2_100)


def refusal(data: bytes) -> str:
    with pytest.raises(StatusError) as caught:
        check_count(data)
    assert caught.value.code == 413
    assert caught.value.reason == "RequestEntityTooLarge"
    return caught.value.message


def test_more_objects_than_any_object_has_are_refused() -> None:
    check_count(b"[" + b"{}," * (MAX_OBJECTS - 2) + b"{}]")
    text = "Request entity too large: limit is 32768 objects and lists"
    assert refusal(b"[" + b"{}," * (MAX_OBJECTS - 1) + b"{}]") == text
    assert refusal(b"[" + b"[[]]," * MAX_OBJECTS + b"0]") == text


def test_what_is_nested_too_deeply_is_left_to_who_says_so() -> None:
    check_count(b"[" * (MAX_OBJECTS + 1))
    check_count(b'{"a":' * (MAX_OBJECTS + 1))


def test_more_values_than_any_object_has_are_refused() -> None:
    check_count(b"[" + b"0," * MAX_VALUES + b"0]")
    assert refusal(b"[" + b"0," * (MAX_VALUES + 1) + b"0]") == "Request entity too large: limit is 65536 values"


def test_what_is_in_texts_does_not_count() -> None:
    many = MAX_VALUES * 2
    check_count(b'{"data":"' + b'{[,\\"{,' * many + b'"}')
    check_count(b'{"data":"\\\\","more":"' + b"{," * many + b'\\\\\\""}')
    # a text that ends in a backslash ends all the same: what follows counts
    refusal(b'{"data":"\\\\","more":[' + b"{}," * (MAX_OBJECTS + 1) + b"{}]}")
