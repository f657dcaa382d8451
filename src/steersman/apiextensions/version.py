"""A version of a definition, and what is made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steersman.apiextensions.declared import Declared, DeclaredVersion
from steersman.kinds.custom import CustomKind
from steersman.machinery.identity.schema import GroupVersionKind

if TYPE_CHECKING:
    from steersman.validation_rules.evaluation import Rules


@dataclass(slots=True)
class Version:
    """A version of a definition, and the kind it makes."""

    declared: DeclaredVersion
    kind: CustomKind
    rules: Rules | None = None
    """The rules of its schema; None before they are compiled."""

    def compile_rules(self) -> Rules:
        """The rules, compiled if need be: that takes some milliseconds for each."""
        if self.rules is None:
            from steersman.validation_rules.evaluation import Rules  # imports all of CEL

            rules = Rules(self.kind.structural.root)
            rules.compile()
            self.rules = rules
        return self.rules


def versions_of(definition: Declared) -> list[Version]:
    """All versions of a definition. Nothing is compiled yet."""
    names = definition.status.accepted_names
    versions = [
        Version(
            each,
            CustomKind(
                GroupVersionKind(definition.spec.group, each.name, names.kind), names.list_kind, each.schema_text
            ),
        )
        for each in definition.spec.versions
    ]
    family = {each.kind.api_version: each.kind for each in versions}
    for each in versions:
        each.kind.family = family
        each.declared.schema = None  # its text is with the kind now
    return versions
