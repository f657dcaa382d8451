"""Structured annotations of nodes: taints and pods to avoid, from before these had fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final

from steersman.api.core.v1 import Taint
from steersman.api.meta.v1 import OwnerReference
from steersman.machinery.codec.go_json import internal, unmarshal, with_wire_names
from steersman.machinery.codec.go_types import GoMember, GoType, struct_of
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.field import FieldError, Path, invalid, required

TAINTS: Final = "scheduler.alpha.kubernetes.io/taints"
PREFER_AVOID_PODS: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"


@cache
def _taints() -> GoType:
    return internal(GoType("list", "[]v1.Taint", element=struct_of(Taint)), "core")


def _struct(name: str, **members: GoType) -> GoType:
    of_name = {member: GoMember(type_, ()) for member, type_ in members.items()}
    return GoType("struct", f"v1.{name}", pointer=True, members=of_name)


_TEXT: Final = GoType("string", "string")
_OWNER: Final = GoType("struct", "v1.OwnerReference", name=struct_of(OwnerReference).name, pointer=True)
_ENTRY: Final = _struct(
    "PreferAvoidPodsEntry",
    podSignature=_struct("PodSignature", podController=_OWNER),
    evictionTime=GoType("own", "v1.Time", name="meta.v1.Time"),
    reason=_TEXT,
    message=_TEXT,
)
_AVOID_PODS: Final = _struct(
    "AvoidPods", preferAvoidPods=GoType("list", "[]v1.PreferAvoidPodsEntry", element=_ENTRY, pointer=True)
)
"""The type of the annotation's JSON, written by hand, as no resource has it and so no class is generated."""


def validate_node_annotations(
    annotations: dict[str, str], path: Path, validate_taints: Callable[[Sequence[Taint], Path], Iterator[FieldError]]
) -> Iterator[FieldError]:
    """Yield errors of annotations that cannot be parsed or lack required members."""
    if text := annotations.get(TAINTS):
        taints, fault = _read(text, _taints())
        if fault:
            yield invalid(path, TAINTS, fault)
        else:
            yield from validate_taints(from_plain(list[Taint], with_wire_names(taints or [])), path / TAINTS)
    if text := annotations.get(PREFER_AVOID_PODS):
        avoid, fault = _read(text, _AVOID_PODS)
        if fault:
            yield invalid(path / "AvoidPods", PREFER_AVOID_PODS, fault)
        elif avoid:
            yield from _validate_avoided(avoid, path / PREFER_AVOID_PODS)


def _validate_avoided(avoid: dict[str, Any], path: Path) -> Iterator[FieldError]:
    for index, entry in enumerate(avoid.get("preferAvoidPods") or ()):
        controller = ((entry or {}).get("podSignature") or {}).get("podController")
        if controller is None:
            yield required(path[index] / "PodSignature")
        elif not controller.get("controller"):
            controller_path = path[index].child("PodSignature", "PodController", "Controller")
            yield invalid(controller_path, False, "must point to a controller")


def _read(text: str, type_: GoType) -> tuple[Any, str]:
    """Return the decoded annotation, or the reason why it cannot be decoded."""
    try:
        return unmarshal(type_, text.encode()), ""
    except DecodeError as error:
        return None, str(error)
