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
    holds_bytes,
)

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"

_KINDS: Final = (
    (CONFIG_MAPS, 3),
    (DEPLOYMENTS, 5),
    (PODS, 3),
    (SERVICES, 5),
    (SECRETS, 1),
    (DAEMON_SETS, 2),
    (CLUSTER_ROLES, 1),
    (INGRESSES, 1),
)
_WRONG: Final[tuple[Any, ...]] = (3, "text", True, [], {}, {"unknown": 1}, [1], 1.5, 2**40, [None])
_MERGE_KEYS: Final = ("name", "containerPort", "mountPath", "port", "ip", "topologyKey", "uid", "type")
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
    return _maybe_spoiled(random, _with_nulls(random, _fragment(random, kind)))


def _with_nulls(random: Random, value: Any) -> Any:
    """Return a copy of a value in which some members are null, which removes them."""
    if isinstance(value, dict):
        return {name: None if random.random() < 0.06 else _with_nulls(random, item) for name, item in value.items()}
    return [_with_nulls(random, item) for item in value] if isinstance(value, list) else value


def _maybe_spoiled(random: Random, value: Fields) -> Fields:
    """Return a copy of a value, sometimes with one error: of several errors upstream reports any."""
    if random.random() < 0.75:
        return value
    maps = [value, *(item for _, item in _places(value) if isinstance(item, dict) and item)]
    where = random.choice(maps)
    if where:
        where[random.choice(list(where))] = random.choice(
            [3, "text", True, [], {}, {"unknown": 1}, [1], 1.5, 2**40, [None]]
        )
    return value


# Strategic merge patches


def _strategic(random: Random, kind: Kind) -> Any:
    patch = _directed(random, _with_nulls(random, _fragment(random, kind)), top=True)
    if random.random() < 0.75:
        return patch
    places = [item for path, item in _places(patch) if isinstance(item, dict) and "$" not in path]
    if not places or random.random() < 0.5:
        return _maybe_spoiled(random, patch)
    where = random.choice(places)
    where.update(
        random.choice(
            [
                {"$patch": "odd"},
                {"$patch": "merge"},
                {"$patch": 3},
                {"$retainKeys": "text"},
                {"$retainKeys": ["other"]},
                {"$setElementOrder/other": [{"name": "a"}]},
                {"$deleteFromPrimitiveList/other": ["a"]},
                {"$odd": 1},
            ]
        )
    )
    return patch


def _directed(random: Random, value: Any, *, top: bool = False) -> Any:
    """Return a copy of a value with valid directives in some places."""
    if isinstance(value, dict):
        out: Any = {}
        for name, item in value.items():
            out[name] = _directed(random, item)
            if isinstance(item, list) and item and _is_plain(out[name]) and random.random() < 0.15:
                directive = _list_directive(random, name, item)
                if f"$deleteFromPrimitiveList/{name}" in directive:
                    del out[name]  # whether what is given twice is put in or taken out first is upstream's to choose
                out.update(directive)
        if not top and random.random() < 0.04:
            out["$patch"] = random.choice(["replace", "delete"])
        elif random.random() < 0.05:
            out["$retainKeys"] = random.choice([list(value), [*value, "more"]])
        return out
    if isinstance(value, list):
        items = [_directed(random, item) for item in value]
        if items and isinstance(items[0], dict):
            if random.random() < 0.1:
                items.append({"$patch": "replace"})
            elif random.random() < 0.2:
                random.choice(items)["$patch"] = random.choice(["delete", "replace"])
        return items
    return value


def _is_plain(items: list[Any]) -> bool:
    return not any(isinstance(item, dict) and "$patch" in item for item in items)


def _list_directive(random: Random, name: str, items: list[Any]) -> Fields:
    if not isinstance(items[0], dict):
        some = random.sample(items, random.randint(1, len(items)))
        return (
            {f"$deleteFromPrimitiveList/{name}": some} if random.random() < 0.5 else {f"$setElementOrder/{name}": items}
        )
    keys = [key for key in _MERGE_KEYS if all(isinstance(item, dict) and key in item for item in items)]
    if not keys:
        return {}
    order = [{keys[0]: item[keys[0]]} for item in items]
    if random.random() < 0.5:
        order.insert(random.randint(0, len(order)), {keys[0]: random.choice(["c", "d", "v", 80, 53])})
    return {f"$setElementOrder/{name}": order}


# JSON patches


def _operations(random: Random, made: Fields, kind: Kind) -> Any:
    if random.random() < 0.04:
        return random.choice(
            [
                {},
                None,
                "text",
                [3],
                [{}],
                [{"op": "odd", "path": "/a"}],
                [{"op": "add"}],
                [{"op": "add", "path": "x"}],
                [{"op": "remove", "path": ""}],
                [{"op": "add", "path": "", "value": 3}],
                '[{"op": "add", "op": "test"}]',
            ]
        )
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
        if holds_bytes(value, key):
            continue
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
