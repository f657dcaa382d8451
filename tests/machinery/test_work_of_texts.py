"""The time of reading a text, a patch or a document is proportional to its length.

Otherwise these examples would take minutes or never end, so the bounds do not have to be exact.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.core.v1 import ConfigMap
from steersman.machinery.codec import strict, yaml
from steersman.machinery.errors import status as errors
from steersman.machinery.errors.field import Path, first_errors, invalid
from steersman.machinery.go.pem import blocks
from steersman.machinery.identity.schema import GroupKind
from steersman.machinery.managed_fields.conflicts import ApplyConflicts
from steersman.machinery.managed_fields.field_set import set_of, union, union_of
from steersman.machinery.managed_fields.managers import (
    UPDATE,
    Managed,
    ManagerKey,
    cap_update_managers,
)
from steersman.machinery.selectors import fields, labels
from steersman.machinery.values import durations, quantity


def within(seconds: float, work: Callable[[], Any]) -> Any:
    start = process_time()
    try:
        return work()
    finally:
        assert process_time() - start < seconds


def test_a_duration_of_many_terms_is_read_in_one_pass() -> None:
    assert within(10, lambda: durations.parse_duration("0h" * 500_000)) == 0
    with pytest.raises(durations.DurationError):
        within(10, lambda: durations.parse_duration("9h" * 500_000))


@pytest.mark.parametrize(
    "text", ["0" * 3000 + "!", "1" * 3000 + ".5x", "0" * 1000 + "." + "0" * 1000 + "e" * 1000 + "!"]
)
def test_what_is_no_quantity_is_refused_in_one_pass(text: str) -> None:
    with pytest.raises(quantity.QuantityError):
        within(5, lambda: quantity.parse(text))


def test_pem_beginnings_without_an_end_cost_nothing() -> None:
    assert list(within(5, lambda: list(blocks(b"-----BEGIN A-----\n" * 50_000)))) == []
    one = b"-----BEGIN A-----\nYQ==\n-----END A-----\n"
    assert len(within(10, lambda: list(blocks(b"-----BEGIN A-----\n" * 20_000 + one * 20_000)))) == 20_000


REQUIREMENTS = st.one_of(
    st.builds(
        lambda key, operator, values: labels.Requirement(key, operator, tuple(values)),
        st.sampled_from("abc"),
        st.sampled_from((labels.IN, labels.NOT_IN)),
        st.lists(st.sampled_from(("", "1", "2", "x")), min_size=1, max_size=3),
    ),
    st.builds(
        lambda key, operator, value: labels.Requirement(key, operator, (value,)),
        st.sampled_from("abc"),
        st.sampled_from((labels.EQUALS, labels.NOT_EQUALS, labels.GREATER_THAN, labels.LESS_THAN)),
        st.sampled_from(("0", "1", "2", "x")),
    ),
    st.builds(labels.Requirement, st.sampled_from("abc"), st.sampled_from((labels.EXISTS, labels.DOES_NOT_EXIST))),
)
VALUES = st.dictionaries(st.sampled_from("abc"), st.sampled_from(("", "1", "2", "x")))


@given(st.lists(REQUIREMENTS, max_size=9), VALUES)
def test_many_label_requirements_mean_what_each_of_them_means(found: list[labels.Requirement], given_: Any) -> None:
    assert labels.Selector(found).matches(given_) == all(each.compile()(given_) for each in found)


@given(
    st.lists(
        st.builds(
            fields.Requirement,
            st.sampled_from("abc"),
            st.sampled_from((fields.EQUALS, fields.NOT_EQUALS)),
            st.sampled_from(("", "1", "2")),
        ),
        max_size=9,
    ),
    VALUES,
)
def test_many_field_requirements_mean_what_each_of_them_means(found: list[fields.Requirement], given_: Any) -> None:
    assert fields.Selector(found).matches(given_) == all(each.compile()(given_) for each in found)


class Asked(dict[str, str]):
    """Labels that count how often they are looked at."""

    count = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.count += 1
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self.count += 1
        return super().__contains__(key)

    def __getitem__(self, key: str) -> str:
        self.count += 1
        return super().__getitem__(key)


def test_matching_costs_what_the_object_has_and_not_what_the_selector_has() -> None:
    asked = Asked(a="1")
    many = labels.parse(",".join(f"k{number}!=v" for number in range(5000)))
    assert many.matches(asked)
    of_fields = fields.parse(",".join(f"metadata.name!=v{number}" for number in range(5000)))
    assert of_fields.matches(asked)
    assert asked.count < 10


TERMS = st.sampled_from(
    ("a", "!a", "a=b", "a==b", "a!=b", "a=", "x/y=z", "!x/y", "a in (b)", "", "-", "a=b=c", " a", "a b")
)


@given(st.lists(TERMS, min_size=1, max_size=5))
def test_a_long_selector_is_read_as_a_short_one_is(terms: list[str]) -> None:
    def read(long: bool) -> str:
        text = ",".join(["k=" + "v" * 40] * (30 if long else 1) + terms)
        try:
            return ",".join(str(each) for each in labels.parse(text).requirements if each.key != "k")
        except labels.SelectorError as error:
            return f"refused: {error}"

    assert read(long=True) == read(long=False)


def test_a_member_given_again_and_again_is_not_copied_each_time() -> None:
    body = ",".join(f'"data":{{"k{number}":""}}' for number in range(20_000))
    found = within(20, lambda: strict.decode_object(ConfigMap, f"{{{body}}}".encode(), "json", want_strict=True))
    assert len(found.obj.data) == 20_000


def test_a_long_text_cannot_be_multiplied_by_aliases() -> None:
    text = "a: &a " + "x" * 1_000_000 + "\n" + "".join(f"b{number}: *a\n" for number in range(1000))
    with pytest.raises(yaml.YAMLError, match="excessive aliasing"):
        yaml.load(text.encode())
    few = "a: &a " + "x" * 1000 + "\n" + "".join(f"b{number}: *a\n" for number in range(1000))
    assert len(yaml.load(few.encode())[0]) == 1001


def test_errors_that_each_show_a_whole_list_are_told_as_far_as_there_is_room() -> None:
    value = ["x" * 1000] * 1000
    found = errors.invalid(
        GroupKind("", "A"), "a", (invalid(Path("a")[number], value, "wrong") for number in range(1_000_000))
    )
    assert 1 < len(found.causes) < 100
    assert len(list(first_errors(invalid(Path("a"), 1, "") for _ in range(200_000)))) == 100_000


def test_a_set_of_many_paths_is_put_together_without_copying_it_for_each() -> None:
    paths = [("f:a", f"f:{number:05}") for number in range(20_000)]
    assert len(within(20, lambda: set_of(paths))["f:a"]) == 20_000
    few = [set_of([("f:a", name)]) for name in ("f:x", "f:y", "f:z")]
    assert union_of(few) == union(union(few[0], few[1]), few[2])
    assert union_of([]) == {}


def test_many_conflicts_are_told_without_a_search_through_those_before() -> None:
    found = {ManagerKey("m", "Apply", "", ""): set_of(("f:data", f"f:k{number}") for number in range(20_000))}
    status = within(20, lambda: ApplyConflicts(found).status())
    assert status.message.startswith('Apply failed with 20000 conflicts: conflicts with "m":\n- .data.k0\n')


def test_many_managers_are_put_together_without_copying_the_oldest_for_each() -> None:
    managers = {
        ManagerKey(f"m{number}", UPDATE, "v1", ""): Managed(
            set_of([("f:data", f"f:k{number}")]), "v1", f"2020-01-01T00:{number // 60 % 60:02}:{number % 60:02}Z"
        )
        for number in range(3000)
    }
    within(20, lambda: cap_update_managers(managers))
    assert len(managers) == 10
    assert sum(len(each.fields["f:data"]) for each in managers.values()) == 3000
