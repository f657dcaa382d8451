"""The cache of the entries after updates: its results must equal computed ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from steersman.machinery.managed_fields import FieldManager, fields_at
from steersman.machinery.managed_fields import tracker as tracker_module
from steersman.machinery.managed_fields.managers import decode_managers
from steersman.machinery.managed_fields.schema import Atom, ListType, MapType, Schema
from tests.machinery.managed_fields.plain_kind import OBJECTS, ROOT, TEXT, PlainKind
from tests.noted import noted

Write = tuple[dict[str, Any], str, bool]
"""An object, who writes it, and whether it is sent with the entries that there were at first."""
MANAGERS = st.sampled_from(["one", "two", "three"])
WRITES = st.lists(st.tuples(OBJECTS, MANAGERS, st.booleans()), min_size=2, max_size=8)
KIND = PlainKind(Schema(ROOT))


def with_entries(obj: dict[str, Any], entries: list[Any]) -> dict[str, Any]:
    return {**obj, "metadata": {**obj.get("metadata", {}), "managedFields": entries}}


def play(manager_of: Callable[[], FieldManager], writes: list[Write]) -> list[Any]:
    """The entries after each of some writes, of which the first makes the object."""
    found: list[Any] = []
    first: list[Any] = []
    live: dict[str, Any] = {}
    for number, (obj, writer, sends_first) in enumerate(writes):
        time = f"2026-01-01T00:00:{number:02d}Z"
        if number == 0:
            entries = manager_of().create(obj, writer, time)
        else:
            entries = manager_of().update(with_entries(obj, first) if sends_first else obj, live, writer, time)
        plain = msgspec.json.decode(msgspec.json.encode(entries))
        first = first or plain
        live = with_entries(obj, plain)
        found.append(plain)
    return found


@given(WRITES, st.sampled_from(["", "status"]), st.booleans())
def test_what_is_remembered_is_what_is_worked_out(writes: list[Write], subresource: str, resets: bool) -> None:
    given_resets = {KIND.api_version: fields_at("flag")} if resets else {}

    def new() -> FieldManager:
        return FieldManager(KIND, subresource, resets=given_resets)

    remembering = new()
    writes = [*writes, *writes, *writes]
    assert play(lambda: remembering, writes) == play(new, writes)


def test_the_same_update_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = FieldManager(KIND)
    worked_out: list[object] = []
    monkeypatch.setattr(tracker_module, "decode_managers", noted(decode_managers, worked_out.append))
    write: Write = ({"metadata": {"labels": {"a": "b"}}}, "one", False)
    other: Write = ({"metadata": {"labels": {"a": "c"}}}, "two", False)
    play(lambda: manager, [write, other, write, other, write, other])
    once = len(worked_out)
    play(lambda: manager, [write, other, write, other, write, other])
    assert once > 0
    assert len(worked_out) == once


OWNERS = Atom(list=ListType(Atom(map=MapType({"uid": TEXT, "name": TEXT}, None)), atomic=False, keys=("uid",)))
OWNED = PlainKind(
    Schema(
        Atom(
            map=MapType(
                {"metadata": Atom(map=MapType({"owners": OWNERS, "labels": Atom(map=MapType({}, TEXT))}, None))}, None
            )
        )
    )
)
OWNER_UIDS = st.lists(st.sampled_from(["u-1", "u-2", "u-3", "a", "b", "(owner)"]), max_size=2, unique=True)


@given(st.lists(st.tuples(OWNER_UIDS, st.sampled_from("abc"), MANAGERS), min_size=2, max_size=8))
@example([(["u-1"], "a", "one"), (["u-1", "(owner)"], "a", "one")])
def test_who_owns_an_object_does_not_matter(writes: list[tuple[list[str], str, str]]) -> None:
    """Neither where an owner comes or goes, nor where its uid is the name of something else too."""
    remembering = FieldManager(OWNED)
    every: list[Write] = [
        ({"metadata": {"owners": [{"uid": uid, "name": "n"} for uid in uids], "labels": {label: "b"}}}, writer, False)
        for uids, label, writer in [*writes, *writes]
    ]
    assert play(lambda: remembering, every) == play(lambda: FieldManager(OWNED), every)


def test_objects_of_many_owners_are_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = FieldManager(OWNED)
    worked_out: list[object] = []
    monkeypatch.setattr(tracker_module, "decode_managers", noted(decode_managers, worked_out.append))
    for number in range(200):
        owners = [{"uid": f"uid-{number}", "name": "n"}]
        writes: list[Write] = [
            ({"metadata": {"owners": owners, "labels": {"a": value}}}, "one", False) for value in ("b", "c")
        ]
        entries = play(lambda: manager, writes)[-1]
        assert f'k:{{"uid":"uid-{number}"}}' in entries[0]["fieldsV1"]["f:metadata"]["f:owners"]
    assert len(worked_out) <= 2


def test_a_version_of_its_own_is_not_remembered() -> None:
    """A change in another version can only be determined by a conversion."""
    manager = FieldManager(KIND)
    obj = {"metadata": {"labels": {"a": "b"}}}
    entries = [
        {
            "manager": "one",
            "operation": "Update",
            "apiVersion": "e.x/v2",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:a": {}},
        }
    ]
    assert [
        each.manager for each in manager.update(with_entries(obj, entries), with_entries({}, entries), "two", "t")
    ] == ["two"]
    assert len(manager._update_cache._known) == 0
