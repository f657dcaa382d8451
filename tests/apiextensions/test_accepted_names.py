"""The names that definitions may use, and conflicts between them."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

from steersman.api.apiextensions.v1 import CustomResourceDefinitionNames
from steersman.api.meta.v1 import ObjectMeta
from steersman.apiextensions.accepted_names import NAMES_ACCEPTED, NamesInUse, accept_names, reject_reserved_names
from steersman.apiextensions.declared import Declared, DeclaredSpec
from steersman.registry.apiextensions.conditions import find_condition

LONG = 3.0
"""Seconds: a hundred times the duration of lookups, a tenth of that of a comparison of all pairs of names."""


def test_many_short_names_are_looked_up_each_once() -> None:
    short_names = [f"s{number}" for number in range(30_000)]
    names = CustomResourceDefinitionNames(plural="things", kind="Thing", short_names=short_names)
    taken = NamesInUse()
    for each in short_names:
        taken.add(CustomResourceDefinitionNames(plural=each, kind=each))
    definition = Declared(metadata=ObjectMeta(name="things.example.com"), spec=DeclaredSpec("example.com", names))
    began = process_time()
    accept_names(definition, taken)
    assert process_time() - began < LONG
    assert definition.status.conditions is not None
    assert definition.status.conditions[0].reason == "ShortNamesConflict"
    assert not definition.status.accepted_names.short_names


def test_a_name_is_free_when_the_last_who_had_it_is_gone() -> None:
    names = CustomResourceDefinitionNames(plural="things", singular="thing", short_names=["t", "t"], kind="Thing")
    taken = NamesInUse()
    taken.add(names)
    taken.add(names)
    taken.remove(names)
    assert set(taken.resources) == {"things", "thing", "t"}
    taken.remove(names)
    assert not taken.resources
    assert not taken.kinds


def test_a_definition_gets_its_plural_back_when_no_other_resource_has_it() -> None:
    names = CustomResourceDefinitionNames(plural="things", kind="Thing")
    definition = Declared(metadata=ObjectMeta(name="things.example.com"), spec=DeclaredSpec("example.com", names))
    told = []
    accept_names(definition, NamesInUse())
    changes: tuple[Callable[[], None], ...] = (
        lambda: None,
        lambda: reject_reserved_names(definition),
        lambda: accept_names(definition, NamesInUse()),
    )
    for change in changes:
        change()
        accepted = find_condition(definition, NAMES_ACCEPTED)
        assert accepted is not None
        told.append((accepted.status, definition.status.accepted_names.plural))
    assert told == [("True", "things"), ("False", ""), ("True", "things")]
