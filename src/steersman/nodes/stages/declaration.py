"""Stage objects of kwok (kwok.x-k8s.io/v1alpha1, kind Stage), parsed from manifests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from steersman.machinery.suggestions import explain_validation_error

API_GROUP: Final = "kwok.x-k8s.io"
API_VERSION: Final = f"{API_GROUP}/v1alpha1"
_MOST_PARTS: Final = 256
"""Elements of a list or map in a Stage."""


_is_name: Final = re.compile("[!-~](?:[ -~]{0,251}[!-~])?", re.ASCII).fullmatch
"""Matches a name that the value of a header can have."""


class StageError(ValueError):
    """A stage cannot be used. The text names the stage and the reason."""


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Part of a Stage. Unknown fields are errors, as they would be ignored silently otherwise."""


class ResourceRef(_Strict, frozen=True):
    """Kind of the objects that a stage is for. `api_group` includes the version."""

    api_group: str = "v1"
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.kind} ({self.api_group})"


PODS: Final = ResourceRef(kind="Pod")
NODES: Final = ResourceRef(kind="Node")


class Requirement(_Strict, frozen=True):
    """Requirement for the result of a jq path. Values are strings; booleans and whole numbers count as their text."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()


class CELExpression(_Strict, frozen=True):
    """Expression of CEL over `self`."""

    expression: str = ""


class MatchExpression(_Strict, frozen=True):
    """Requirement of a selector: in `jq`, in the older form of fields beside it, or a condition in `cel`."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()
    jq: Requirement | None = None
    cel: CELExpression | None = None


class Selector(_Strict, frozen=True):
    """Selector of objects, all parts of which must match; an empty one selects every object."""

    match_labels: dict[str, str] = {}
    match_annotations: dict[str, str] = {}
    match_expressions: tuple[MatchExpression, ...] = ()


class JQExpression(_Strict, frozen=True):
    expression: str = ""


class ExpressionFrom(_Strict, frozen=True):
    """Expression that finds a value in the object."""

    expression_from: str = ""
    jq: JQExpression | None = None
    cel: CELExpression | None = None


class Delay(_Strict, frozen=True):
    """Delay of a stage: random between the duration and the jitter duration, or the jitter duration if that
    is shorter.
    """

    duration_milliseconds: int | None = None
    duration_from: ExpressionFrom | None = None
    jitter_duration_milliseconds: int | None = None
    jitter_duration_from: ExpressionFrom | None = None


class Event(_Strict, frozen=True):
    """Event about the object."""

    type: str = ""
    reason: str = ""
    message: str = ""


class Finalizer(_Strict, frozen=True):
    value: str = ""


class Finalizers(_Strict, frozen=True):
    """Change of finalizers. `empty` removes all of them before others are added."""

    add: tuple[Finalizer, ...] = ()
    remove: tuple[Finalizer, ...] = ()
    empty: bool = False


class Impersonation(_Strict, frozen=True):
    username: str = ""


class Patch(_Strict, frozen=True):
    """Patch from a template of YAML text. With `root`, the text is the value of that member."""

    subresource: str = ""
    root: str = ""
    template: str = ""
    type: Literal["json", "merge", "strategic"] | None = None
    impersonation: Impersonation | None = None


class Apply(_Strict, frozen=True):
    """Object of any kind from a template of YAML text, which is created, or patched if it exists.

    With `subresource` an existing object's subresource is patched.
    """

    template: str = ""
    subresource: str = ""
    type: Literal["apply", "merge", "strategic"] | None = None
    impersonation: Impersonation | None = None


class Step(_Strict, frozen=True):
    """One action of a stage, or several in the order of these fields."""

    event: Event | None = None
    finalizers: Finalizers | None = None
    delete: bool = False
    patch: Patch | None = None
    apply: Apply | None = None


class Next(_Strict, frozen=True):
    """Actions of a stage in the older form, before there were steps."""

    event: Event | None = None
    finalizers: Finalizers | None = None
    delete: bool = False
    patches: tuple[Patch, ...] = ()
    status_template: str = ""
    status_subresource: str | None = None
    status_patch_as: Impersonation | None = None


class Spec(_Strict, frozen=True):
    resource_ref: ResourceRef
    selector: Selector | None = None
    weight: int = 0
    weight_from: ExpressionFrom | None = None
    delay: Delay | None = None
    next: Next | None = None
    immediate_next_stage: bool | None = None
    steps: tuple[Step, ...] = ()


class Metadata(msgspec.Struct, frozen=True):
    name: str = ""


class Stage(msgspec.Struct, frozen=True, rename="camel"):
    """Stage object."""

    spec: Spec
    metadata: Metadata = Metadata()


def read_stage(manifest: Mapping[str, Any]) -> Stage:
    """Parse a Stage manifest. Raises StageError for unknown fields and for features that are not supported here."""
    name = _name_of(manifest)
    if manifest.get("apiVersion") != API_VERSION:
        raise StageError(f"Stage {name}: apiVersion {manifest.get('apiVersion')}: only {API_VERSION} is known")
    try:
        stage = msgspec.convert(dict(manifest), Stage)
    except msgspec.ValidationError as error:
        raise StageError(f"Stage {name}: {explain_validation_error(error, Stage)}") from None
    for refused in _refused(stage.spec):
        raise StageError(f"Stage {name}: {refused}")
    return stage


def _name_of(manifest: Mapping[str, Any]) -> str:
    metadata = manifest.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def _refused(spec: Spec) -> Iterator[str]:
    reference = spec.resource_ref
    if not reference.kind or not reference.api_group:
        yield "spec.resourceRef: kind and apiGroup are required"
    delay = spec.delay or Delay()
    selector = spec.selector or Selector()
    for at, expression in enumerate(selector.match_expressions):
        if expression.cel is None and expression.jq is None and not expression.key:
            yield f"spec.selector.matchExpressions[{at}]: invalid expression"
    if spec.weight < 0:
        yield "spec.weight is less than 0"
    for milliseconds in (delay.duration_milliseconds, delay.jitter_duration_milliseconds):
        if milliseconds is not None and not 0 <= milliseconds < 1 << 50:
            yield f"spec.delay: {milliseconds} milliseconds"
    steps = steps_of(spec)
    parts = (steps, selector.match_expressions, selector.match_labels, selector.match_annotations)
    if any(len(each) > _MOST_PARTS for each in parts):
        yield f"spec: a list or map of more than {_MOST_PARTS} elements"
    for step in steps:
        for acting in (step.patch, step.apply):
            if acting is not None and acting.impersonation is not None and not acting.impersonation.username:
                yield "impersonation and statusPatchAs need a username"
            elif (
                acting is not None and acting.impersonation is not None and not _is_name(acting.impersonation.username)
            ):
                yield "a username that is impersonated has more than 253 characters, or others than those of ASCII"


def reference_of(spec: Any) -> ResourceRef:
    """Return the kind that the plain spec of a stage names; an empty one if it names none."""
    try:
        return msgspec.convert(spec.get("resourceRef") if isinstance(spec, dict) else {}, ResourceRef)
    except msgspec.ValidationError:
        return ResourceRef()


def requirement_of(expression: MatchExpression) -> Requirement:
    """Return the requirement of a match expression. Raises StageError."""
    if expression.jq is not None:
        found = expression.jq
    else:
        try:
            found = msgspec.convert(
                {"key": expression.key, "operator": expression.operator, "values": expression.values}, Requirement
            )
        except msgspec.ValidationError:
            raise StageError(f'operator "{expression.operator}" is not supported') from None
    if found.operator in ("In", "NotIn") and not found.values:
        raise StageError("for 'in', 'notin' operators, values set can't be empty")
    if found.operator in ("Exists", "DoesNotExist") and found.values:
        raise StageError("values set must be empty for exists and does not exist")
    return found


def source_of(source: ExpressionFrom | None) -> str:
    """Return the jq expression of a source; "" for none."""
    if source is None:
        return ""
    return source.jq.expression if source.jq is not None else source.expression_from


def condition_of(source: ExpressionFrom | MatchExpression | None) -> str:
    """Return the expression of CEL of a source or a match expression; "" for none."""
    return "" if source is None or source.cel is None else source.cel.expression


def steps_of(spec: Spec) -> tuple[Step, ...]:
    """Return the actions of a stage in order."""
    if spec.steps or spec.next is None:
        return spec.steps
    next_ = spec.next
    steps: list[Step] = []
    if next_.event is not None:
        steps.append(Step(event=next_.event))
    if next_.finalizers is not None:
        steps.append(Step(finalizers=next_.finalizers))
    if next_.patches:
        steps += (Step(patch=each) for each in next_.patches)
    elif next_.status_template:
        subresource = "status" if next_.status_subresource is None else next_.status_subresource
        steps.append(
            Step(patch=Patch(subresource, "status", next_.status_template, impersonation=next_.status_patch_as))
        )
    if next_.delete:
        steps.append(Step(delete=True))
    return tuple(steps)
