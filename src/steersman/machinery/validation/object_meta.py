"""Validation of object metadata on create and update.

Follows k8s.io/apimachinery `api/validation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from steersman.machinery.errors import field
from steersman.machinery.errors.field import FieldError, Path, quote
from steersman.machinery.go.strings import to_lower
from steersman.machinery.validation.formats import (
    are_known_qualified_names,
    are_usual_labels,
    is_dns1123_label,
    is_dns1123_subdomain,
    is_long_name,
    is_path_segment_name,
    is_path_segment_prefix,
    is_qualified_name,
    total_length,
)
from steersman.machinery.validation.leaves import FIELD_IMMUTABLE, validate_nonnegative, validate_qualified_name
from steersman.machinery.validation.managed_fields import validate_managed_fields
from steersman.machinery.validation.selectors import validate_labels
from steersman.work.threads import paced

if TYPE_CHECKING:
    from steersman.api.meta.v1 import ObjectMeta, OwnerReference

TOTAL_ANNOTATION_SIZE_LIMIT: Final = 256 * 1024
"""The most bytes of all keys and values of an object's annotations together."""

FINALIZER_ORPHAN: Final = "orphan"
FINALIZER_FOREGROUND: Final = "foregroundDeletion"

_METADATA: Final = Path("metadata")
_NAME_REQUIRED: Final = "name or generateName is required"
_IMMUTABLE: Final = {
    "name": "name",
    "namespace": "namespace",
    "uid": "uid",
    "creation_timestamp": "creationTimestamp",
    "deletion_timestamp": "deletionTimestamp",
    "deletion_grace_period_seconds": "deletionGracePeriodSeconds",
}
_immutable: Final = attrgetter(*_IMMUTABLE)
STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_NOT_QUALIFIED: Final = "name is neither a standard finalizer name nor is it fully qualified"
_BANNED_OWNERS: Final = frozenset({("v1", "Event")})

NameValidator = Callable[[str, bool], list[str]]
"""A function that returns messages about a name. Its second argument is True for a `generateName`, a prefix of a name.
"""


def _with_prefixes(check: Callable[[str], list[str]]) -> NameValidator:
    """Return a name validator that judges a prefix ending in a dash as if more characters followed."""

    def validate(name: str, prefix: bool) -> list[str]:
        """Return error texts for a name, or with `prefix` for one to which a generated suffix is added; empty if it is
        valid.
        """
        if prefix and len(name) > 1 and name.endswith("-"):
            # a character outside of ASCII must stay, so that it is refused
            kept = name[:-2] if name[-2].isascii() else name[:-1]
            name = f"{kept}a"
        return check(name)

    return validate


name_is_dns_subdomain: Final = _with_prefixes(is_dns1123_subdomain)
name_is_dns_label: Final = _with_prefixes(is_dns1123_label)
validate_namespace_name: Final = name_is_dns_label
validate_service_account_name: Final = name_is_dns_subdomain


def name_is_long_name(name: str, prefix: bool) -> list[str]:
    """Check a DNS subdomain in the words of declarative validation, which judges only names that are complete."""
    return [] if prefix else is_long_name(name)


def name_is_path_segment(name: str, prefix: bool) -> list[str]:
    """Check a name that may have all characters that a URL's path segment allows, e.g. of roles and bindings."""
    if "/" not in name and "%" not in name and name not in (".", ".."):
        return []
    return is_path_segment_prefix(name) if prefix else is_path_segment_name(name)


def validate_object_meta(
    meta: ObjectMeta, *, namespaced: bool, name_validator: NameValidator, path: Path, names_only: bool = False
) -> Iterator[FieldError]:
    """Validate the metadata of an object to be stored; with `names_only` the rest is already known to be valid."""
    if meta.generate_name:
        for message in name_validator(meta.generate_name, True):
            yield field.invalid(path / "generateName", meta.generate_name, message)
    if not meta.name:
        yield field.required(path / "name", _NAME_REQUIRED)
    else:
        for message in name_validator(meta.name, False):
            yield field.invalid(path / "name", meta.name, message)
    if names_only:
        return
    if namespaced:
        if not meta.namespace:
            yield field.required(path / "namespace")
        else:
            for message in is_dns1123_label(meta.namespace):
                yield field.invalid(path / "namespace", meta.namespace, message)
    elif meta.namespace:
        yield field.forbidden(path / "namespace", "not allowed on this type")
    if meta.generation < 0:
        yield from validate_nonnegative(meta.generation, path / "generation")
    if not are_usual_labels(meta.labels):
        yield from validate_labels(meta.labels, path / "labels")
    if meta.annotations:
        yield from validate_annotations(meta.annotations, path / "annotations")
    if meta.owner_references:
        yield from validate_owner_references(meta.owner_references, path / "ownerReferences")
    if meta.finalizers:
        yield from validate_finalizers(meta.finalizers, path / "finalizers")
    if meta.managed_fields:
        yield from validate_managed_fields(meta.managed_fields, path / "managedFields")


def validate_new_metadata(
    meta: ObjectMeta,
    *,
    namespaced: bool,
    name_validator: NameValidator,
    names_only: bool = False,
    any_finalizers: bool = False,
) -> Iterator[FieldError]:
    """Validate the metadata of a new object of a built-in kind. See `validate_object_meta` for `names_only`.

    With `any_finalizers` finalizers need no domain, as in custom resources.
    """
    errors = validate_object_meta(
        meta, namespaced=namespaced, name_validator=name_validator, path=_METADATA, names_only=names_only
    )
    if meta.finalizers and not any_finalizers:
        return chain(errors, validate_standard_finalizers(meta.finalizers, _METADATA / "finalizers"))
    return errors


def validate_object_meta_update(
    new: ObjectMeta, old: ObjectMeta, path: Path, *, is_valid: bool = False
) -> Iterator[FieldError]:
    """Validate the changes of an update to the metadata. The strategy validates finalizers.

    With `is_valid` the metadata has passed `validate_object_meta`, so the checks that both share are skipped.
    """
    if old.deletion_timestamp is not None:
        yield from validate_no_new_finalizers(new.finalizers, old.finalizers, path / "finalizers")
    if not new.resource_version:
        yield field.invalid(path / "resourceVersion", new.resource_version, "must be specified for an update")
    if new.generation < old.generation:
        yield field.invalid(path / "generation", new.generation, "must not be decremented")
    now, then = _immutable(new), _immutable(old)
    if now != then:
        for name, value, before in zip(_IMMUTABLE.values(), now, then, strict=True):
            if value != before:
                yield field.invalid(path / name, value, FIELD_IMMUTABLE)
    if is_valid:
        return
    if not are_usual_labels(new.labels):
        yield from validate_labels(new.labels, path / "labels")
    if new.annotations:
        yield from validate_annotations(new.annotations, path / "annotations")
    if new.owner_references:
        yield from validate_owner_references(new.owner_references, path / "ownerReferences")
    if new.managed_fields:
        yield from validate_managed_fields(new.managed_fields, path / "managedFields")


def validate_annotations(annotations: Mapping[str, str], path: Path) -> Iterator[FieldError]:
    """Validate annotations: the format of the keys, in upper or lower case, and the total size."""
    if not are_known_qualified_names(annotations):
        for key in paced(annotations):
            for message in is_qualified_name(key) and is_qualified_name(to_lower(key)):
                yield field.invalid(path, key, message)
    if total_length(annotations, annotations.values(), most=TOTAL_ANNOTATION_SIZE_LIMIT) > TOTAL_ANNOTATION_SIZE_LIMIT:
        yield field.too_long(path, TOTAL_ANNOTATION_SIZE_LIMIT)


def validate_owner_references(references: Sequence[OwnerReference], path: Path) -> Iterator[FieldError]:
    """Validate owner references: each complete, at most one the controller."""
    controller = ""
    for reference in references:
        yield from _validate_owner_reference(reference, path)
        if not reference.controller:
            continue
        owner = f"{reference.kind}/{reference.name}"
        if controller:
            text = (
                "Only one reference can have Controller set to true. "
                f'Found "true" in references for {controller} and {owner}'
            )
            yield field.invalid(path, references, text)
        else:
            controller = owner


def _validate_owner_reference(reference: OwnerReference, path: Path) -> Iterator[FieldError]:
    if not _version(reference.api_version):
        yield field.invalid(path / "apiVersion", reference.api_version, "version must not be empty")
    if not reference.kind:
        yield field.invalid(path / "kind", reference.kind, "must not be empty")
    if not reference.name:
        yield field.invalid(path / "name", reference.name, "must not be empty")
    if not reference.uid:
        yield field.invalid(path / "uid", reference.uid, "must not be empty")
    version = reference.api_version.removeprefix("/")
    if (version, reference.kind) in _BANNED_OWNERS:
        text = f"/{version}, Kind={reference.kind} is disallowed from being an owner"
        yield field.invalid(path, reference, text)


def _version(api_version: str) -> str:
    """Return the version in an apiVersion, "" where upstream finds none: for `group/` and for two slashes."""
    return "" if api_version.count("/") > 1 else api_version.rpartition("/")[2]


def validate_finalizers(finalizers: Sequence[str], path: Path) -> Iterator[FieldError]:
    """Validate the format of finalizers, and that not both kinds of cascading deletion are set."""
    for finalizer in paced(finalizers):
        yield from validate_qualified_name(finalizer, path)
    if FINALIZER_ORPHAN in finalizers and FINALIZER_FOREGROUND in finalizers:
        text = f"finalizer {FINALIZER_ORPHAN} and {FINALIZER_FOREGROUND} cannot be both set"
        yield field.invalid(path, list(finalizers), text)


def validate_standard_finalizers(finalizers: Sequence[str], path: Path) -> Iterator[FieldError]:
    """Validate that finalizers of built-in kinds are standard ones or have a domain; `path` is that of the list."""
    for index, name in enumerate(finalizers):
        if "/" not in name and name not in STANDARD_FINALIZERS:
            yield field.invalid(path[index], name, _NOT_QUALIFIED)


def validate_no_new_finalizers(new: Sequence[str], old: Sequence[str], path: Path) -> Iterator[FieldError]:
    """Validate that an object that is being deleted gets no more finalizers."""
    extra = sorted(set(new).difference(old))
    if extra:
        names = ", ".join(map(quote, extra))
        text = (
            f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{names}}}"
        )
        yield field.forbidden(path, text)
