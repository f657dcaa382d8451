"""Sequences of server-side applies by several managers, with other writes in between."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any, Final

import yaml

from .case import NAME, Case, Step
from .kinds import (
    AUTOSCALERS_V1,
    AUTOSCALERS_V2,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    INGRESSES,
    PODS,
    SECRETS,
    SERVICES,
    Fields,
    Kind,
    holds_bytes,
)

APPLY: Final = "application/apply-patch+yaml"
MERGE: Final = "application/merge-patch+json"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

_KINDS: Final = (
    (CONFIG_MAPS, 4),
    (DEPLOYMENTS, 5),
    (PODS, 3),
    (SERVICES, 4),
    (SECRETS, 1),
    (AUTOSCALERS_V2, 1),
    (DAEMON_SETS, 1),
    (CLUSTER_ROLES, 1),
    (INGRESSES, 1),
)
_MANAGERS: Final = ("one", "two", "three", "kubectl")


def cases(random: Random) -> Case:
    """One object, made in some way, and up to eight more writes to it."""
    kinds, weights = zip(*_KINDS, strict=True)
    kind: Kind = random.choices(kinds, weights)[0]
    steps = [_first(random, kind)]
    for _ in range(random.randint(2, 8)):
        steps.append(_next(random, kind))
    steps.append(Step("GET", kind.path))
    return Case(f"applies of a {kind.name}", steps)


def _first(random: Random, kind: Kind) -> Step:
    if random.random() < 0.6:
        return _apply(random, kind, kind.whole(random))
    body = kind.whole(random)
    if random.random() < 0.5:
        text = json.dumps(body, separators=(",", ":")) + "\n"
        body.setdefault("metadata", {}).setdefault("annotations", {})[LAST_APPLIED] = text
    manager = random.choice(["kubectl-client-side-apply", "maker", ""])
    query = f"?fieldManager={manager}" if manager else ""
    return Step("POST", kind.path.rpartition("/")[0] + query, body)


def _next(random: Random, kind: Kind) -> Step:
    options: list[tuple[int, Callable[[], Step]]] = [
        (10, lambda: _apply(random, _version(random, kind), _version(random, kind).fragment(random))),
        (2, lambda: _apply(random, kind, spoiled(random, kind.whole(random)))),
        (3, lambda: _put(random, kind)),
        (2, lambda: _merge(random, kind)),
        (1, lambda: Step("PATCH", kind.path, {"metadata": {"managedFields": random.choice([[], [{}], None])}}, MERGE)),
    ]
    if kind.status is not None:
        options.append((3, lambda: _status(random, kind)))
    if kind.scale:
        options.append((3, lambda: _scale(random, kind)))
    weights = [weight for weight, _ in options]
    return random.choices([make for _, make in options], weights)[0]()


def _version(random: Random, kind: Kind) -> Kind:
    return random.choice([AUTOSCALERS_V1, AUTOSCALERS_V2]) if kind is AUTOSCALERS_V2 else kind


def _query(random: Random) -> str:
    query = f"?fieldManager={random.choice(_MANAGERS)}"
    if random.random() < 0.4:
        query += "&force=true"
    if random.random() < 0.05:
        query += "&dryRun=All"
    if random.random() < 0.1:
        query += f"&fieldValidation={random.choice(['Strict', 'Ignore', 'Warn'])}"
    return query


def _apply(random: Random, kind: Kind, body: Fields, subresource: str = "") -> Step:
    sent = yaml.safe_dump(body, sort_keys=random.random() < 0.5) if random.random() < 0.2 else body
    return Step("PATCH", f"{kind.path}{subresource}{_query(random)}", sent, APPLY)


def _status(random: Random, kind: Kind) -> Step:
    assert kind.status is not None
    body = kind.named({"status": kind.status(random)})
    if random.random() < 0.2:
        body = kind.named({**kind.fragment(random), "status": kind.status(random)})
    if random.random() < 0.7:
        return _apply(random, kind, body, random.choice(["/status", "/status", "/status", ""]))
    return Step("PATCH", f"{kind.path}/status?fieldManager=controller", {"status": kind.status(random)}, MERGE)


def _scale(random: Random, kind: Kind) -> Step:
    spec = {"spec": {"replicas": random.choice([0, 1, 2, 5])}}
    if random.random() < 0.6:
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": NAME}, **spec}
        return _apply(random, kind, scale, "/scale")
    return Step("PATCH", f"{kind.path}/scale?fieldManager=scaler", spec, MERGE)


def _merge(random: Random, kind: Kind) -> Step:
    body = kind.more(random)
    if random.random() < 0.4:
        body = with_nulls(random, body)
    manager = random.choice(["one", "patcher"])
    return Step("PATCH", f"{kind.path}?fieldManager={manager}", body, MERGE)


def _put(random: Random, kind: Kind) -> Step:
    """The object as it is with some of it replaced, as a client that reads before it writes does it."""
    fragment = kind.more(random)
    drop = random.choice(["labels", "annotations", "finalizers", "managedFields", "resourceVersion", ""])

    def edit(obj: Any) -> Any:
        if not isinstance(obj, dict) or obj.get("kind") == "Status":
            return {}
        out = copy.deepcopy(obj)
        for name, value in fragment.items():
            out[name] = {**out.get(name, {}), **value} if isinstance(value, dict) else value
        out.get("metadata", {}).pop(drop, None)
        return out

    manager = random.choice(["one", "updater"])
    about = f"with {json.dumps(fragment)}" + (f" and without metadata.{drop}" if drop else "")
    return Step("PUT", f"{kind.path}?fieldManager={manager}", edit=edit, about=about)


def with_nulls(random: Random, value: Any) -> Any:
    """Return a copy of a value in which some members are null."""
    if isinstance(value, dict):
        return {name: None if random.random() < 0.2 else with_nulls(random, item) for name, item in value.items()}
    return [with_nulls(random, item) for item in value] if isinstance(value, list) else value


def spoiled(random: Random, value: Any) -> Any:
    """Return a copy of a value with an invalid or unusual change at a random position."""
    places: list[tuple[Any, Any]] = []

    def visit(at: Any) -> None:
        for key, item in at.items() if isinstance(at, dict) else enumerate(at):
            if holds_bytes(at, key):
                continue
            places.append((at, key))
            if isinstance(item, dict | list):
                visit(item)

    value = copy.deepcopy(value)
    visit(value)
    at, key = random.choice(places)
    how = random.choice(["null", "number", "text", "list", "map", "unknown", "double", "empty", "gone", "bool"])
    if how == "unknown":
        target = at if isinstance(at, dict) else value
        target["unknown"] = 1
    elif how == "double" and isinstance(at, list):
        at.append(copy.deepcopy(at[key]))
    elif how == "gone" and isinstance(at, dict):
        del at[key]
    elif how == "empty":
        at[key] = type(at[key])()
    else:
        odd: dict[str, Any] = {
            "null": None,
            "number": random.choice([3, -1, 1.5, 2**40]),
            "text": "text",
            "list": [1],
            "map": {"a": "b"},
            "bool": True,
        }
        at[key] = odd.get(how)
    return value
