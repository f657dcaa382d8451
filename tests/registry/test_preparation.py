"""Every strategy resets the fields that it declares as reset, and increments generations for the declared fields."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from steersman.controlplane.resources import AGGREGATOR, API_EXTENSIONS, KUBE_API
from steersman.kinds.kind import Kind
from steersman.rest.strategy import Strategy

Endpoint = tuple[Kind[Any], Strategy[Any]]

ENDPOINTS: dict[str, Endpoint] = {
    f"{resource.kind.group}/{resource.plural}/{name}": (resource.kind, strategy)
    for resource in (*KUBE_API, *AGGREGATOR, *API_EXTENSIONS)
    for name, strategy in (("", resource.strategy), *((each.name, each.strategy) for each in resource.subresources))
    if strategy is not None
}
DECLARED = {name: endpoint for name, endpoint in ENDPOINTS.items() if endpoint[1].resets}
COUNTED = {name: endpoint for name, endpoint in ENDPOINTS.items() if endpoint[1].bumps_generation_on}
ANSWERED = ("authentication.k8s.io", "authorization.k8s.io")
"""Groups of reviews, which are not stored."""
KEPT_IN_PART = ("certificates.k8s.io/certificatesigningrequests/status",)
"""Resources whose strategies reset only a part: signers change some conditions only."""


class Anybody:
    """A context with an arbitrary user."""

    class user:
        name, uid, groups = "a", "", ()
        extra: dict[str, list[str]] = {}

    dry_run = False

    def warn(self, text: str) -> None:
        """Accept a warning."""


def filled(obj: Any, mark: str) -> Any:
    """Set all strings and numbers of a Struct, and of nested Structs, to values derived from `mark`."""
    for each in msgspec.structs.fields(obj):
        value = getattr(obj, each.name)
        if isinstance(value, msgspec.Struct):
            filled(value, mark)
        elif type(value) is str and each.name not in ("kind", "api_version", "resource_version"):
            setattr(obj, each.name, mark)
        elif isinstance(value, dict):
            value["key"] = mark
    return obj


def change(obj: Any, path: str) -> None:
    """Change the value of a field."""
    parent, _, member = path.rpartition("/")
    within = getattr(obj, parent) if parent else obj
    value = getattr(within, member)
    if isinstance(value, dict):
        value["other"] = ""
    elif isinstance(value, msgspec.Struct):
        before = copy.deepcopy(value)
        if filled(value, "other") == before:
            setattr(value, value.__struct_fields__[0], "other")
    else:
        setattr(within, member, [*value, None])


def at(obj: Any, path: str) -> Any:
    """Return the plain value of a field."""
    value = msgspec.to_builtins(obj)
    for name in path.split("/"):
        value = value.get(name, {})
    return value


def filled_object(kind: Kind[Any], mark: str) -> Any:
    obj = filled(kind.new(), mark)
    obj.metadata.owner_references = [] if mark == "new" else obj.metadata.owner_references
    return obj


@pytest.mark.parametrize("name", [name for name in DECLARED if name not in KEPT_IN_PART])
def test_an_update_keeps_what_is_declared_as_reset(name: str) -> None:
    kind, strategy = DECLARED[name]
    old, new = filled_object(kind, "old"), filled_object(kind, "new")
    before = copy.deepcopy(old)
    strategy.prepare_for_update(Anybody(), new, old)  # type: ignore[arg-type]
    for path in strategy.resets:
        if path == "metadata":
            assert (new.metadata.labels, new.metadata.annotations) == (
                before.metadata.labels,
                before.metadata.annotations,
            )
        else:
            assert at(new, path) == at(before, path)


@pytest.mark.parametrize("name", [name for name in COUNTED if name.endswith("/")])
def test_generations_begin_where_it_is_declared(name: str) -> None:
    kind, strategy = COUNTED[name]
    for path in strategy.bumps_generation_on:
        old, new = filled_object(kind, "old"), filled_object(kind, "old")
        old.metadata.generation = new.metadata.generation = 7
        strategy.prepare_for_update(Anybody(), new, old)  # type: ignore[arg-type]
        assert new.metadata.generation == 7
        change(new, path)
        strategy.prepare_for_update(Anybody(), new, old)  # type: ignore[arg-type]
        assert new.metadata.generation == 8


def test_kinds_with_a_status_reset_it() -> None:
    """Otherwise any writer would own the status."""
    without = {
        name
        for name, (kind, strategy) in ENDPOINTS.items()
        if name.endswith("/") and not strategy.resets and hasattr(kind.new(), "status") and kind.group not in ANSWERED
    }
    assert sorted(without) == []
