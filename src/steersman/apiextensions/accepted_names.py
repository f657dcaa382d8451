"""Acceptance of the names of definitions: names that no other definition of the group has already.

Follows apiextensions-apiserver `pkg/controller/status` (naming_controller.go).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec
from msgspec import Struct, field

from steersman.api.apiextensions.v1 import CustomResourceDefinitionNames
from steersman.apiextensions.declared import Declared
from steersman.machinery.errors.field import quote
from steersman.registry.apiextensions.conditions import ESTABLISHED, is_established, set_condition

NAMES_ACCEPTED: Final = "NamesAccepted"

_SINGLE_NAMES: Final = (
    ("plural", "PluralConflict"),
    ("singular", "SingularConflict"),
    ("kind", "KindConflict"),
    ("list_kind", "ListKindConflict"),
)
_KIND_ATTRIBUTES: Final = ("kind", "list_kind")


class NamesInUse(Struct):
    """The names in use by the definitions of a group, with the number of users of each.

    Names of resources (plural, singular, short) and names of kinds are apart.
    """

    resources: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, names: CustomResourceDefinitionNames) -> None:
        """Add the accepted names of a definition."""
        self.resources.update(_resource_names(names))
        self.kinds.update(_kind_names(names))

    def remove(self, names: CustomResourceDefinitionNames) -> None:
        """Remove the accepted names of a definition."""
        for counter, gone in ((self.resources, _resource_names(names)), (self.kinds, _kind_names(names))):
            for each in gone:
                counter[each] -= 1
                if not counter[each]:
                    del counter[each]


def _resource_names(names: CustomResourceDefinitionNames) -> list[str]:
    return [each for each in (names.plural, names.singular, *names.short_names) if each]


def _kind_names(names: CustomResourceDefinitionNames) -> list[str]:
    return [each for each in (names.kind, names.list_kind) if each]


def accept_names(definition: Declared, taken: NamesInUse) -> None:
    """Set the accepted names and the NamesAccepted condition in the status of a definition; `taken` are those of
    others.

    A name that is in use by another definition keeps the value that was accepted before. If the definition wants
    exactly its accepted names, the conditions stay as they are, even after an earlier conflict over names that it has
    given up.
    """
    wanted, before = definition.spec.names, definition.status.accepted_names
    if wanted == before:
        return
    accepted = msgspec.structs.replace(before)
    problem: tuple[str, str] | None = None
    for attribute, reason in _SINGLE_NAMES:
        names = taken.kinds if attribute in _KIND_ATTRIBUTES else taken.resources
        name = getattr(wanted, attribute)
        if name == getattr(before, attribute) or name not in names:
            setattr(accepted, attribute, name)
        else:
            problem = reason, _in_use(name)
        if attribute == "singular":
            own = set(before.short_names)
            faults = [_in_use(each) for each in wanted.short_names if each in taken.resources and each not in own]
            if faults:
                problem = "ShortNamesConflict", faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
            else:
                accepted.short_names = wanted.short_names
    accepted.categories = wanted.categories
    definition.status.accepted_names = accepted
    if problem is None:
        set_condition(definition, NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found")
    else:
        set_condition(definition, NAMES_ACCEPTED, "False", *problem)
    # A definition that was established stays so, whatever happens to its names.
    if not is_established(definition) and problem is not None:
        set_condition(definition, ESTABLISHED, "False", "NotAccepted", "not all names are accepted")


def reject_reserved_names(definition: Declared) -> None:
    """Set the status of a definition whose plural belongs to a resource without a definition.

    The definition is not established, even if it was before that resource was reserved. It gets its plural back once
    the resource is gone.
    """
    accepted = definition.status.accepted_names
    definition.status.accepted_names = msgspec.structs.replace(accepted, plural="")
    set_condition(definition, NAMES_ACCEPTED, "False", "PluralConflict", _in_use(definition.spec.names.plural))
    set_condition(definition, ESTABLISHED, "False", "NotAccepted", "not all names are accepted")


def _in_use(name: str) -> str:
    return f"{quote(name)} is already in use"
