"""Conversion of access reviews (authorization/v1): a spec to attributes, and a verdict to a status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeVar

from steersman.api.authorization.v1 import (
    FieldSelectorAttributes,
    LabelSelectorAttributes,
    NonResourceAttributes,
    NonResourceRule,
    ResourceAttributes,
    ResourceRule,
    SubjectAccessReviewSpec,
    SubjectAccessReviewStatus,
    SubjectRulesReviewStatus,
)
from steersman.api.meta.v1 import FieldSelectorRequirement, LabelSelectorRequirement
from steersman.authentication.aggregate import aggregate
from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import LONGEST_SELECTOR, TOO_LONG, Attributes, Selectors
from steersman.authorization.interface import ResolvedRules, Verdict
from steersman.machinery.errors.field import quote
from steersman.machinery.identity.action import Action
from steersman.machinery.selectors import fields, labels

_LABEL_OPERATORS: Final = {
    "In": labels.IN,
    "NotIn": labels.NOT_IN,
    "Exists": labels.EXISTS,
    "DoesNotExist": labels.DOES_NOT_EXIST,
}

R = TypeVar("R")
_Parsed = tuple[tuple[R, ...], str]
"""The requirements that could be parsed, and the error text for the others."""


def subject_of(spec: SubjectAccessReviewSpec) -> UserInfo:
    """Return the user in a review's spec."""
    extra = MappingProxyType({key: tuple(values) for key, values in spec.extra.items()})
    return UserInfo(spec.user, spec.uid, tuple(spec.groups), extra)


def review_attributes(
    user: UserInfo,
    resource_attributes: ResourceAttributes | None,
    non_resource_attributes: NonResourceAttributes | None,
) -> Attributes:
    """Return the attributes of a valid review about `user`.

    `user` is `subject_of` the spec or, for a self review, the request user. Selectors of more than LONGEST_SELECTOR
    characters are ignored, as in requests. Raises ValueError if both kinds of attributes are None.
    """
    if resource_attributes is not None:
        return _resource_attributes(user, resource_attributes)
    if non_resource_attributes is not None:
        return Attributes(user, Action(non_resource_attributes.verb), path=non_resource_attributes.path)
    raise ValueError("a review asks about resource attributes or non-resource attributes")


def review_status(verdict: Verdict, attributes: Attributes) -> SubjectAccessReviewStatus:
    """Return a review's status for the verdict on `attributes`."""
    errors = [verdict.error] if verdict.error else []
    limits = attributes.selectors
    for name, requirements, error in (
        ("fieldSelector", limits.fields, limits.field_error),
        ("labelSelector", limits.labels, limits.label_error),
    ):
        if error:
            how = "partially ignored" if requirements else "ignored"
            errors.append(f"spec.resourceAttributes.{name} {how} due to parse error")
    return SubjectAccessReviewStatus(
        allowed=verdict.allowed, denied=verdict.denied, reason=verdict.reason, evaluation_error="; ".join(errors)
    )


def rules_review_status(resolved: ResolvedRules) -> SubjectRulesReviewStatus:
    """Return the status of a SelfSubjectRulesReview."""
    return SubjectRulesReviewStatus(
        resource_rules=[
            ResourceRule(
                verbs=rule.verbs,
                api_groups=rule.api_groups,
                resources=rule.resources,
                resource_names=rule.resource_names,
            )
            for rule in resolved.resource_rules
        ],
        non_resource_rules=[
            NonResourceRule(verbs=rule.verbs, non_resource_urls=rule.non_resource_urls)
            for rule in resolved.non_resource_rules
        ],
        incomplete=resolved.incomplete,
        evaluation_error=resolved.error,
    )


def _resource_attributes(user: UserInfo, resource: ResourceAttributes) -> Attributes:
    field_requirements, field_error = _requirements(
        resource.field_selector, _field_requirements, lambda text: fields.parse(text).requirements
    )
    label_requirements, label_error = _requirements(
        resource.label_selector, _label_requirements, lambda text: labels.parse(text).requirements
    )
    action = Action(
        resource.verb,
        resource.group,
        resource.version or "*",
        resource.resource,
        resource.subresource,
        resource.namespace,
        resource.name,
    )
    limits = Selectors(field_requirements, field_error, label_requirements, label_error)
    return Attributes(user, action, limits=limits)


def _is_long(requirements: Iterable[LabelSelectorRequirement | FieldSelectorRequirement]) -> bool:
    """Return True if the requirements as text would be longer than LONGEST_SELECTOR."""
    length = 0
    for each in requirements:
        length += len(each.key) + len(each.operator) + len(each.values) + sum(map(len, each.values))
        if length > LONGEST_SELECTOR:
            return True
    return False


def _requirements(
    selector: LabelSelectorAttributes | FieldSelectorAttributes | None,
    judged: Callable[[Any], _Parsed[R]],
    parsed: Callable[[str], Iterable[R]],
) -> _Parsed[R]:
    """Return a selector's requirements: converted by `judged` if given as a list, else by `parsed` from its text."""
    if selector is None:
        return (), ""
    if selector.requirements:
        return ((), TOO_LONG) if _is_long(selector.requirements) else judged(selector.requirements)
    if len(selector.raw_selector) > LONGEST_SELECTOR:
        return (), TOO_LONG
    try:
        return tuple(parsed(selector.raw_selector)), ""
    except (labels.SelectorError, fields.SelectorError) as error:
        return (), str(error)


def _label_requirements(requirements: Iterable[LabelSelectorRequirement]) -> _Parsed[labels.Requirement]:
    """Convert label requirements. Leaving out invalid ones only widens the question, as all requirements must hold."""
    found: list[labels.Requirement] = []
    errors: list[str] = []
    for each in requirements:
        operator = _LABEL_OPERATORS.get(each.operator)
        if operator is None:
            errors.append(f"{quote(each.operator)} is not a valid label selector operator")
            continue
        try:
            found.append(labels.new_requirement(each.key, operator, each.values))
        except labels.SelectorError as error:
            errors.append(str(error))
    return tuple(found), aggregate(errors)


def _field_requirements(requirements: Iterable[FieldSelectorRequirement]) -> _Parsed[fields.Requirement]:
    found: list[fields.Requirement] = []
    errors: list[str] = []
    for each in requirements:
        error = _field_requirement_error(each.operator, each.values)
        if error:
            errors.append(error)
        else:
            operator = fields.EQUALS if each.operator == "In" else fields.NOT_EQUALS
            found.append(fields.Requirement(each.key, operator, each.values[0]))
    return tuple(found), aggregate(errors)


def _field_requirement_error(operator: str, values: Sequence[str]) -> str:
    """Return the error if a requirement is not supported in field selectors, which compare with one value; else ""."""
    if len(values) > 1:
        return "fieldSelectors do not yet support multiple values"
    if operator in ("Exists", "DoesNotExist"):
        return f"fieldSelectors do not yet support {operator}"
    if operator not in ("In", "NotIn"):
        return f"{quote(operator)} is not a valid field selector operator"
    if not values:
        return f"fieldSelectors {'in' if operator == 'In' else 'not in'} must have one value"
    return ""
