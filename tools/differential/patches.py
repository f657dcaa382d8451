"""Sequences of JSON patches, merge patches and strategic merge patches of one object."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any, Final

from .case import NAME, Case, Step
from .kinds import (
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
)

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"

_KINDS: Final = (
    (CONFIG_MAPS, 3), (DEPLOYMENTS, 5), (PODS, 3), (SERVICES, 5), (SECRETS, 1), (DAEMON_SETS, 2), (CLUSTER_ROLES, 1),
    (INGRESSES, 1),
)  # fmt: skip
_MERGE_KEYS: Final = ("name", "containerPort", "mountPath", "port", "ip", "key", "topologyKey", "uid", "type")
_QUERIES: Final = ("", "", "", "?fieldManager=m", "?fieldValidation=Strict", "?fieldValidation=Ignore", "?dryRun=All")


def json_cases(random: Random) -> Case:
    """JSON patches (RFC 6902)."""
    return _cases(random, "JSON patches", JSON_PATCH)


def merge_cases(random: Random) -> Case:
    """Merge patches (RFC 7386)."""
    return _cases(random, "merge patches", MERGE_PATCH)


def strategic_cases(random: Random) -> Case:
    """Strategic merge patches, with their directives."""
    return _cases(random, "strategic merge patches", STRATEGIC)


def _cases(random: Random, title: str, media: str) -> Case:
    kinds, weights = zip(*_KINDS, strict=True)
    kind: Kind = random.choices(kinds, weights)[0]
    made = kind.whole(random)
    steps = [Step("POST", kind.path.rpartition("/")[0], made)]
    for _ in range(random.randint(1, 5)):
        path = kind.path + random.choice(_QUERIES)
        if kind.status is not None and random.random() < 0.15:
            path = f"{kind.path}/status"
        if media == JSON_PATCH:
            body: Any = _operations(random, made, kind)
        elif media == MERGE_PATCH:
            body = _merge(random, kind)
        else:
            body = _strategic(random, kind)
        steps.append(Step("PATCH", path, body, media))
    steps.append(Step("GET", kind.path))
    return Case(f"{title} of a {kind.name}", steps)


def _fragment(random: Random, kind: Kind) -> Fields:
    fields = kind.fragment(random)
    if kind.status is not None and random.random() < 0.2:
        fields["status"] = kind.status(random)
    for name in ("apiVersion", "kind"):
        if random.random() < 0.7:
            del fields[name]
    if random.random() < 0.7:
        del fields["metadata"]["name"]
    return fields


# Merge patches


def _merge(random: Random, kind: Kind) -> Any:
    if random.random() < 0.03:
        return random.choice([[], None, "text", 3, '{"a"', '{"data": {"a": "1", "a": "2"}}'])
    return _spoiled(random, _fragment(random, kind), chance=0.05)


def _spoiled(random: Random, value: Any, *, chance: float) -> Any:
    """The same with some values null, and some of another type."""
    if random.random() < chance:
        return random.choice([None, None, None, 3, "text", True, [], {}, {"unknown": 1}, [1], 1.5, 2**40])
    if isinstance(value, dict):
        return {name: _spoiled(random, item, chance=chance) for name, item in value.items()}
    if isinstance(value, list):
        return [_spoiled(random, item, chance=chance / 2) for item in value]
    return value


# Strategic merge patches


def _strategic(random: Random, kind: Kind) -> Any:
    patch = _spoiled(random, _fragment(random, kind), chance=0.03)
    return _directed(random, patch, top=True) if isinstance(patch, dict) else patch


def _directed(random: Random, value: Any, *, top: bool = False) -> Any:
    """The same with directives here and there."""
    if isinstance(value, dict):
        out: Any = {}
        for name, item in value.items():
            out[name] = _directed(random, item)
            if isinstance(item, list) and item and random.random() < 0.15:
                out.update(_list_directive(random, name, item))
        if not top and random.random() < 0.04:
            out["$patch"] = random.choice(["replace", "delete", "merge", "odd"])
        if random.random() < 0.05:
            out["$retainKeys"] = random.choice([list(value), [*value, "more"], list(value)[:1], "text"])
        return out
    if isinstance(value, list):
        items = [_directed(random, item) for item in value]
        if items and random.random() < 0.15:
            items.append(random.choice([{"$patch": "replace"}, {"$patch": "delete"}, {"$patch": "merge"}]))
        for item in items:
            if isinstance(item, dict) and random.random() < 0.15:
                item["$patch"] = random.choice(["delete", "delete", "replace", "merge"])
        return items
    return value


def _list_directive(random: Random, name: str, items: list[Any]) -> Fields:
    if not isinstance(items[0], dict):
        some = random.sample(items, random.randint(1, len(items)))
        return {random.choice(["$deleteFromPrimitiveList", "$setElementOrder"]) + f"/{name}": some}
    keys = [key for key in _MERGE_KEYS if key in items[0]]
    if not keys:
        return {}
    key = random.choice(keys)
    order = [{key: item[key]} for item in items if isinstance(item, dict) and key in item]
    random.shuffle(order)
    return {f"$setElementOrder/{name}": order}


# JSON patches


def _operations(random: Random, made: Fields, kind: Kind) -> Any:
    if random.random() < 0.04:
        return random.choice(
            [{}, None, "text", [3], [{}], [{"op": "odd", "path": "/a"}], [{"op": "add"}], [{"op": "add", "path": "x"}],
             [{"op": "remove", "path": ""}], [{"op": "add", "path": "", "value": 3}], '[{"op": "add", "op": "test"}]']
        )  # fmt: skip
    return [_operation(random, made, kind) for _ in range(random.randint(1, 3))]


def _operation(random: Random, made: Fields, kind: Kind) -> Fields:
    places = list(_places(made))
    path, value = random.choice(places)
    operation = random.choice(["add", "add", "replace", "replace", "remove", "test", "move", "copy"])
    found: Fields = {"op": operation, "path": path}
    if operation in ("move", "copy"):
        found["from"] = path
        found["path"] = random.choice([random.choice(places)[0], f"{path}x", f"{path.rpartition('/')[0]}/-"])
    elif operation == "add":
        found["path"] = random.choice([path, f"{path}2", f"{path.rpartition('/')[0]}/-", f"{path}/x"])
        found["value"] = _other(random, value, made)
    elif operation != "remove":
        found["value"] = value if random.random() < 0.3 else _other(random, value, made)
    if random.random() < 0.04:
        found.pop(random.choice(list(found)))
    return found


def _places(value: Any, path: str = "") -> Any:
    """JSON pointers to all there is, with what is there."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        below = f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"
        yield below, item
        if isinstance(item, dict | list):
            yield from _places(item, below)


def _other(random: Random, value: Any, made: Fields) -> Any:
    choices = [copy.deepcopy(value), None, 3, "text", True, [], {}, json.loads(json.dumps(made.get("metadata")))]
    if isinstance(value, str):
        choices += ["1", "2", "b", NAME]
    if isinstance(value, int):
        choices += [0, 1, 2, 7]
    return random.choice(choices)
