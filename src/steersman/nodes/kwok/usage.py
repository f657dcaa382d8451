"""ResourceUsage and ClusterResourceUsage objects of kwok: usage of containers as values or expressions of CEL."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steersman.api.core.v1 import Container, Node, Pod
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.informer import Informer
from steersman.client.plain_object import PlainObject
from steersman.machinery.values.quantity import QuantityError, parse
from steersman.nodes.kwok.pod_objects import GROUP, VERSION, ForContainers, for_container, selects
from steersman.nodes.usage import NANO, bounded
from steersman.work.bounded_cache import BoundedCache

if TYPE_CHECKING:  # slow to import, and needed only for expressions
    from steersman.nodes.kwok.expressions import UsageExpressions

logger = logging.getLogger(__name__)
_MOST_CONVERTED: Final = 1000
_MOST_EXPRESSION: Final = 2048
"""Characters of an expression. Longer ones take more than 10 ms to compile, which holds the event loop."""


class UsageObject(PlainObject):
    """ResourceUsage or ClusterResourceUsage."""


class _Amount(msgspec.Struct, frozen=True):
    value: str | int | None = None
    expression: str | None = None


class _Usages(ForContainers, frozen=True):
    usage: dict[str, _Amount] = {}


_OWN: Final[APIResource[UsageObject]] = APIResource(GROUP, VERSION, "resourceusages", "ResourceUsage", UsageObject)
_OF_CLUSTER: Final[APIResource[UsageObject]] = APIResource(
    GROUP, VERSION, "clusterresourceusages", "ClusterResourceUsage", UsageObject, namespaced=False
)


class KwokUsage:
    """Source of the usage of containers (`nodes.usage.UsageSource`): `start()`, then `await stop()`."""

    def __init__(self, client: Client, nodes: Informer[Node]) -> None:
        self._nodes = nodes
        self._own: Informer[UsageObject] = Informer(client, _OWN)
        self._of_cluster: Informer[UsageObject] = Informer(client, _OF_CLUSTER)
        self._expressions: UsageExpressions | None = None
        self._reported: set[str] = set()
        self._converted: BoundedCache[tuple[str, str], tuple[_Usages, ...]] = BoundedCache(_MOST_CONVERTED)
        """Usages by uid and version of their objects."""

    def start(self) -> None:
        """Start to follow the objects."""
        for each in (self._own, self._of_cluster):
            each.on_failure(lambda error: logger.info("usage objects: %s", error))
            each.start()

    async def stop(self) -> None:
        """Stop following."""
        await self._own.stop()
        await self._of_cluster.stop()

    def used(self, pod: Pod, container: Container, resource: str, at: float) -> int | None:
        """Return the usage of a container in billionths; None if no object is about it."""
        if not len(self._own) and not len(self._of_cluster):
            return None
        amount = self._amount(pod, container.name, resource)
        if amount is None:
            return None
        if amount.value is not None:
            try:
                return parse(str(amount.value)).nanos()
            except QuantityError:
                return None
        if amount.expression is None:
            return None
        if self._expressions is None:
            from steersman.nodes.kwok.expressions import UsageExpressions

            self._expressions = UsageExpressions()
        if len(amount.expression) > _MOST_EXPRESSION:
            self._report(amount.expression[:_MOST_EXPRESSION], f"more than {_MOST_EXPRESSION} characters")
            return 0
        node = self._nodes.get("", pod.spec.node_name)
        value = self._expressions.value(amount.expression, node, pod, container)
        if isinstance(value, str):
            self._report(amount.expression, value)
            return 0
        return int(bounded(value) * NANO)

    def _amount(self, pod: Pod, container: str, resource: str) -> _Amount | None:
        own = self._own.get(pod.metadata.namespace, pod.metadata.name)
        if own is not None:
            return self._found(own, container, resource) or _Amount(value=0)
        for each in sorted(self._of_cluster, key=lambda each: each.metadata.name):
            if selects(_spec(each), pod.metadata.namespace, pod.metadata.name):
                found = self._found(each, container, resource)
                if found is not None:
                    return found
        return None

    def _found(self, obj: UsageObject, container: str, resource: str) -> _Amount | None:
        key = obj.metadata.uid, obj.metadata.resource_version
        usages = self._converted[key]
        if usages is None:
            usages = _usages(obj)
            self._converted.keep(key, usages)
        found = for_container(usages, container)
        return None if found is None else found.usage.get(resource, _Amount(value=0))

    def _report(self, expression: str, why: str) -> None:
        """Log once that an expression fails."""
        if len(self._reported) < _MOST_CONVERTED and expression not in self._reported:
            self._reported.add(expression)
            logger.warning("usage %.200r: %s", expression, why)


def _spec(obj: UsageObject) -> Mapping[str, Any]:
    return obj.spec if isinstance(obj.spec, dict) else {}


def _usages(obj: UsageObject) -> tuple[_Usages, ...]:
    """Return the usages of an object, none for one that somebody's own definition has let through."""
    try:
        return msgspec.convert(_spec(obj).get("usages") or (), tuple[_Usages, ...])
    except msgspec.ValidationError:
        return ()
