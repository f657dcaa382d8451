"""Selection of cache entries by the selectors of a list or watch."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from steersman.kinds.labels import labels_of
from steersman.machinery.selectors import fields, labels
from steersman.rest.capabilities import ListOptions
from steersman.rest.resource import Resource
from steersman.storage.cache.entry import Entry, Selectable

_OF_EVERY_KIND: Final = ("metadata.labels", "metadata.name", "metadata.namespace")

Accept = Callable[[Entry], bool]
_is_plain: Final = re.compile("[A-Za-z0-9._-]+").fullmatch
"""A matcher of texts that every JSON encoder writes unescaped."""


class Selection:
    """A selector of entries by labels and fields. It decodes only these, and caches them with the entry."""

    def __init__(self, resource: Resource[Any]) -> None:
        self._fields = tuple(resource.selectable_fields.items())
        self._namespaced = resource.namespaced
        self._indexed = resource.indexed_field
        self._literal = resource.literal_fields | {"metadata.name", "metadata.namespace"}
        self.value_of = self._value_reader(resource) if self._indexed else None
        """A function that returns the value of an entry's indexed field."""
        self._make_reader = partial(resource.kind.partial_decoder, (*_OF_EVERY_KIND, *resource.selectable_fields))
        self._read: Callable[[bytes], Any] | None = None

    def accept(self, options: ListOptions, *, keeps: bool = True) -> Accept | None:
        """Return a predicate on entries for these options; None if they select everything.

        With `keeps` the predicate caches what it reads with the entries, for the next selector. That is for events to
        many watchers, not for a single scan of very many objects.
        """
        by_label, by_field = options.label_selector, options.field_selector
        if by_label.empty and by_field.empty:
            return None
        text = self._text(options)
        if text and not keeps:
            tests = self._accept(by_label, by_field, keeps=False)
            return lambda entry: text in entry.body and tests(entry)
        return self._accept(by_label, by_field, keeps=keeps)

    def _accept(self, by_label: labels.Selector, by_field: fields.Selector, *, keeps: bool) -> Accept:
        matches_labels, matches_fields = by_label.matches, by_field.matches
        labels_of, fields_of = (self.labels, self.fields) if keeps else (self._labels_once, self._fields_once)
        if by_field.empty:
            return lambda entry: matches_labels(labels_of(entry))
        if by_label.empty:
            return lambda entry: matches_fields(fields_of(entry))
        return lambda entry: matches_labels(labels_of(entry)) and matches_fields(fields_of(entry))

    def _text(self, options: ListOptions) -> bytes:
        """Return text that the JSON of every selected object contains, b"" if there is none.

        Searching for it takes a tenth of the time of reading labels or fields.
        """
        values = [
            each.value
            for each in options.field_selector.requirements
            if each.operator == fields.EQUALS and each.field in self._literal
        ]
        values += [
            each.values[0]
            for each in options.label_selector.requirements
            if each.operator in (labels.EQUALS, labels.DOUBLE_EQUALS) and len(each.values) == 1
        ]
        longest = max(filter(_is_plain, values), key=len, default="")
        return b'"%b"' % longest.encode() if longest else b""

    def value(self, options: ListOptions) -> str | None:
        """Return the value of the indexed field of all selected objects, None if it may be any value."""
        return options.field_selector.requires_exact_match(self._indexed) if self._indexed else None

    @staticmethod
    def _value_reader(resource: Resource[Any]) -> Callable[[Entry], str]:
        name = resource.indexed_field
        value = resource.selectable_fields[name]
        read: Callable[[bytes], Any] | None = None

        def value_of(entry: Entry) -> str:
            nonlocal read
            known = entry.selectable
            if known is not None and known.fields is not None:
                return known.fields[name]
            read = read or resource.kind.partial_decoder((name,))  # slow to make
            return value(read(entry.body))

        return value_of

    @staticmethod
    def _labels_once(entry: Entry) -> Mapping[str, str]:
        known = entry.selectable
        return labels_of(entry.body)[0] if known is None else known.labels

    def _fields_once(self, entry: Entry) -> Mapping[str, str]:
        known = entry.selectable
        return known.fields if known is not None and known.fields is not None else self._read_fields(entry)[1]

    def labels(self, entry: Entry) -> Mapping[str, str]:
        """Return the labels of an entry, and cache them with it."""
        known = entry.selectable
        if known is None:
            entry.selectable = known = Selectable(labels_of(entry.body)[0])
        return known.labels

    def fields(self, entry: Entry) -> Mapping[str, str]:
        """Return the selectable fields of an entry, and cache them with it."""
        known = entry.selectable
        if known is None or known.fields is None:
            found, values = self._read_fields(entry)
            entry.selectable = Selectable(found, values)
            return values
        return known.fields

    def _read_fields(self, entry: Entry) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Return labels and fields of an entry."""
        if self._fields:
            self._read = self._read or self._make_reader()
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
        return found, values
