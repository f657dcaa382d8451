"""TaintNodesByCondition: no pod is scheduled to a new node before it has reported that it is ready."""

from __future__ import annotations

from typing import Final

from steersman.admission.interface import CREATE, OBJECT_ALONE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration
from steersman.api.core.v1 import Taint
from steersman.machinery.identity.schema import GroupResource

_NODES: Final = GroupResource("", "nodes")
_KEY: Final = "node.kubernetes.io/not-ready"
_EFFECT: Final = "NoSchedule"


class TaintNodesByCondition(Plugin):
    """Taints new nodes as not ready. The node lifecycle controller removes the taint."""

    name = "TaintNodesByCondition"
    operations = frozenset({CREATE})
    resources = frozenset({_NODES})
    subresources = OBJECT_ALONE
    mutates = True
    changed_fields = ("spec.taints",)

    async def admit(self, attributes: Attributes) -> None:
        spec = attributes.obj.spec
        if not any(each.key == _KEY and each.effect == _EFFECT for each in spec.taints):
            spec.taints = [*spec.taints, Taint(key=_KEY, effect=_EFFECT)]


TAINT_NODES_BY_CONDITION: Final = Declaration(
    TaintNodesByCondition, on_by_default=True, make=lambda dependencies: TaintNodesByCondition()
)
