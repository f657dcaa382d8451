"""Stage objects of kwok (kwok.x-k8s.io/v1alpha1, kind Stage), parsed from manifests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from steersman.machinery.suggestions import explain_validation_error

API_GROUP: Final = "kwok.x-k8s.io"
API_VERSION: Final = f"{API_GROUP}/v1alpha1"
KINDS: Final = ("Pod", "Node")
"""Kinds of the API version `v1` that may have stages."""


class StageError(ValueError):
    """A stage cannot be used. The text names the stage and the reason."""


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Part of a Stage. Unknown fields are errors, as they would be ignored silently otherwise."""


class ResourceRef(_Strict, frozen=True):
    """Kind of the objects that a stage is for."""

    api_group: str = "v1"
    kind: str = ""


class Requirement(_Strict, frozen=True):
    """Requirement for the result of a jq path. Values are strings; booleans and whole numbers count as their text."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()


class MatchExpression(_Strict, frozen=True):
    """Requirement of a selector, in `jq` or in the older form of fields beside it."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()
    jq: Requirement | None = None
    cel: dict[str, Any] | None = None


class Selector(_Strict, frozen=True):
    """Selector of objects, all parts of which must match; an empty one selects every object."""

    match_labels: dict[str, str] = {}
    match_annotations: dict[str, str] = {}
    match_expressions: tuple[MatchExpression, ...] = ()


class JQExpression(_Strict, frozen=True):
    expression: str


class ExpressionFrom(_Strict, frozen=True):
    """Expression that finds a value in the object."""

    expression_from: str = ""
    jq: JQExpression | None = None
    cel: dict[str, Any] | None = None


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


class Step(_Strict, frozen=True):
    """One action of a stage, or several in the order of these fields."""

    event: Event | None = None
    finalizers: Finalizers | None = None
    delete: bool = False
    patch: Patch | None = None
    apply: dict[str, Any] | None = None


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
    if reference.api_group != "v1" or reference.kind not in KINDS:
        named = f"{reference.kind} ({reference.api_group})"
        yield f"spec.resourceRef: stages of {named} are not followed: only of Pod and Node"
    delay = spec.delay or Delay()
    sources = {
        "weightFrom": spec.weight_from,
        "delay.durationFrom": delay.duration_from,
        "delay.jitterDurationFrom": delay.jitter_duration_from,
    }
    yield from (
        f"spec.{where}.cel is not evaluated" for where, each in sources.items() if each is not None and each.cel
    )
    for at, expression in enumerate(spec.selector.match_expressions if spec.selector is not None else ()):
        if expression.cel is not None:
            yield f"spec.selector.matchExpressions[{at}].cel is not evaluated"
        if expression.jq is None and not expression.key:
            yield f"spec.selector.matchExpressions[{at}]: invalid expression"
    if spec.weight < 0:
        yield "spec.weight is less than 0"
    for milliseconds in (delay.duration_milliseconds, delay.jitter_duration_milliseconds):
        if milliseconds is not None and not 0 <= milliseconds < 1 << 50:
            yield f"spec.delay: {milliseconds} milliseconds"
    for at, step in enumerate(steps_of(spec)):
        if step.apply is not None:
            yield f"spec.steps[{at}].apply: other objects are not applied"
        if step.patch is not None and step.patch.impersonation is not None:
            yield "nobody is impersonated: impersonation and statusPatchAs are refused"


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
