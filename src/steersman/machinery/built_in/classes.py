"""Storage classes and ingress classes: the class that an object names, and the default class."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""The annotation that preceded `spec.storageClassName`."""
INGRESS_CLASS: Final = "kubernetes.io/ingress.class"
"""The annotation that preceded `spec.ingressClassName`."""
DEFAULT_STORAGE_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
DEFAULT_INGRESS_CLASS: Final = ("ingressclass.kubernetes.io/is-default-class",)
"""Annotations of classes: the value `true` of one of them makes a class the default."""


def is_default(obj: Any, annotations: Iterable[str]) -> bool:
    """Return True if a class is the default according to one of the annotations."""
    return any(obj.metadata.annotations.get(each) == "true" for each in annotations)


def storage_class_of(obj: Any) -> str:
    """Return the storage class of a claim or volume, "" if it names none."""
    name: str | None = obj.metadata.annotations.get(STORAGE_CLASS, obj.spec.storage_class_name)
    return name or ""


class DefaultClass:
    """The default among classes: the newest, and of equally old ones the first by name.

    `every` returns all classes. `changed` returns another number after each change of a class; the result is cached
    until then.
    """

    def __init__(
        self, annotations: Iterable[str], every: Callable[[], Iterable[Any]], changed: Callable[[], int]
    ) -> None:
        self._annotations = tuple(annotations)
        self._every = every
        self._changed = changed
        self._found: tuple[int, str | None] = (-1, None)

    def name(self) -> str | None:
        """Return the name of the default class, None if there is none."""
        now = self._changed()
        if self._found[0] != now:
            defaults = [each.metadata for each in self._every() if is_default(each, self._annotations)]
            newest = max((each.creation_timestamp or "" for each in defaults), default="")
            names = (each.name for each in defaults if (each.creation_timestamp or "") == newest)
            self._found = now, min(names, default=None)
        return self._found[1]
