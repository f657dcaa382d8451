"""PodNodeSelector: a namespace's annotation selects the nodes of its pods; a configuration lists the allowed selectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from steersman.admission.interface import CREATE, OBJECT_ALONE, Attributes, Plugin
from steersman.admission_plugins.declaration import ConfiguredDeclaration, PluginDependencies
from steersman.api.core.v1 import PodSpec
from steersman.machinery.errors.field import Path, invalid
from steersman.machinery.errors.status import forbidden, internal, plain_internal
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.validation.formats import is_qualified_name, is_valid_label_value
from steersman.rest.objects import Reading

_PODS: Final = GroupResource("", "pods")
ANNOTATION: Final = "scheduler.alpha.kubernetes.io/node-selector"


DEFAULT: Final = "clusterDefaultNodeSelector"
"""Key in the configuration of the selector for namespaces without an annotation."""
_UNCONFIGURED: Final[Mapping[str, str]] = MappingProxyType({})


class Annotated(NamedTuple):
    """Text of a namespace's annotation, None if it has none."""

    selector: str | None


def node_selector_of(namespace: Any) -> Annotated:
    """Return the node selector in a namespace's annotation."""
    return Annotated(namespace.metadata.annotations.get(ANNOTATION))


class PodNodeSelector(Plugin):
    """Merges the namespace's node selector into the pod's.

    `find` returns the `node_selector_of` a namespace, None if the namespace does not exist. `configured`
    (podNodeSelectorPluginConfig) has for a namespace the labels that its pods may select by (all labels if the
    namespace is missing), and under `DEFAULT` the selector of namespaces without an annotation.
    """

    name = "PodNodeSelector"
    operations = frozenset({CREATE})
    resources = frozenset({_PODS})
    subresources = OBJECT_ALONE
    mutates = True
    changed_fields = ("spec.node_selector",)
    validates = True

    def __init__(self, find: Callable[[str], Annotated | None], configured: Mapping[str, str] = _UNCONFIGURED) -> None:
        self._find = find
        self._configured = configured

    async def admit(self, attributes: Attributes) -> None:
        """Add the namespace's selector to the pod's. Raises StatusError 403 if they contradict each other."""
        selector = self._namespace_selector(attributes)
        spec: PodSpec = attributes.obj.spec
        spec.node_selector = selector | spec.node_selector
        self._check_allowed(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Raise StatusError 403 if the pod's selector contradicts the namespace's or is not allowed there."""
        self._namespace_selector(attributes)
        self._check_allowed(attributes)

    def _check_allowed(self, attributes: Attributes) -> None:
        """Raise StatusError 403 if the pod selects by a label that is not allowed in its namespace."""
        allowed = _parse(self._configured.get(attributes.action.namespace, ""))
        if allowed and not attributes.obj.spec.node_selector.items() <= allowed.items():
            reason = "pod node label selector labels conflict with its namespace whitelist"
            raise forbidden(_PODS, attributes.obj.metadata.name, reason)

    def _namespace_selector(self, attributes: Attributes) -> dict[str, str]:
        annotated = self._find(attributes.action.namespace)
        if annotated is None:
            raise internal(f"namespace {attributes.action.namespace} does not exist")
        text = annotated.selector
        selector = _parse(self._configured.get(DEFAULT, "") if text is None else text)
        pods = attributes.obj.spec.node_selector
        if any(pods.get(key, value) != value for key, value in selector.items()):
            reason = "pod node label selector conflicts with its namespace node label selector"
            raise forbidden(_PODS, attributes.obj.metadata.name, reason)
        return selector


def _parse(text: str) -> dict[str, str]:
    """Return the labels in `KEY=VALUE,...`. Raises StatusError 500, as upstream."""
    labels: dict[str, str] = {}
    for pair in text.split(",") if text else ():
        parts = pair.split("=")
        if len(parts) != 2:
            raise plain_internal(f"invalid selector: [{' '.join(parts)}]")
        key, value = parts[0].strip(), parts[1].strip()
        if faults := is_qualified_name(key):
            raise plain_internal(str(invalid(Path(), key, "; ".join(faults))))
        if faults := is_valid_label_value(value):
            raise plain_internal(str(invalid(Path()[key], value, "; ".join(faults))))
        labels[key] = value
    return labels


def _make(dependencies: PluginDependencies, configured: Mapping[str, str]) -> PodNodeSelector:
    return PodNodeSelector(
        dependencies.reader("namespaces", Reading(node_selector_of, "metadata.annotations")), configured
    )


POD_NODE_SELECTOR: Final = ConfiguredDeclaration(PodNodeSelector, on_by_default=False, make=_make)
