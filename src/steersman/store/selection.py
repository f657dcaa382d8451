"""Which entries of a cache the selectors of a list or watch select."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from steersman.kinds.labels import labels_of
from steersman.rest.capabilities import ListOptions
from steersman.rest.resource import Resource
from steersman.storage.cache.entry import Entry, Selectable

_OF_EVERY_KIND: Final = ("metadata.labels", "metadata.name", "metadata.namespace")

Accept = Callable[[Entry], bool]


class Selection:
    """Selects entries by labels and fields: it reads these alone, and keeps them with the entry."""

    def __init__(self, resource: Resource[Any]) -> None:
        self._fields = tuple(resource.selectable_fields.items())
        self._namespaced = resource.namespaced
        self._indexed = resource.indexed_field
        self.value_of = self._value_reader(resource) if self._indexed else None
        """Reads what the indexed field of an entry holds."""
        self._read = resource.kind.part((*_OF_EVERY_KIND, *resource.selectable_fields)) if self._fields else None

    def accept(self, options: ListOptions) -> Accept | None:
        """A test of entries for these options; None if they select everything."""
        by_label, by_field = options.label_selector, options.field_selector
        if by_label.empty and by_field.empty:
            return None
        matches_labels, matches_fields = by_label.matches, by_field.matches
        if by_field.empty:
            return lambda entry: matches_labels(self.labels(entry))
        if by_label.empty:
            return lambda entry: matches_fields(self.fields(entry))
        return lambda entry: matches_labels(self.labels(entry)) and matches_fields(self.fields(entry))

    def value(self, options: ListOptions) -> str | None:
        """What the indexed field of everything selected holds, None if that may be anything."""
        return options.field_selector.requires_exact_match(self._indexed) if self._indexed else None

    @staticmethod
    def _value_reader(resource: Resource[Any]) -> Callable[[Entry], str]:
        name = resource.indexed_field
        value = resource.selectable_fields[name]
        read = resource.kind.part((name,))

        def value_of(entry: Entry) -> str:
            known = entry.selectable
            if known is not None and known.fields is not None:
                return known.fields[name]
            return value(read(entry.body))

        return value_of

    def labels(self, entry: Entry) -> Mapping[str, str]:
        """The labels of an entry."""
        known = entry.selectable
        if known is None:
            entry.selectable = known = Selectable(labels_of(entry.body)[0])
        return known.labels

    def fields(self, entry: Entry) -> Mapping[str, str]:
        """The selectable fields of an entry."""
        known = entry.selectable
        if known is None or known.fields is None:
            if self._read is not None:
                obj: Any = self._read(entry.body)
                meta = obj.metadata
                values = {name: read(obj) for name, read in self._fields}
                found, name, namespace = meta.labels, meta.name, meta.namespace
            else:
                values = {}
                found, name, namespace = labels_of(entry.body)
            values["metadata.name"] = name
            if self._namespaced:
                values["metadata.namespace"] = namespace
            entry.selectable = Selectable(found, values)
            return values
        return known.fields
