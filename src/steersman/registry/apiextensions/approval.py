"""Approval of API groups that belong to the Kubernetes community (apiextensions.k8s.io `apihelpers`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from steersman.api.apiextensions.v1 import CustomResourceDefinition
from steersman.machinery.errors.field import FieldError, Path, invalid, required
from steersman.machinery.go.urls import UrlError, parse

ANNOTATION: Final = "api-approved.kubernetes.io"
APPROVED: Final = "approved"
BYPASSED: Final = "unapproved"
MISSING: Final = "missing"
INVALID: Final = "invalid"

_PROTECTED: Final = ("k8s.io", "kubernetes.io")
_PATH: Final = Path("metadata", "annotations")[ANNOTATION]
_SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"
_NEEDED: Final = f'protected groups must have approval annotation "{ANNOTATION}"'


def is_protected(group: str) -> bool:
    """Return True if kinds of the group need the approval annotation."""
    return group in _PROTECTED or group.endswith(tuple(f".{name}" for name in _PROTECTED))


def approval(annotations: Mapping[str, str]) -> tuple[str, str]:
    """Return the approval state of a definition, one of the constants above, and upstream's reason for it."""
    said = annotations.get(ANNOTATION, "")
    if not said:
        return MISSING, f"{_NEEDED}, {_SEE}"
    if said.startswith("unapproved"):
        return BYPASSED, f'not approved: "{said}"'
    try:
        url = parse(said, of_request=True)
    except UrlError:
        pass
    else:
        if url.host and url.scheme:
            return APPROVED, f"approved in {said}"
    return INVALID, f'{_NEEDED} with either a URL or a reason starting with "unapproved", {_SEE}'


def validate_approval(new: CustomResourceDefinition, old: CustomResourceDefinition | None) -> Iterator[FieldError]:
    """Validate the approval annotation; an update that does not change the state is never refused."""
    if not is_protected(new.spec.group):
        return
    state, reason = approval(new.metadata.annotations)
    if old is not None and approval(old.metadata.annotations)[0] == state:
        return
    if state == MISSING:
        yield required(_PATH, reason)
    elif state == INVALID:
        yield invalid(_PATH, new.metadata.annotations[ANNOTATION], reason)
