"""DefaultTolerationSeconds: by default pods tolerate a failing node for five minutes."""

from __future__ import annotations

from typing import Final

from steersman.admission.interface import CREATE, OBJECT_ALONE, UPDATE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration, PluginDependencies
from steersman.api.core.v1 import Toleration
from steersman.machinery.identity.schema import GroupResource

_PODS: Final = GroupResource("", "pods")
_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_NO_EXECUTE: Final = ("NoExecute", "")
"""Effects of a toleration that matches NoExecute taints."""


class DefaultTolerationSeconds(Plugin):
    """Adds NoExecute tolerations for both taints, of `not_ready` and `unreachable` seconds."""

    name = "DefaultTolerationSeconds"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({_PODS})
    subresources = OBJECT_ALONE
    mutates = True
    changed_fields = ("spec.tolerations",)

    def __init__(self, not_ready: int = 300, unreachable: int = 300) -> None:
        self._seconds = tuple(zip(_TAINTS, (not_ready, unreachable), strict=True))

    def admit(self, attributes: Attributes) -> None:
        spec = attributes.obj.spec
        tolerations = spec.tolerations
        tolerated: set[str] = set()
        for each in tolerations:
            if each.effect in _NO_EXECUTE:
                tolerated.add(each.key)
        for taint, seconds in () if "" in tolerated else self._seconds:
            if taint not in tolerated:
                added = Toleration(key=taint, operator="Exists", effect="NoExecute", toleration_seconds=seconds)
                spec.tolerations = tolerations = [*tolerations, added]


def _make(dependencies: PluginDependencies) -> DefaultTolerationSeconds:
    return DefaultTolerationSeconds(dependencies.not_ready_toleration, dependencies.unreachable_toleration)


DEFAULT_TOLERATION_SECONDS: Final = Declaration(DefaultTolerationSeconds, on_by_default=True, make=_make)
