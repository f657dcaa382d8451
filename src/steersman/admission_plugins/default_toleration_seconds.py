"""DefaultTolerationSeconds: pods put up with a failing node for five minutes unless they say otherwise."""

from __future__ import annotations

from typing import Final

from steersman.admission.interface import CREATE, UPDATE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration, Surroundings
from steersman.api.core.v1 import Toleration
from steersman.machinery.identity.schema import GroupResource

_PODS: Final = GroupResource("", "pods")
_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class DefaultTolerationSeconds(Plugin):
    """Adds a NoExecute toleration of `not_ready` and `unreachable` seconds for the two taints."""

    name = "DefaultTolerationSeconds"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({_PODS})
    mutates = True

    def __init__(self, not_ready: int = 300, unreachable: int = 300) -> None:
        self._seconds = dict(zip(_TAINTS, (not_ready, unreachable), strict=True))

    async def admit(self, attributes: Attributes) -> None:
        if attributes.action.subresource or attributes.obj is None:
            return
        tolerations = attributes.obj.spec.tolerations
        for taint, seconds in self._seconds.items():
            tolerated = any(each.key in (taint, "") and each.effect in ("NoExecute", "") for each in tolerations)
            if not tolerated:
                tolerations.append(
                    Toleration(key=taint, operator="Exists", effect="NoExecute", toleration_seconds=seconds)
                )


def _make(server: Surroundings) -> DefaultTolerationSeconds:
    return DefaultTolerationSeconds(server.not_ready_toleration, server.unreachable_toleration)


DEFAULT_TOLERATION_SECONDS: Final = Declaration(DefaultTolerationSeconds, on_by_default=True, make=_make)
