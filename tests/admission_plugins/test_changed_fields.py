"""Fields that plugins declare as the ones they may change: traces compare these fields alone."""

from __future__ import annotations

import copy
import time
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.admission.changes import changed_paths
from steersman.admission.interface import Attributes, Chain, Plugin
from steersman.admission_plugins.default_ingress_class import DefaultIngressClass
from steersman.admission_plugins.default_storage_class import DefaultStorageClass
from steersman.admission_plugins.default_toleration_seconds import DefaultTolerationSeconds
from steersman.admission_plugins.extended_resource_toleration import ExtendedResourceToleration
from steersman.admission_plugins.pod_node_selector import Annotated, PodNodeSelector
from steersman.admission_plugins.pod_toleration_restriction import Annotations, PodTolerationRestriction
from steersman.admission_plugins.pod_topology_labels import PodTopologyLabels
from steersman.admission_plugins.priority import Priority
from steersman.admission_plugins.runtime_class import RuntimeClass
from steersman.admission_plugins.storage_object_in_use_protection import StorageObjectInUseProtection
from steersman.admission_plugins.taint_nodes_by_condition import TaintNodesByCondition
from steersman.api.core.v1 import Node, PersistentVolumeClaim
from steersman.api.networking.v1 import Ingress
from steersman.api.node.v1 import RuntimeClass as Class
from steersman.api.scheduling.v1 import PriorityClass
from steersman.machinery.codec.serializer import from_plain
from steersman.tracing.readers import Readers
from steersman.tracing.steps import steps_of
from steersman.tracing.trace import Trace, record, stop_recording
from tests.admission_plugins.pods_and_namespaces import CONTAINER, a_write, an_update, make_pod

TOLERATION = {"key": "own", "operator": "Exists", "effect": "NoSchedule"}
CLASS = from_plain(
    Class,
    {
        "metadata": {"name": "heavy"},
        "handler": "h",
        "overhead": {"podFixed": {"cpu": "100m"}},
        "scheduling": {"nodeSelector": {"kind": "heavy"}, "tolerations": [TOLERATION]},
    },
)
USUAL = from_plain(PriorityClass, {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True})
NAMED = {"metadata": {"name": "n", "namespace": "ns"}}
EXTENDED = CONTAINER | {"resources": {"requests": {"a.example/gpu": "1"}}}
BURSTABLE = CONTAINER | {"resources": {"requests": {"cpu": "1"}}}


def priority(*classes: PriorityClass) -> Priority:
    return Priority({each.metadata.name: each for each in classes}.get, lambda: classes, lambda changed: None)


WRITES: list[tuple[Plugin, Attributes, str]] = [
    (priority(), a_write(make_pod()), "spec.priority spec.preemptionPolicy"),
    (priority(USUAL), a_write(make_pod()), "spec.priority spec.preemptionPolicy spec.priorityClassName"),
    (
        priority(),
        an_update(make_pod(), make_pod({"priority": 0, "preemptionPolicy": "Never"})),
        "spec.priority spec.preemptionPolicy",
    ),
    (DefaultTolerationSeconds(), a_write(make_pod()), "spec.tolerations"),
    (
        DefaultTolerationSeconds(),
        a_write(make_pod({"tolerations": [TOLERATION]})),
        "spec.tolerations[1] spec.tolerations[2]",
    ),
    (DefaultTolerationSeconds(), a_write(make_pod({"tolerations": [{"operator": "Exists"}]})), ""),
    (ExtendedResourceToleration(), a_write(make_pod({"containers": [EXTENDED]})), "spec.tolerations"),
    (
        PodTolerationRestriction({"ns": Annotations(None, None)}.get),
        a_write(make_pod({"containers": [BURSTABLE]})),
        "spec.tolerations",
    ),
    (PodNodeSelector({"ns": Annotated("a=b")}.get), a_write(make_pod()), "spec.nodeSelector"),
    (PodTopologyLabels({"n": {"zone": "z"}}.get), a_write(make_pod({"nodeName": "n"})), "metadata.labels"),
    (
        PodTopologyLabels({"n": {"zone": "z"}}.get),
        a_write(make_pod({"nodeName": "n"}, labels={"a": "b"})),
        "metadata.labels.zone",
    ),
    (
        RuntimeClass({"heavy": CLASS}.get),
        a_write(make_pod({"runtimeClassName": "heavy"})),
        "spec.nodeSelector spec.tolerations spec.overhead",
    ),
    (TaintNodesByCondition(), a_write(from_plain(Node, NAMED), resource="nodes"), "spec.taints"),
    (
        StorageObjectInUseProtection(),
        a_write(from_plain(PersistentVolumeClaim, NAMED), resource="persistentvolumeclaims"),
        "metadata.finalizers",
    ),
    (
        DefaultStorageClass(lambda: ""),
        a_write(
            from_plain(PersistentVolumeClaim, NAMED | {"spec": {"volumeMode": "Block"}}),
            resource="persistentvolumeclaims",
        ),
        "spec.storageClassName",
    ),
    (
        DefaultIngressClass(lambda: "usual"),
        a_write(
            from_plain(Ingress, NAMED | {"spec": {"rules": [{"host": "h"}]}}),
            resource="ingresses",
            group="networking.k8s.io",
        ),
        "spec.ingressClassName",
    ),
]


class Kept:
    """A reader of all traces."""

    least_seconds = 0.0
    wants_all = True
    reads_spans = False
    reads_changes = False

    def wants(self, trace: Trace) -> bool:
        return True

    def opened(self, trace: Trace) -> None:
        """Read nothing."""

    def ended(self, trace: Trace) -> None:
        """Read nothing."""


async def changed_by(plugin: Plugin, write: Attributes) -> str:
    """Return the paths in the plugin's step."""
    readers = Readers()
    readers.add(Kept())
    trace = readers.begin({})
    assert trace is not None
    token = record(trace)
    try:
        await Chain((plugin,)).admit(write)
    finally:
        stop_recording(token)
        trace.ended = time.monotonic()
    (step,) = (each for each in steps_of(trace) if each.name == f"admission {plugin.name}")
    return str(step.attributes.get("changed", ""))


@pytest.mark.parametrize(("plugin", "write", "expected"), WRITES)
async def test_the_declared_fields_tell_as_much_as_the_whole_object(
    plugin: Plugin, write: Attributes, expected: str
) -> None:
    undeclared, written = copy.copy(plugin), replace(write, obj=copy.deepcopy(write.obj))
    undeclared.changed_fields = None
    assert plugin.changed_fields
    assert set((await changed_by(plugin, write)).split()) == set(expected.split())
    assert set((await changed_by(undeclared, written)).split()) == set(expected.split())


def test_every_plugin_that_declares_fields_is_compared() -> None:
    compared = {type(plugin) for plugin, _, _ in WRITES}
    waiting: list[Any] = [Plugin]
    while waiting:
        subclasses = waiting.pop().__subclasses__()
        waiting += subclasses
        for each in subclasses:
            if each.__module__.startswith("steersman.") and each.changed_fields:
                assert each in compared, each


def test_an_empty_field_that_differs_from_a_missing_one_is_told() -> None:
    assert changed_paths(b"null", b"{}", ("spec.overhead",)) == ["spec.overhead"]
    assert changed_paths(b"[]", b'["a"]', ("spec.taints",)) == ["spec.taints"]
    assert changed_paths(b'[null,""]', b'[0,""]', ("a", "b")) == ["a"]
