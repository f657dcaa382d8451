"""Validation of access reviews (kubernetes `pkg/apis/authorization/validation`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from steersman.api.authorization.v1 import (
    FieldSelectorAttributes,
    LabelSelectorAttributes,
    LocalSubjectAccessReview,
    NonResourceAttributes,
    ResourceAttributes,
    SelfSubjectAccessReview,
    SubjectAccessReview,
    SubjectAccessReviewSpec,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, required
from steersman.machinery.validation.formats import is_qualified_name, is_valid_label_value

_SPEC: Final = Path("spec")


def validate_subject_access_review(review: SubjectAccessReview) -> Iterator[FieldError]:
    """Yield the field errors of a SubjectAccessReview."""
    yield from _validate_subject_spec(review.spec)
    yield from _validate_metadata(review.metadata, "must be empty", replace(review.metadata, managed_fields=[]))


def validate_self_subject_access_review(review: SelfSubjectAccessReview) -> Iterator[FieldError]:
    """Yield the field errors of a SelfSubjectAccessReview, whose user is the request user."""
    yield from _validate_question(review.spec.resource_attributes, review.spec.non_resource_attributes)
    yield from _validate_resource_attributes(review.spec.resource_attributes)
    yield from _validate_metadata(review.metadata, "must be empty", replace(review.metadata, managed_fields=[]))


def validate_local_subject_access_review(review: LocalSubjectAccessReview) -> Iterator[FieldError]:
    """Yield the field errors of a LocalSubjectAccessReview, which may only ask about resources of its own namespace."""
    yield from _validate_subject_spec(review.spec)
    allowed = replace(review.metadata, managed_fields=[], namespace="")
    yield from _validate_metadata(review.metadata, "must be empty except for namespace", allowed)
    resource, other = review.spec.resource_attributes, review.spec.non_resource_attributes
    if resource is not None and resource.namespace != review.metadata.namespace:
        path = _SPEC.child("resourceAttributes", "namespace")
        yield invalid(path, resource.namespace, "must match metadata.namespace")
    if other is not None:
        yield invalid(_SPEC / "nonResourceAttributes", _shown(other), "disallowed on this kind of request")


def _validate_subject_spec(spec: SubjectAccessReviewSpec) -> Iterator[FieldError]:
    yield from _validate_question(spec.resource_attributes, spec.non_resource_attributes)
    if not spec.user and not spec.groups:
        yield invalid(_SPEC / "user", spec.user, "at least one of user or group must be specified")
    yield from _validate_resource_attributes(spec.resource_attributes)


def _validate_question(
    resource: ResourceAttributes | None, non_resource: NonResourceAttributes | None
) -> Iterator[FieldError]:
    if resource is not None and non_resource is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        yield invalid(_SPEC / "nonResourceAttributes", _shown(non_resource), detail)
    if resource is None and non_resource is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield invalid(_SPEC / "resourceAttributes", None, detail)


def _shown(attributes: NonResourceAttributes) -> dict[str, str]:
    """Return the attributes as upstream's error messages print them: the internal type has no JSON names."""
    return {"Path": attributes.path, "Verb": attributes.verb}


def _validate_metadata(metadata: ObjectMeta, detail: str, counted: ObjectMeta) -> Iterator[FieldError]:
    if counted != ObjectMeta():
        yield invalid(Path("metadata"), metadata, detail)


def _validate_resource_attributes(attributes: ResourceAttributes | None) -> Iterator[FieldError]:
    if attributes is None:
        return
    path = _SPEC / "resourceAttributes"
    if (field_selector := attributes.field_selector) is not None:
        yield from _validate_alternatives(field_selector, path / "fieldSelector")
        for index, requirement in enumerate(field_selector.requirements):
            at = (path / "fieldSelector" / "requirements")[index]
            if not requirement.key:
                yield required(at / "key", "must be specified")
            yield from _validate_values(requirement.operator, requirement.values, at / "values")
    if (label_selector := attributes.label_selector) is not None:
        yield from _validate_alternatives(label_selector, path / "labelSelector")
        for index, condition in enumerate(label_selector.requirements):
            at = (path / "labelSelector" / "requirements")[index]
            yield from _validate_values(condition.operator, condition.values, at / "values")
            for message in is_qualified_name(condition.key):
                yield invalid(at / "key", condition.key, message)
            for place, value in enumerate(condition.values):
                for message in is_valid_label_value(value):
                    yield invalid((at / "values")[place], value, message)


def _validate_alternatives(
    selector: FieldSelectorAttributes | LabelSelectorAttributes, path: Path
) -> Iterator[FieldError]:
    if selector.raw_selector and selector.requirements:
        yield invalid(path / "rawSelector", selector.raw_selector, "may not specified at the same time as requirements")
    if not selector.raw_selector and not selector.requirements:
        yield required(path / "requirements", f"when {path} is specified, requirements or rawSelector is required")


def _validate_values(operator: str, values: Sequence[str], path: Path) -> Iterator[FieldError]:
    """Validate the number of values. An unknown operator is no error: newer clients may know it, and it only
    narrows.
    """
    if operator in ("In", "NotIn") and not values:
        yield required(path, "must be specified when `operator` is 'In' or 'NotIn'")
    if operator in ("Exists", "DoesNotExist") and values:
        yield forbidden(path, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
