"""Names that clients have made up, in the metrics of a server: labels too long, series of what is not served."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Set
from typing import Any, Final

from .case import ADMIN, Request

LONGEST: Final = 253
_PAIR: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_OF_A_KIND: Final = ("group", "version", "resource", "subresource")
_SHOWN: Final = 80
_OWN: Final = re.compile(r"(^|\.)hostile[a-z-]*\.example\.com$")
"""Groups of the definitions that cases make and take away: these were served."""

Served = Set[tuple[str, str, str, str]]
"""Group, version, resource and subresource."""


def served(ask: Callable[[Request], tuple[int, bytes]]) -> Served:
    """Everything that a server tells of in discovery, with each group version itself, and nothing at all."""
    found = {("", "", "", "")}
    versions = [("", version) for version in _read(ask, "/api").get("versions", ())]
    for group in _read(ask, "/apis").get("groups", ()):
        versions += [(group["name"], each["version"]) for each in group["versions"]]
    for name, version in versions:
        root = f"/apis/{name}/{version}" if name else f"/api/{version}"
        found.add((name, version, "", ""))
        for resource in _read(ask, root).get("resources", ()):
            plural, _, subresource = resource["name"].partition("/")
            found.add((name, version, plural, subresource))
    return found


def _read(ask: Callable[[Request], tuple[int, bytes]], path: str) -> dict[str, Any]:
    code, body = ask(Request("GET", path, (("Accept", "application/json"), ("Connection", "close")), token=ADMIN))
    return dict(json.loads(body)) if code == 200 else {}


def strange(metrics: str, known: Served) -> Iterator[str]:
    """Yield the fault of each wrong series in a scrape."""
    for line in metrics.splitlines():
        if line.startswith("#"):
            continue
        labels = dict(_PAIR.findall(line))
        long = [name for name, value in labels.items() if len(value) > LONGEST]
        if long:
            yield f"label {long[0]} of {len(labels[long[0]])} characters: {line[:_SHOWN]}"
        elif "resource" in labels and "group" in labels and "version" in labels:
            group, version, resource, subresource = (labels.get(each, "") for each in _OF_A_KIND)
            if (group, version, resource, subresource) not in known and not _OWN.search(group):
                yield f"not served: {line[:_SHOWN]}"
