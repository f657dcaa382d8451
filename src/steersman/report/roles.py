"""Rights that a client has used, and those of a given role that it has not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, Final

from steersman.machinery.identity.schema import GroupResource
from steersman.report.tally import OTHERS, Target

_ALWAYS: Final = ("/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz")
"""Paths that every authenticated user may read."""
_MOST: Final = 10_000
"""Rights of a given role that are looked at."""

Rule = dict[str, list[str]]


def least_rules(targets: Iterable[Target]) -> list[Rule]:
    """Return the fewest rules that allow just these requests, in order; resources with equal verbs share one."""
    verbs: dict[tuple[str, str], set[str]] = {}
    paths: dict[str, set[str]] = {}
    for group, resource, verb in targets:
        if "*" in group or "*" in resource:
            continue  # nothing that is served, and in a rule it would grant everything
        if resource.startswith("/"):
            if not _is_always_granted(resource):
                paths.setdefault(resource, set()).add(verb)
        elif resource != OTHERS:
            verbs.setdefault((group, resource), set()).add(verb)
    joined: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), used in verbs.items():
        joined.setdefault((group, tuple(sorted(used))), []).append(resource)
    rules: list[Rule] = [
        {"apiGroups": [group], "resources": sorted(resources), "verbs": list(used)}
        for (group, used), resources in sorted(joined.items())
    ]
    return rules + [{"nonResourceURLs": [path], "verbs": sorted(used)} for path, used in sorted(paths.items())]


def _is_always_granted(path: str) -> bool:
    return any(path == each or path.startswith(f"{each}/") for each in _ALWAYS)


def least_role(name: str, targets: Iterable[Target]) -> dict[str, Any]:
    """Return the ClusterRole that allows just these requests."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": least_rules(targets),
    }


def unused_rights(rules: Iterable[Any], targets: Iterable[Target]) -> list[str]:
    """Return what rules grant that no request has used, as `VERB RESOURCE`; a wildcard counts as too much."""
    used = set(targets)
    found = []
    for number, (group, resource, verb) in enumerate(_granted(rules)):
        if number == _MOST:
            break
        if "*" in (group, resource, verb) or (group, resource, verb) not in used:
            full = str(GroupResource(group, resource))
            found.append(f"{verb} {full}")
    return sorted(set(found))


def _granted(rules: Iterable[Any]) -> Iterator[Target]:
    """Yield the rights of rules."""
    for rule in rules:
        if not isinstance(rule, dict):
            continue
        verbs = _texts(rule, "verbs")
        for verb, group, resource in product(verbs, _texts(rule, "apiGroups"), _texts(rule, "resources")):
            yield group, resource, verb
        for verb, path in product(verbs, _texts(rule, "nonResourceURLs")):
            yield "", path, verb


def _texts(rule: dict[str, Any], name: str) -> list[str]:
    found = rule.get(name)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
