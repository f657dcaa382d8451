"""A version of a definition with its kind and rules."""

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
    """A version of a definition with its kind and rules."""

    declared: DeclaredVersion
    kind: CustomKind
    rules: Rules | None = None
    """The compiled rules of its schema; None before the first use."""

    def compile_rules(self) -> Rules:
        """Return the rules, compiled on first use, which takes some milliseconds for each."""
        if self.rules is None:
            from steersman.validation_rules.evaluation import Rules  # this imports all of CEL

            rules = Rules(self.kind.structural.root)
            rules.compile()
            self.rules = rules
        return self.rules


def versions_of(definition: Declared) -> list[Version]:
    """Return all versions of a definition; nothing is compiled yet."""
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
        each.declared.schema = None  # the kind has its text now
    return versions
