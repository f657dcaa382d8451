"""Classes of storage and of ingress: how objects name theirs, and which is the default."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""What `spec.storageClassName` was before there was such a field."""
INGRESS_CLASS: Final = "kubernetes.io/ingress.class"
"""What `spec.ingressClassName` was before there was such a field."""
DEFAULT_STORAGE_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
DEFAULT_INGRESS_CLASS: Final = ("ingressclass.kubernetes.io/is-default-class",)
"""Annotations, one of which makes a class the default with `true`."""


def is_default(obj: Any, annotations: Iterable[str]) -> bool:
    """Whether objects that name no class get this one."""
    return any(obj.metadata.annotations.get(each) == "true" for each in annotations)


def storage_class_of(obj: Any) -> str:
    """The class of a claim or volume, "" if it names none."""
    name: str | None = obj.metadata.annotations.get(STORAGE_CLASS, obj.spec.storage_class_name)
    return name or ""


class DefaultClass:
    """The default among classes: of several the newest, of those that are as old the first by name.

    `every` gives all classes; `changed` is another number after each change of one, and what was found is kept until
    then.
    """

    def __init__(
        self, annotations: Iterable[str], every: Callable[[], Iterable[Any]], changed: Callable[[], int]
    ) -> None:
        self._annotations = tuple(annotations)
        self._every = every
        self._changed = changed
        self._found: tuple[int, str | None] = (-1, None)

    def name(self) -> str | None:
        """Its name, None if there is no default."""
        now = self._changed()
        if self._found[0] != now:
            defaults = [each.metadata for each in self._every() if is_default(each, self._annotations)]
            newest = max((each.creation_timestamp or "" for each in defaults), default="")
            names = (each.name for each in defaults if (each.creation_timestamp or "") == newest)
            self._found = now, min(names, default=None)
        return self._found[1]
