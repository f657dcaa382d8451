"""Pod templates in messages: upstream's internal types, with the metadata that clients wrote."""

from __future__ import annotations

import difflib

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.core.v1 import PodTemplateSpec
from steersman.api.meta.v1 import LabelSelector, ManagedFieldsEntry, ObjectMeta
from steersman.registry.printing.internal_form import internal_diff, internal_form, internal_text
from tests.counted_work import calls


def test_metadata_of_a_template_is_shown_with_the_json_in_it() -> None:
    entry = ManagedFieldsEntry(manager="m", fields_v1=msgspec.Raw(b'{"f:a":{}}'))
    form = internal_form(PodTemplateSpec(metadata=ObjectMeta(name="t", managed_fields=[entry])))
    assert form["name"] == "t"
    assert form["managedFields"] == [{"manager": "m", "fieldsV1": {"f:a": {}}}]


def test_maps_are_shown_by_their_keys() -> None:
    selector = LabelSelector(match_labels={"b": "1", "a": "2"})
    assert str(internal_text(selector)) == '{"matchLabels":{"a":"2","b":"1"}}'


WORDS = st.lists(st.sampled_from("abcdef"), max_size=30)


@given(WORDS, WORDS)
def test_a_difference_is_told_as_the_shortest_there_is(old: list[str], new: list[str]) -> None:
    before, after = (["[\n", *(f' "{word}",\n' for word in words), ' "z"\n', "]\n"] for words in (old, new))
    shown = internal_diff([*old, "z"], [*new, "z"])
    assert shown == "".join(list(difflib.unified_diff(before, after, n=3))[2:])


def test_what_takes_too_long_to_compare_line_by_line_is_told_in_one_hunk() -> None:
    def lines(mark: str) -> list[str]:
        return [text for number in range(1900) for text in (f"l{number // 40}", f"{mark}{number}")]

    old, new = lines("u"), lines("w")
    assert calls(lambda: internal_diff(old, new)) < 200_000
    assert internal_diff(old, new).count("@@ ") == 1
