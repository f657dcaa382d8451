"""Selectable fields are read from stored objects without decoding the rest."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.controlplane import on_request
from steersman.controlplane.resources import AGGREGATOR, API_EXTENSIONS
from steersman.kinds.structs import StructKind
from steersman.rest.resource import Resource
from steersman.storage.cache.entry import Entry
from steersman.store.selection import Selection
from tools.differential.objects import every_sample

SELECTABLE = [
    pytest.param(resource, id=resource.plural)
    for resource in (*on_request.kube_api(lambda *_: True), *AGGREGATOR, *API_EXTENSIONS)
    if resource.selectable_fields
]


def bodies_of(resource: Resource[Any]) -> list[dict[str, Any]]:
    """Return the stored samples of a resource, and an empty object."""
    version = f"{resource.group}/{resource.version}" if resource.group else resource.version
    found = [
        each.body for each in every_sample() if each.resource.plural == resource.plural and each.api_version == version
    ]
    assert found
    return [*({name: each[name] for name in each if name not in ("kind", "apiVersion")} for each in found), {}]


@pytest.mark.parametrize("resource", SELECTABLE)
def test_the_fields_of_an_object_are_those_of_the_whole(
    resource: Resource[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = resource.kind
    select = Selection(resource)
    expected, entries = [], []
    for body in bodies_of(resource):
        obj = kind.from_plain(body).obj
        expected.append({name: read(obj) for name, read in resource.selectable_fields.items()})
        entries.append(Entry("key", kind.present(kind.value(obj), 7), 7))
    monkeypatch.setattr(StructKind, "decode_struct", None)  # nothing is decoded whole
    for entry, values in zip(entries, expected, strict=True):
        assert values.items() <= select.fields(entry).items()
