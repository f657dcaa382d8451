"""Quota evaluator of pods."""

from __future__ import annotations

from typing import Any, Final

from steersman.admission.interface import CREATE, UPDATE, Attributes
from steersman.admission_plugins.quota.evaluators import Evaluator
from steersman.api.core.v1 import Pod
from steersman.machinery.built_in.pod_resources import Amounts, has_pod_level_resources
from steersman.machinery.built_in.quota.pods import LIMITS, REQUESTS, PodMeasure, is_terminating, pod_usage
from steersman.work.offloading import offload

_NEEDED: Final = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
"""Limited resources of which every container must specify its use."""


class PodEvaluator(Evaluator):
    """Charges pods at their creation and resize, and when they move between scopes."""

    def __init__(self) -> None:
        super().__init__(PodMeasure())

    def handles(self, attributes: Attributes) -> bool:
        if attributes.action.subresource:
            return attributes.action.subresource == "resize" and attributes.operation == UPDATE
        if attributes.operation == UPDATE:
            return is_terminating(attributes.obj) != is_terminating(attributes.old)
        return attributes.operation == CREATE

    def constraint_error(self, names: set[str], obj: Pod) -> str:
        if has_pod_level_resources(obj.spec):
            return ""
        needed = names & _NEEDED
        silent: dict[str, set[str]] = {}
        for container in (*(obj.spec.containers or ()), *obj.spec.init_containers):
            resources = container.resources
            specified = {prefix + name for name in resources.requests for prefix in ("", REQUESTS)}
            specified.update(LIMITS + name for name in resources.limits)
            for name in needed - specified:
                silent.setdefault(name, set()).add(container.name)
        missing = (f"{name} for: {','.join(sorted(silent[name]))}" for name in sorted(silent))
        return f"must specify {'; '.join(missing)}" if silent else ""

    async def usage(self, obj: Any, namespace: str) -> Amounts:
        return await offload(pod_usage, obj)
