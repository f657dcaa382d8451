"""Built-in kinds whose internal type upstream differs from the sent object (`FieldManager.view`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


def daemon_set_view(obj: Any) -> Any:
    """Return a DaemonSet with the annotation of the internal type's templateGeneration, which is 0 if it is missing."""
    annotations = obj.metadata.annotations
    if TEMPLATE_GENERATION in annotations:
        return obj
    return replace(obj, metadata=replace(obj.metadata, annotations={**annotations, TEMPLATE_GENERATION: "0"}))


VIEWS: Final[Mapping[tuple[str, str], Callable[[Any], Any]]] = {("apps", "daemonsets"): daemon_set_view}
"""The view functions by group and resource."""
