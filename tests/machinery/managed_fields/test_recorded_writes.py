"""Creates and updates recorded on kube-apiserver 1.36: the same writes come to the same entries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steersman import api
from steersman.controlplane.resources import AGGREGATOR, API_EXTENSIONS, KUBE_API
from steersman.kinds.built_in import built_in
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.conversion.autoscaling import from_v1, to_v1
from steersman.machinery.identity.schema import parse_group_version
from steersman.machinery.managed_fields import (
    RESET_MANAGERS,
    VIEWS,
    FieldManager,
    Version,
    VersionConverter,
    fields_at,
)
from steersman.registry.services import Services
from steersman.rest.resource import Resource

TIME = "2020-01-01T00:00:00Z"
CASES = json.loads(Path(__file__).with_name("recorded_writes.json").read_text())

AUTOSCALERS = {
    "autoscaling/v1": Version(built_in(api.load("autoscaling", "v1")["HorizontalPodAutoscaler"]), from_v1, to_v1),
    "autoscaling/v2": Version(built_in(api.load("autoscaling", "v2")["HorizontalPodAutoscaler"])),
}


RESOURCES: dict[tuple[str, str], Resource[Any, Services]] = {
    (version.group, each.plural): each
    for each in (*KUBE_API, *AGGREGATOR, *API_EXTENSIONS)
    for version in each.versions.values()
}


def _resets(group: str, plural: str, subresource: str) -> tuple[str, ...]:
    resource = RESOURCES[group, plural]
    strategies = {"": resource.strategy, **{each.name: each.strategy for each in resource.subresources}}
    strategy = strategies[subresource]
    return strategy.resets if strategy is not None else ()


def _title(case: dict[str, Any]) -> str:
    what = "create" if case["old"] is None else "update"
    return f"{what} {case['kind']} {case['subresource']}".replace(" ", "-")


def _normalised(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Recorded times and the order that depends on them are not the same on every run."""
    for entry in entries:
        if "time" in entry:
            entry["time"] = "<time>"
    keys = ("operation", "manager", "subresource", "apiVersion")
    return sorted(entries, key=lambda entry: [entry.get(key, "") for key in keys])


@pytest.mark.parametrize("case", CASES, ids=_title)
def test_a_write_has_the_recorded_entries(case: dict[str, Any]) -> None:
    api_version, _, kind = case["kind"].partition(" ")
    group, version = parse_group_version(api_version)
    cls = api.load(group, version)[kind]
    plural = case["resource"].rpartition("/")[2]
    versions = AUTOSCALERS if plural == "horizontalpodautoscalers" else {api_version: Version(built_in(cls))}
    fields = FieldManager(
        versions[api_version].kind,
        case["subresource"],
        dict.fromkeys(versions, fields_at(*_resets(group, plural, case["subresource"]))),
        VersionConverter(api_version, versions),
        VIEWS.get((group, plural)),
    )
    new: Any = from_plain(cls, case["new"])
    if case["old"] is None:
        entries = fields.create(new, case["manager"], TIME)
    else:
        old = from_plain(cls, case["old"])
        if case["reset"]:
            new.metadata.managed_fields = [*RESET_MANAGERS]
        entries = fields.update(new, old, case["manager"], TIME)
    assert _normalised(json.loads(msgspec.json.encode(entries))) == _normalised(case["expected"])
