"""Validation of the names of a kind and its resource (apiextensions.k8s.io `apis/apiextensions/validation`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from steersman.api.apiextensions.v1 import CustomResourceDefinition, CustomResourceDefinitionNames
from steersman.machinery.errors.field import FieldError, Path, invalid, required
from steersman.machinery.go.strings import to_lower
from steersman.machinery.validation.formats import is_dns1035_label
from steersman.machinery.validation.object_meta import name_is_dns_subdomain

NOT_ITS_NAME: Final = 'must be spec.names.plural+"."+spec.group'
SAME_NAME: Final = "kind and listKind may not be the same"
_MIXED: Final = "may have mixed case, but should otherwise match: "


def definition_name(definition: CustomResourceDefinition) -> Callable[[str, bool], list[str]]:
    """Return the validator for the name of this definition, which consists of the names that it declares."""
    spec = definition.spec
    its_name = f"{spec.names.plural}.{spec.group}"

    def validate(name: str, prefix: bool) -> list[str]:
        errors = name_is_dns_subdomain(name, prefix)
        return errors if name == its_name else [*errors, NOT_ITS_NAME]

    return validate


def validate_names(names: CustomResourceDefinitionNames, path: Path) -> Iterator[FieldError]:
    """Validate names as DNS labels, and kinds in any case. Every name may be missing."""
    for attribute in ("plural", "singular"):
        name = getattr(names, attribute)
        if name and (errors := is_dns1035_label(name)):
            yield invalid(path / attribute, name, ",".join(errors))
    for kind, member in ((names.kind, "kind"), (names.list_kind, "listKind")):
        if kind and (errors := is_dns1035_label(to_lower(kind))):
            yield invalid(path / member, kind, _MIXED + ",".join(errors))
    yield from _validate_labels(names.short_names, path / "shortNames")
    if names.kind and names.kind == names.list_kind:
        yield invalid(path / "listKind", names.list_kind, SAME_NAME)
    yield from _validate_labels(names.categories, path / "categories")


def _validate_labels(labels: list[str], path: Path) -> Iterator[FieldError]:
    for index, label in enumerate(labels):
        if errors := is_dns1035_label(label):
            yield invalid(path[index], label, ",".join(errors))


def require_names(names: CustomResourceDefinitionNames, path: Path) -> Iterator[FieldError]:
    """Yield errors for missing required names of a spec."""
    for name, member in (
        (names.plural, "plural"),
        (names.singular, "singular"),
        (names.kind, "kind"),
        (names.list_kind, "listKind"),
    ):
        if not name:
            yield required(path / member)
