"""Random values for a schema: most of them right, some of them not."""

from __future__ import annotations

import copy
from random import Random
from typing import Any, Final

from .schemas import NAMES, Schema

_TEXTS: Final = (
    "",
    "a",
    "aa",
    "aaa",
    "b",
    "ä",
    "äöüß",
    "10",
    "123",
    "1.2.3.4",
    "::1",
    "10.0.0.0/8",
    "2020-01-02",
    "3 days",
    "1h",
    "2020-01-02T03:04:05Z",
    "a@b.c",
    "N <a@b.c>",
    "a.example.com",
    "x-y",
    "#ffaa00",
    "rgb(1,2,3)",
    "aGVsbG8=",
    "A",
    "00:11:22:33:44:55",
    "https://a.b/c",
    "4f0c3e7e-2c0f-4a0c-9b2e-6b0a3f6c1d11",
    "0321751043",
    "4111111111111111",
    "111-22-3333",
    "507f1f77bcf86cd799439011",
    '<&>\u2028\n\t"\\',
    "\U0001f600",
)
_INTEGERS: Final = (-5, -1, 0, 1, 2, 3, 4, 6, 10, 65, 100, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, 2**63, -(2**63))
_FLOATS: Final = (0.0, 1.0, 1.5, -1.5, 0.1, 0.3, 2.9999999999999996, 3.0000000001, 1e21, 1e300, 5e-324, 3.5e38, 65.0)
_METADATA: Final[tuple[Any, ...]] = (
    {},
    {"name": "ok"},
    {"name": "a/b"},
    {"labels": {"a": "b"}},
    {"labels": {"a": 5}},
    {"labels": {"a b": "c"}},
    {"unheard": 1, "name": "x"},
    "text",
    None,
    {"creationTimestamp": None},
    {"annotations": {"a": "b"}, "generation": 3},
    {"name": 5},
    {"namespace": "N"},
    {"ownerReferences": [{"uid": "x"}]},
    {"finalizers": ["a"]},
    [],
    {"generation": -1},
)


def value(random: Random, schema: Schema, depth: int = 0) -> Any:
    """A value that has to do with a schema."""
    if random.random() < 0.06:
        return _any(random, depth)
    if random.random() < 0.05:
        return None
    if schema.get("enum") and random.random() < 0.6:
        return copy.deepcopy(random.choice(schema["enum"]))
    if schema.get("x-kubernetes-embedded-resource"):
        return _resource(random, schema, depth)
    match schema.get("type"):
        case "string":
            return random.choice(_TEXTS)
        case "integer":
            return random.choice(_INTEGERS) if random.random() < 0.8 else random.choice(_FLOATS)
        case "number":
            return random.choice(_INTEGERS + _FLOATS)
        case "boolean":
            return random.random() < 0.5
        case "array":
            items = [value(random, schema["items"], depth + 1) for _ in range(random.randint(0, 4))]
            if items and random.random() < 0.2:
                items.append(copy.deepcopy(items[0]))
            return items
        case "object":
            return _object(random, schema, depth)
    return random.choice((_any(random, depth), random.choice(_TEXTS), random.choice(_INTEGERS)))


def _any(random: Random, depth: int) -> Any:
    kind = random.randint(0, 7 if depth < 4 else 4)
    match kind:
        case 0:
            return random.choice(_TEXTS)
        case 1:
            return random.choice(_INTEGERS)
        case 2:
            return random.choice(_FLOATS)
        case 3:
            return random.random() < 0.5
        case 4:
            return None
        case 5:
            return [_any(random, depth + 1) for _ in range(random.randint(0, 2))]
    return {random.choice(NAMES): _any(random, depth + 1) for _ in range(random.randint(0, 2))}


def _object(random: Random, schema: Schema, depth: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    required = schema.get("required") or ()
    for name, each in (schema.get("properties") or {}).items():
        if random.random() < (0.9 if name in required else 0.6):
            out[name] = value(random, each, depth + 1)
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        for name in random.sample(NAMES, random.randint(0, 3)):
            out[name] = value(random, additional, depth + 1)
    if random.random() < 0.2:
        out[random.choice((*NAMES, "unknown"))] = _any(random, depth + 1)
    return out


def _resource(random: Random, schema: Schema, depth: int) -> dict[str, Any]:
    out = _object(random, schema, depth)
    if random.random() < 0.9:
        out["apiVersion"] = random.choice(("v1", "a/v1", "a/b/c", "", 5, "v1"))
    if random.random() < 0.9:
        out["kind"] = random.choice(("Pod", "A", "a_b", "", None, "Pod"))
    if random.random() < 0.6:
        out["metadata"] = copy.deepcopy(random.choice(_METADATA))
    return out


def changed(random: Random, old: Any, schema: Schema, depth: int = 0) -> Any:
    """A value that is like another here and there."""
    if random.random() < 0.15:
        return value(random, schema, depth)
    if isinstance(old, dict):
        out = {}
        properties = schema.get("properties") or {}
        for name, member in old.items():
            if random.random() > 0.1:
                below = properties.get(name) or schema.get("additionalProperties")
                out[name] = changed(random, member, below if isinstance(below, dict) else {}, depth + 1)
        return out
    if isinstance(old, list):
        items = schema.get("items") or {}
        out_list = [changed(random, each, items, depth + 1) for each in old]
        if random.random() < 0.2:
            random.shuffle(out_list)
        return out_list
    return old
