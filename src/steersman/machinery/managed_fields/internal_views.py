"""Built-in kinds whose internal type, upstream, says something else than what was sent (`FieldManager.view`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


def daemon_set_view(obj: Any) -> Any:
    """A DaemonSet with the annotation that stands for the internal type's templateGeneration, 0 if it has none."""
    annotations = obj.metadata.annotations
    if TEMPLATE_GENERATION in annotations:
        return obj
    return replace(obj, metadata=replace(obj.metadata, annotations={**annotations, TEMPLATE_GENERATION: "0"}))


VIEWS: Final[Mapping[tuple[str, str], Callable[[Any], Any]]] = {("apps", "daemonsets"): daemon_set_view}
"""By group and resource."""
