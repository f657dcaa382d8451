"""A kind whose objects are dicts, for schemas that no built-in kind has; one such schema, and objects of it."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from steersman.machinery.codec.strict import Decoded
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.managed_fields import Schema, differing_dicts, plain_object
from steersman.machinery.managed_fields.schema import BOOLEAN, STRING, UNTYPED, Atom, ListType, MapType

Plain = dict[str, Any]


class PlainKind:
    """An `OwnedKind` of one schema: e.x/v1, Foo."""

    gvk = GroupVersionKind("e.x", "v1", "Foo")
    api_version = "e.x/v1"
    is_open = True

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.empty: Plain = {}

    def new(self) -> Plain:
        return {}

    def owned(self, obj: Plain) -> Plain:
        return plain_object(obj)

    def differing(self, old: Plain, new: Plain) -> tuple[Plain, Plain]:
        return differing_dicts(old, new)

    def from_applied(self, data: Plain) -> Decoded[Plain]:
        return Decoded(data)


TEXT, FLAG = Atom(STRING), Atom(BOOLEAN)
ITEM = Atom(map=MapType({"name": TEXT, "ports": Atom(list=ListType(TEXT, atomic=False)), "a": TEXT}, None))
EITHER = Atom(UNTYPED, ListType(TEXT, atomic=False), MapType({}, TEXT))
ROOT = Atom(
    map=MapType(
        {
            "metadata": Atom(map=MapType({"labels": Atom(map=MapType({}, TEXT)), "name": TEXT}, None)),
            "items": Atom(list=ListType(ITEM, atomic=False, keys=("name",))),
            "whole": Atom(list=ListType(TEXT)),
            "either": EITHER,
            "nested": Atom(map=MapType({}, Atom(list=ListType(ITEM, atomic=False, keys=("name",))))),
            "flag": FLAG,
        },
        None,
    )
)
NAMES = st.sampled_from(["a", "b", "c"])
SETS = st.lists(NAMES, max_size=3)
ITEMS = st.one_of(
    st.none(),
    st.lists(
        st.fixed_dictionaries({"name": NAMES}, optional={"ports": st.one_of(st.none(), SETS), "a": NAMES}), max_size=3
    ),
)
TEXTS = st.one_of(st.none(), st.dictionaries(NAMES, NAMES, max_size=2))
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries({}, optional={"labels": TEXTS, "name": NAMES}),
        "items": ITEMS,
        "whole": SETS,
        "either": st.one_of(TEXTS, SETS, NAMES),
        "nested": st.one_of(st.none(), st.dictionaries(NAMES, ITEMS, max_size=2)),
        "flag": st.booleans(),
    },
)
