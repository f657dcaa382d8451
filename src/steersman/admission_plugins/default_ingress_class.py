"""DefaultIngressClass: Ingresses without a class get the default class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from steersman.admission.interface import CREATE, OBJECT_ALONE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration, PluginDependencies
from steersman.machinery.built_in.classes import DEFAULT_INGRESS_CLASS, INGRESS_CLASS, DefaultClass
from steersman.machinery.identity.schema import GroupResource
from steersman.rest.objects import Reading

_INGRESSES: Final = GroupResource("networking.k8s.io", "ingresses")


class DefaultIngressClass(Plugin):
    """Sets the default class. `default` returns its name, None if there is no default class."""

    name = "DefaultIngressClass"
    operations = frozenset({CREATE})
    resources = frozenset({_INGRESSES})
    subresources = OBJECT_ALONE
    mutates = True
    changed_fields = ("spec.ingress_class_name",)

    def __init__(self, default: Callable[[], str | None]) -> None:
        self._default = default

    async def admit(self, attributes: Attributes) -> None:
        ingress = attributes.obj
        if ingress.spec.ingress_class_name is None and INGRESS_CLASS not in ingress.metadata.annotations:
            ingress.spec.ingress_class_name = self._default()


_CLASS: Final = Reading(lambda obj: obj, "metadata.name", "metadata.annotations", "metadata.creationTimestamp")


def _make(dependencies: PluginDependencies) -> DefaultIngressClass:
    classes = dependencies.objects("networking.k8s.io", "ingressclasses")
    default = DefaultClass(DEFAULT_INGRESS_CLASS, lambda: classes.read_all_cached("", _CLASS), classes.change_count)
    return DefaultIngressClass(default.name)


DEFAULT_INGRESS_CLASS_PLUGIN: Final = Declaration(DefaultIngressClass, on_by_default=True, make=_make)
