"""Tests that the spec may be merged apart from the other members of an object, and that its merge may be cached."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from steersman.api.meta.v1 import ManagedFieldsEntry
from steersman.kinds.built_in import find_built_in
from steersman.machinery.codec.serializer import encode
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.managed_fields import Applier, FieldManager, Schema, TypedError, fields_at
from steersman.machinery.managed_fields.comparison import same
from steersman.machinery.managed_fields.merging import merge
from steersman.machinery.managed_fields.schema import Atom, MapType
from steersman.machinery.managed_fields.spec_merges import Merging, merge_specs, texts_of
from steersman.machinery.managed_fields.typed_value import field_set, validate, validate_lists
from tests.machinery.managed_fields.plain_kind import FLAG, OBJECTS, ROOT, TEXT, PlainKind

TIME = "2026-01-01T00:00:00Z"
WHOLE = Atom(
    map=MapType(
        {
            "metadata": Atom(map=MapType({"labels": Atom(map=MapType({}, TEXT)), "name": TEXT}, None)),
            "spec": ROOT,
            "zone": FLAG,
        },
        None,
    )
)
REST = st.fixed_dictionaries(
    {"metadata": st.dictionaries(st.sampled_from(["name"]), st.sampled_from("ab"))}, optional={"zone": st.booleans()}
)
WHOLES = st.builds(lambda rest, spec: {**rest, "spec": spec}, REST, OBJECTS)


def text(fields: Any) -> bytes:
    """Return the text of a field set, which tells its order too."""
    return msgspec.json.encode(fields)


@given(WHOLES, WHOLES, st.booleans())
def test_the_merge_of_the_spec_is_a_part_of_the_merge_of_the_object(live: Any, patch: Any, resets: bool) -> None:
    try:
        merged, fields = merge(WHOLE, live, patch), field_set(WHOLE, patch)
        of_spec = merge_specs(WHOLE, live, patch, same)
    except TypedError:
        assume(False)
    found, found_fields = Merging(live, patch, of_spec).merged(WHOLE)
    assert found == merged
    assert text(found_fields) == text(fields)
    kind = PlainKind(Schema(WHOLE))
    manager = FieldManager(kind, resets={kind.api_version: fields_at("spec/flag")} if resets else {})
    whole, parts = manager.compare(live, merged), manager.compare(live, found, of_spec)
    assert (text(parts.changed), text(parts.removed)) == (text(whole.changed), text(whole.removed))
    other = {**merged, "spec": {"flag": True}}
    assert manager.compare(live, other, of_spec) == manager.compare(live, other)


@pytest.mark.parametrize(
    ("live", "patch"),
    [
        ({}, {"spec": {"whole": ["a" * 300]}}),
        ({"spec": None}, {"spec": {"whole": ["a" * 300]}}),
        ({"spec": {"whole": ["a" * 300]}}, {"spec": ["a"]}),
        ({"spec": {"whole": ["a"]}}, {"spec": {"whole": ["b"]}}),
        ({"spec": {"whole": ["a" * 300]}}, {"spec": {"flag": object()}}),
    ],
)
def test_a_spec_that_is_no_map_or_short_or_no_json_is_not_merged_apart(live: Any, patch: Any) -> None:
    assert texts_of(WHOLE, live, patch) is None


def test_a_schema_without_a_spec_has_none_to_merge() -> None:
    long = {"spec": {"whole": ["a" * 300]}}
    assert texts_of(ROOT, long, long) is None
    assert texts_of(WHOLE, long, long) == (encode(long["spec"]), encode(long["spec"]))


POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "labels": {"x": "y"}},
    "spec": {
        "containers": [
            {
                "name": name,
                "image": "registry.example.com/shop/web:1.42.0",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            }
            for name in ("web", "agent")
        ]
    },
}


def applied(applier: Applier, live: Any, patch: Any) -> tuple[Any, list[ManagedFieldsEntry]]:
    """Return the object and entries after an apply."""
    found = applier.apply(live, patch, "me", TIME)
    return found.obj, found.entries


def test_a_cached_merge_gives_the_same_results() -> None:
    kind = find_built_in(GroupVersionKind("", "v1", "Pod"))
    assert kind is not None
    remembering = Applier(FieldManager(kind))
    first = {**POD, "spec": {**POD["spec"], "containers": POD["spec"]["containers"][:1]}}
    for patch in [first, POD, {**POD, "metadata": {"name": "a", "annotations": {"x": "y"}}}] * 3:
        live: Any = kind.from_plain(POD).obj
        live.metadata.managed_fields = applied(Applier(FieldManager(kind)), kind.new(), POD)[1]
        before = encode(live)
        assert applied(remembering, live, patch) == applied(Applier(FieldManager(kind)), live, patch)
        assert encode(live) == before
    assert remembering.fields.spec_merges.count == 2


def test_an_invalid_spec_is_refused_each_time() -> None:
    kind = find_built_in(GroupVersionKind("", "v1", "Pod"))
    assert kind is not None
    applier = Applier(FieldManager(kind))
    twice = {**POD, "spec": {**POD["spec"], "containers": POD["spec"]["containers"][:1] * 2}}
    unknown = {**POD, "spec": {**POD["spec"], "unknown": "x" * 300}}
    live = kind.from_plain(POD).obj
    for patch, message in [(twice, "duplicate entries for key"), (unknown, ".spec.unknown: field not declared")] * 2:
        with pytest.raises(StatusError, match=message):
            applier.apply(live, patch, "me", TIME)
    assert applier.fields.spec_merges.count == 0


NAMELESS: list[dict[str, Any]] = [{"a": "b"}]


@pytest.mark.parametrize(
    "value",
    [
        {"items": NAMELESS},
        {"items": [{"name": "a"}, *NAMELESS]},
        {"items": [{"name": "a", "ports": [["a"]]}]},
        {"nested": {"a": None, "b": NAMELESS}},
        {"either": [{}]},
    ],
)
def test_lists_with_invalid_keys_are_found_at_every_depth(value: Any) -> None:
    with pytest.raises(TypedError) as expected:
        validate(ROOT, value, allow_duplicates=True)
    with pytest.raises(TypedError) as found:
        validate_lists(ROOT, value)
    assert str(found.value) == str(expected.value)


@given(OBJECTS)
def test_lists_with_valid_keys_are_accepted(value: Any) -> None:
    validate_lists(ROOT, value)
