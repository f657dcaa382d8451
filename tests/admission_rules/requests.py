"""Variables of a request for expressions, and an authorizer that records its requests."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from steersman.admission_rules.evaluation import Inputs
from steersman.cel.library.authorizer import Answer, Check

REQUEST: dict[str, Any] = {
    "uid": "",
    "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
    "resource": {"group": "", "version": "v1", "resource": "configmaps"},
    "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
    "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
    "name": "settings",
    "namespace": "default",
    "operation": "CREATE",
    "userInfo": {"username": "ann", "groups": ["dev", "system:authenticated"]},
    "object": None,
    "oldObject": None,
    "dryRun": False,
    "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
}


def inputs(obj: Any = None, old: Any = None, **other: Any) -> Inputs:
    """Return the variables of a request for a ConfigMap in the namespace default."""
    return Inputs(
        object=obj,
        old_object=old,
        request=REQUEST,
        resource_group="",
        resource="configmaps",
        subresource="",
        resource_namespace="default",
        name="settings",
        **other,
    )


class Authorizer:
    """An authorizer that allows the verb `get`."""

    def __init__(self, *, waits: bool = False) -> None:
        self.asked: list[Check] = []
        self._waits = waits

    def ask(self, check: Check) -> Answer | Awaitable[Answer]:
        self.asked.append(check)
        answer = Answer(check.verb == "get", "" if check.verb == "get" else "no rule", "")
        return self._later(answer) if self._waits else answer

    async def _later(self, answer: Answer) -> Answer:
        return answer
