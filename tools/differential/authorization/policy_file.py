"""Random policies of ABAC, one a line. Both servers read the same file at their start."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

from tools.differential.case import NAMESPACE_OF_CASES

USERS: Final = tuple(f"abac-user-{number}" for number in range(12))
GROUPS: Final = tuple(f"abac-group-{number}" for number in range(6))
RESOURCES: Final = ("pods", "configmaps", "secrets", "deployments", "nodes", "widgets")
API_GROUPS: Final = ("", "apps", "example.com")
PATHS: Final = ("/healthz", "/abac", "/abac/a", "/abac/a/b", "/version", "/abacus")
_LINES: Final = 60
_API_VERSION: Final = "abac.authorization.kubernetes.io/v1beta1"


def policy_file(seed: int) -> str:
    """The text of a file of policies, some in the older form without a version."""
    random = Random(f"{seed}/policies")
    lines = ["# made for a comparison", ""]
    lines += [json.dumps(_line(random)) for _ in range(_LINES)]
    return "\n".join(lines) + "\n"


def _line(random: Random) -> dict[str, Any]:
    subject: dict[str, Any] = {}
    if random.random() < 0.7:
        subject["user"] = random.choice(USERS)
    if random.random() < 0.4 or not subject:
        subject["group"] = random.choice(GROUPS)
    if random.random() < 0.4:
        subject["readonly"] = True
    if random.random() < 0.15:  # of no version: what is left out stands for anything
        if random.random() < 0.7:
            subject["resource"] = random.choice(RESOURCES)
        if random.random() < 0.5:
            subject["namespace"] = NAMESPACE_OF_CASES
        return subject
    if random.random() < 0.25:
        subject["nonResourcePath"] = random.choice((*PATHS, "*", "/abac/*", "/abac*", "/*"))
    if random.random() < 0.85:
        subject["apiGroup"] = random.choice((*API_GROUPS, "*"))
        subject["resource"] = random.choice((*RESOURCES, "*"))
        subject["namespace"] = random.choice((NAMESPACE_OF_CASES, "default", "*", ""))
    return {"apiVersion": _API_VERSION, "kind": "Policy", "spec": subject}
