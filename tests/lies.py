"""Documents of servers that lie: a true document with each member in turn replaced by values of other kinds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

VALUES: Final[dict[str, Any]] = {
    "null": None,
    "a number": 5,
    "a large number": 10**400,
    "a fraction": 1e308,
    "text": "x\u2028",
    "a long text": "9" * 100_000,
    "true": True,
    "a list": [1],
    "nulls": [None],
    "a list of lists": [[[]]],
    "an object": {"a": 1},
}
RAW: Final = (b"", b"<html>", b"\xff", b"[" * 100_000, b'{"items":' * 50_000, b'{"a": "\\ud800"}', b"NaN")

_KINDS: Final = (("pods", "Pod", "Namespaced"), ("events", "Event", "Namespaced"), ("nodes", "Node", "Cluster"))
_RESOURCES: Final = [
    {
        "resource": plural,
        "responseKind": {"group": "", "version": "v1", "kind": kind},
        "scope": scope,
        "verbs": ["get", "list", "watch"],
    }
    for plural, kind, scope in _KINDS
]
DISCOVERY: Final = {"items": [{"metadata": {"name": ""}, "versions": [{"version": "v1", "resources": _RESOURCES}]}]}
"""Discovery of a server with pods, events and nodes."""


def lies(truth: Any) -> list[bytes]:
    """Return a document with each member in turn replaced by each value, and bodies that are no such documents."""
    return [*RAW, *(json.dumps(each).encode() for each in variants(truth))]


def variants(truth: Any) -> Iterator[Any]:
    """Yield a value with each member, and the first element of each list, in turn replaced by each value."""
    yield from VALUES.values()
    if isinstance(truth, dict):
        for name, inner in truth.items():
            yield from ({**truth, name: each} for each in variants(inner))
    elif isinstance(truth, list) and truth:
        yield from ([each] for each in variants(truth[0]))
