"""PodTolerationRestriction: a namespace's annotations set default and allowed tolerations of its pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from steersman.admission.interface import CREATE, OBJECT_ALONE, UPDATE, Attributes, Plugin
from steersman.admission_plugins.declaration import ConfiguredDeclaration, PluginDependencies
from steersman.admission_plugins.tolerations import all_included, merge_tolerations
from steersman.api.core.v1 import PodSpec, Toleration
from steersman.machinery.built_in.pod_resources import compute_qos_class
from steersman.machinery.codec.configuration import Document
from steersman.machinery.codec.go_json import unmarshal
from steersman.machinery.codec.go_types import GoType, struct_of
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.status import not_found, plain_internal
from steersman.machinery.identity.schema import GroupResource
from steersman.rest.objects import Reading

_PODS: Final = GroupResource("", "pods")
_NAMESPACES: Final = GroupResource("", "namespaces")
DEFAULTS: Final = "scheduler.alpha.kubernetes.io/defaultTolerations"
WHITELIST: Final = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_MEMORY_PRESSURE: Final = Toleration(key="node.kubernetes.io/memory-pressure", operator="Exists", effect="NoSchedule")


class Annotations(NamedTuple):
    """Texts of both annotations of a namespace, None where the namespace lacks one."""

    defaults: str | None
    whitelist: str | None


def toleration_annotations(namespace: Any) -> Annotations:
    """Return the annotations of a namespace with default and with allowed tolerations."""
    annotations = namespace.metadata.annotations
    return Annotations(annotations.get(DEFAULTS), annotations.get(WHITELIST))


class Configuration(Document):
    """Configuration of podtolerationrestriction.admission.k8s.io/v1alpha1: tolerations for namespaces without
    annotations.
    """

    default: list[Toleration] = []
    whitelist: list[Toleration] = []


UNCONFIGURED: Final = Configuration()


class PodTolerationRestriction(Plugin):
    """Adds and checks tolerations. `find` returns a namespace's annotations, None if the namespace does not exist."""

    name = "PodTolerationRestriction"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({_PODS})
    subresources = OBJECT_ALONE
    mutates = True
    changed_fields = ("spec.tolerations",)
    validates = True

    def __init__(self, find: Callable[[str], Annotations | None], configuration: Configuration = UNCONFIGURED) -> None:
        self._find = find
        self._configuration = configuration

    async def admit(self, attributes: Attributes) -> None:
        """Add the namespace's default tolerations, and one of memory pressure if the pod's QoS class is not BestEffort."""
        spec: PodSpec = attributes.obj.spec
        extra = self._defaults(attributes) if attributes.operation == CREATE else []
        if (attributes.obj.status.qos_class or compute_qos_class(spec)) != "BestEffort":
            extra.append(msgspec.structs.replace(_MEMORY_PRESSURE))
        if extra:
            spec.tolerations = merge_tolerations(spec.tolerations, extra)
        await self.validate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Raise StatusError 500, as upstream, if the pod has a toleration that is not allowed."""
        tolerations = attributes.obj.spec.tolerations
        if not tolerations:
            return
        text = self._annotations(attributes).whitelist
        allowed = list(self._configuration.whitelist) if text is None else _parse(text)
        if allowed and not all_included(tolerations, allowed):
            raise plain_internal(
                "pod tolerations (possibly merged with namespace default tolerations) conflict with its "
                f"{'cluster' if text is None else 'namespace'} whitelist"
            )

    def _defaults(self, attributes: Attributes) -> list[Toleration]:
        text = self._annotations(attributes).defaults
        if text is None:
            return [msgspec.structs.replace(each) for each in self._configuration.default]
        return _parse(text)

    def _annotations(self, attributes: Attributes) -> Annotations:
        found = self._find(attributes.action.namespace)
        if found is None:
            raise not_found(_NAMESPACES, attributes.action.namespace)
        return found


_TOLERATIONS: Final = GoType("list", "[]v1.Toleration", element=struct_of(Toleration))


def _parse(text: str) -> list[Toleration]:
    """Return the tolerations in an annotation. Raises StatusError 500."""
    if not text:
        return []
    try:
        return from_plain(list[Toleration], unmarshal(_TOLERATIONS, text.encode()) or [])
    except DecodeError as error:
        raise plain_internal(str(error)) from None


def _make(dependencies: PluginDependencies, configuration: Configuration) -> PodTolerationRestriction:
    find = dependencies.reader("namespaces", Reading(toleration_annotations, "metadata.annotations"))
    return PodTolerationRestriction(find, configuration)


POD_TOLERATION_RESTRICTION: Final = ConfiguredDeclaration(PodTolerationRestriction, on_by_default=False, make=_make)
