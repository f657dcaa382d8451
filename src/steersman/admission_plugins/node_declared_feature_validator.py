"""NodeDeclaredFeatureValidator: a running pod may only be changed in ways that its node supports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from steersman.admission.interface import UPDATE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration, PluginDependencies
from steersman.api.core.v1 import PodSpec, ResourceRequirements
from steersman.machinery.built_in.pod_resources import is_sidecar
from steersman.machinery.errors.field import quote
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.values.quantity import parse
from steersman.rest.objects import Reading

_PODS: Final = GroupResource("", "pods")


def declared_features(node: Any) -> frozenset[str]:
    """Return the features that a node declares in its status."""
    return frozenset(node.status.declared_features)


class NodeDeclaredFeatureValidator(Plugin):
    """Checks pod updates. `find` returns the `declared_features` of a node, None if it does not exist."""

    name = "NodeDeclaredFeatureValidator"
    operations = frozenset({UPDATE})
    resources = frozenset({_PODS})
    subresources = frozenset({"", "resize"})
    validates = True

    def __init__(self, find: Callable[[str], frozenset[str] | None]) -> None:
        self._find = find

    async def validate(self, attributes: Attributes) -> None:
        """Raise StatusError 403 if the node is missing or lacks a required feature."""
        pod, old = attributes.obj, attributes.old
        node = pod.spec.node_name
        if not node or pod.metadata.generation == old.metadata.generation:
            return
        needed = list(_needed(pod.spec, old.spec))
        if not needed:
            return
        features = self._find(node)
        if features is None:
            raise attributes.forbid(f"node {quote(node)} not found")
        if missing := [name for name in needed if name not in features]:
            raise attributes.forbid(
                f"pod update requires features {', '.join(missing)} which are not available on node {quote(node)}"
            )


def _needed(new: PodSpec, old: PodSpec) -> Iterator[str]:
    """Yield the features that an update requires, in alphabetical order."""
    if _differ(new.resources, old.resources):
        yield "InPlacePodLevelResourcesVerticalScaling"
    for now, then in zip(new.init_containers, old.init_containers, strict=False):
        if not is_sidecar(then) and now.resources != then.resources:
            yield "InPlacePodVerticalScalingInitContainers"
            return


def _differ(one: ResourceRequirements | None, other: ResourceRequirements | None) -> bool:
    """Return True if the resources differ; amounts are compared by value."""
    if one is None or other is None:
        return one is not other
    return _amounts(one) != _amounts(other) or one.claims != other.claims


def _amounts(resources: ResourceRequirements) -> list[dict[str, Any]]:
    return [{name: parse(text) for name, text in amounts.items()} for amounts in (resources.requests, resources.limits)]


def _make(dependencies: PluginDependencies) -> NodeDeclaredFeatureValidator:
    return NodeDeclaredFeatureValidator(
        dependencies.reader("nodes", Reading(declared_features, "status.declaredFeatures"))
    )


NODE_DECLARED_FEATURE_VALIDATOR: Final = Declaration(NodeDeclaredFeatureValidator, on_by_default=True, make=_make)
