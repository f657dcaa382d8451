"""Objects of an import, in a form in which those of two clusters can be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

_KINDS: Final = frozenset({"Event", "Lease", "APIService"})
"""Kinds that each cluster writes for itself."""
_OF_SERVERS: Final = frozenset({"kubernetes", "kube-root-ca.crt", "extension-apiserver-authentication"})
"""Names of objects with the address and certificates of a server."""


class Key(NamedTuple):
    """Identity of an object."""

    api_version: str
    kind: str
    namespace: str
    name: str


def comparable(file: Path) -> dict[Key, dict[str, Any]]:
    """Return the objects of a file without all that servers and heartbeats change."""
    found = {}
    for each in json.loads(file.read_text())["items"]:
        metadata = each["metadata"]
        if each["kind"] in _KINDS or metadata["name"] in _OF_SERVERS:
            continue
        metadata.pop("resourceVersion", None)
        if each["kind"] == "Node":
            metadata.pop("managedFields", None)
            for condition in each["status"].get("conditions", ()):
                condition.pop("lastHeartbeatTime", None)
        found[Key(each["apiVersion"], each["kind"], metadata.get("namespace", ""), metadata["name"])] = each
    return found


def different(one: dict[Key, dict[str, Any]], other: dict[Key, dict[str, Any]]) -> list[Key]:
    """Return the keys of objects that are not in both, or not equal, in order."""
    return sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
