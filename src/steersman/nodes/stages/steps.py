"""Actions of a stage, prepared for execution: events, finalizers, patches from templates, deletion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from steersman.client.client import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from steersman.machinery.codec import yaml
from steersman.machinery.errors.status import StatusError
from steersman.machinery.go.strings import trim_space
from steersman.nodes.stages.declaration import (
    NODES,
    PODS,
    Apply,
    Event,
    Finalizers,
    Impersonation,
    Patch,
    ResourceRef,
    StageError,
    Step,
)
from steersman.nodes.stages.functions import functions_of_kind
from steersman.nodes.stages.go_template.builtins import Function
from steersman.nodes.stages.go_template.template import Template
from steersman.nodes.stages.go_template.values import TemplateError, Value

_MOST_NAME: Final = 253
"""Characters of a kind or apiVersion."""
_MEDIA: Final = {
    "apply": APPLY_PATCH,
    "json": JSON_PATCH,
    "merge": MERGE_PATCH,
    "strategic": STRATEGIC_MERGE_PATCH,
}


@dataclass(frozen=True, slots=True)
class PreparedPatch:
    """Patch with a parsed template."""

    template: Template
    root: str
    subresource: str
    media: str
    user: str = ""
    """Name of the user who is impersonated; "" for none."""

    def body(self, data: Value, functions: Mapping[str, Function]) -> Any:
        """Return the patch for an object. Raises TemplateError if the rendered text is no valid patch."""
        value = _rendered(self.template, data, functions)
        if self.media != JSON_PATCH:
            if self.root:
                return {self.root: value}
            if not isinstance(value, dict):
                raise TemplateError("the text is no patch: it is not an object")
            return value
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise TemplateError("the text is no JSON patch: it is not a list of operations")
        if self.root:
            return [{**each, "path": f"/{self.root}{each.get('path', '')}"} for each in value]
        return value


@dataclass(frozen=True, slots=True)
class PreparedApply:
    """Another object with a parsed template."""

    template: Template
    subresource: str
    media: str
    user: str = ""
    """Name of the user who is impersonated; "" for none."""

    def object(self, data: Value, functions: Mapping[str, Function]) -> dict[str, Any]:
        """Return the object. Raises TemplateError if the rendered text is none."""
        value = _rendered(self.template, data, functions)
        metadata = value.get("metadata") if isinstance(value, dict) else None
        if not isinstance(value, dict) or not isinstance(metadata, dict):
            raise TemplateError("the text is no object with metadata")
        names = value.get("apiVersion"), value.get("kind")
        if not all(isinstance(each, str) and 0 < len(each) <= _MOST_NAME for each in names):
            raise TemplateError("template must include apiVersion and kind")
        if not all(isinstance(metadata.get(each, ""), str) for each in ("name", "namespace", "generateName")):
            raise TemplateError("the text is no object: name and namespace are no texts")
        return value


def _rendered(template: Template, data: Value, functions: Mapping[str, Function]) -> Any:
    """Return the YAML of a rendered template. Raises TemplateError."""
    try:
        value, _ = yaml.load(template.render(data, functions).encode(errors="replace"))
    except yaml.YAMLError as error:
        raise TemplateError(f"the text is no YAML: {error}") from None
    except StatusError as error:
        raise TemplateError(f"the text is no patch: {error}") from None
    return value


@dataclass(frozen=True, slots=True)
class PreparedStep:
    """Actions of one step, done in the order of these fields."""

    event: Event | None
    finalizers: Finalizers | None
    delete: bool
    patch: PreparedPatch | None
    apply: PreparedApply | None = None


def prepared(step: Step, reference: ResourceRef) -> PreparedStep:
    """Prepare a step of a stage for a kind. Raises StageError for a template that cannot be parsed."""
    return PreparedStep(
        step.event,
        step.finalizers,
        step.delete,
        None if step.patch is None else _patch(step.patch, reference),
        None if step.apply is None else _apply(step.apply, reference),
    )


def _patch(patch: Patch, reference: ResourceRef) -> PreparedPatch:
    usual = "strategic" if reference in (PODS, NODES) else "merge"
    return PreparedPatch(
        _template(patch.template, reference),
        patch.root,
        patch.subresource,
        _MEDIA[patch.type or usual],
        _user(patch.impersonation),
    )


def _apply(apply: Apply, reference: ResourceRef) -> PreparedApply:
    return PreparedApply(
        _template(apply.template, reference),
        apply.subresource,
        _MEDIA[apply.type or "apply"],
        _user(apply.impersonation),
    )


def _template(source: str, reference: ResourceRef) -> Template:
    try:
        return Template(trim_space(source), functions_of_kind(reference))
    except TemplateError as error:
        raise StageError(f"template: {error}") from None


def _user(impersonation: Impersonation | None) -> str:
    return "" if impersonation is None else impersonation.username


def finalizer_operations(present: Sequence[str], wanted: Finalizers) -> list[dict[str, Any]]:
    """Return the JSON patch that changes an object's finalizers as wanted; empty if nothing has to change."""
    add, remove = [each.value for each in wanted.add], {each.value for each in wanted.remove}
    at = [number for number, each in enumerate(present) if each in remove]
    if not (wanted.empty or (remove and len(at) == len(present))):
        operations = [{"op": "remove", "path": f"/metadata/finalizers/{number}"} for number in reversed(at)]
        if add and present:
            return operations + [
                {"op": "add", "path": "/metadata/finalizers/-", "value": each} for each in add if each not in present
            ]
        return operations + _all_of(add)
    operations = [{"op": "remove", "path": "/metadata/finalizers"}] if present else []
    return operations + _all_of(add)


def _all_of(finalizers: list[str]) -> list[dict[str, Any]]:
    return [{"op": "add", "path": "/metadata/finalizers", "value": finalizers}] if finalizers else []
