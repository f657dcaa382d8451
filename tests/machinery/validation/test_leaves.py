"""Rules for single values: one error for each message, and what must be given or be one of a few."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.machinery.errors.field import Path
from steersman.machinery.validation.formats import is_dns1123_label, is_valid_port_num
from steersman.machinery.validation.leaves import (
    validate_choice,
    validate_immutable,
    validate_name,
    validate_nonnegative,
    validate_required,
    validate_required_name,
    validate_supported,
    validate_with,
)
from steersman.machinery.validation.object_meta import name_is_dns_label

PATH = Path("spec", "a")


def test_each_message_about_a_format_is_an_error() -> None:
    assert list(validate_with(is_dns1123_label, "ok", PATH)) == []
    assert [str(each) for each in validate_with(is_valid_port_num, 0, PATH)] == [
        "spec.a: Invalid value: 0: must be between 1 and 65535, inclusive"
    ]
    long = "A" * 64
    assert [each.detail for each in validate_with(is_dns1123_label, long, PATH)] == is_dns1123_label(long)
    assert [each.detail for each in validate_name(name_is_dns_label, long, PATH)] == is_dns1123_label(long)


def test_a_value_that_must_be_given_is_judged_only_if_it_is() -> None:
    for found in (validate_required(is_dns1123_label, "", PATH), validate_required_name(name_is_dns_label, "", PATH)):
        assert [str(each) for each in found] == ["spec.a: Required value"]
    for found in (validate_required(is_dns1123_label, "a", PATH), validate_required_name(name_is_dns_label, "a", PATH)):
        assert list(found) == []
    assert [each.value for each in validate_required(is_dns1123_label, "A", PATH)] == ["A"]


def test_a_value_of_an_enumeration() -> None:
    assert list(validate_supported("A", ("A", "B"), PATH)) == list(validate_choice("A", ("A", "B"), PATH)) == []
    unsupported = 'spec.a: Unsupported value: "C": supported values: "A", "B"'
    assert [str(each) for each in validate_supported("C", ("A", "B"), PATH)] == [unsupported]
    assert [str(each) for each in validate_choice("C", ("A", "B"), PATH)] == [unsupported]
    assert [str(each) for each in validate_choice("", ("A", "B"), PATH)] == ["spec.a: Required value"]


def test_a_number_that_is_not_negative() -> None:
    assert list(validate_nonnegative(0, PATH)) == []
    assert [str(each) for each in validate_nonnegative(-1, PATH)] == [
        "spec.a: Invalid value: -1: must be greater than or equal to 0"
    ]


@pytest.mark.parametrize(
    ("new", "old", "same"),
    [([], None, True), ({}, [], True), ("", None, False), (0, None, False), ([1], [1], True), ([1], [2], False)],
)
def test_empty_collections_count_as_absent_for_immutability(new: Any, old: Any, same: bool) -> None:
    assert (list(validate_immutable(new, old, PATH)) == []) is same
