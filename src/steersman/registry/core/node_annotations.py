"""Annotations of nodes that have a form: taints and pods to avoid, from before there were fields for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from steersman.api.core.v1 import Taint
from steersman.machinery.field import FieldError, Path, invalid, required
from steersman.machinery.json_tree import JSONSyntaxError, parse_tree
from steersman.machinery.serializer import from_plain

TAINTS: Final = "scheduler.alpha.kubernetes.io/taints"
PREFER_AVOID_PODS: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"


def validate_node_annotations(
    annotations: dict[str, str], path: Path, validate_taints: Callable[[Sequence[Taint], Path], Iterator[FieldError]]
) -> Iterator[FieldError]:
    """That what is there can be read, and holds what it must."""
    if text := annotations.get(TAINTS):
        taints, fault = _read(text, list[Taint])
        if fault:
            yield invalid(path, TAINTS, fault)
        else:
            yield from validate_taints(taints or (), path / TAINTS)
    if text := annotations.get(PREFER_AVOID_PODS):
        avoid, fault = _read(text, dict[str, Any])
        if fault:
            yield invalid(path / "AvoidPods", PREFER_AVOID_PODS, fault)
        elif avoid:
            yield from _validate_avoided(avoid, path / PREFER_AVOID_PODS)


def _validate_avoided(avoid: dict[str, Any], path: Path) -> Iterator[FieldError]:
    for index, entry in enumerate(avoid.get("preferAvoidPods") or ()):
        controller = (entry.get("podSignature") or {}).get("podController")
        if controller is None:
            yield required(path[index] / "PodSignature")
        elif not controller.get("controller"):
            place = path[index].child("PodSignature", "PodController", "Controller")
            yield invalid(place, False, "must point to a controller")


def _read(text: str, kind: Any) -> tuple[Any, str]:
    """The value in an annotation, or why it cannot be read."""
    try:
        parse_tree(text.encode())
        return from_plain(kind, msgspec.json.decode(text)), ""
    except JSONSyntaxError as error:
        return None, str(error)
    except (msgspec.MsgspecError, ValueError) as error:
        return None, f"json: {error}"
