"""Controller that attaches CSI volumes to the nodes of their pods, and detaches them
(pkg/controller/volume/attachdetach).
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from steersman.api.core.v1 import AttachedVolume, Node, PersistentVolume, PersistentVolumeClaim, Pod
from steersman.api.meta.v1 import ObjectMeta
from steersman.api.storage.v1 import CSIDriver, VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec
from steersman.client.errors import ignoring, is_already_exists, is_not_found
from steersman.client.events import reference
from steersman.client.indexes import BY_NODE, by_node
from steersman.client.resources import NODES, PODS, VOLUME_ATTACHMENTS
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.volumes.attach_detach.desired_attachments import (
    AttachmentInformers,
    attachment_name,
    may_be_shared,
    volume_of,
)
from steersman.machinery.built_in.csi import is_csi_name, unique_name
from steersman.machinery.built_in.volumes import CONTROLLER_ATTACHES
from steersman.machinery.codec.serializer import to_plain
from steersman.machinery.values import times
from steersman.machinery.values.conditions import is_condition_true
from steersman.work import simulated_time
from steersman.work.backoff import Backoff

LONGEST_UNMOUNT: Final = 360.0
"""Seconds after which a volume is detached by force from an unhealthy node that still reports it in use."""
LONGEST_ATTACH: Final = 120.0
"""Seconds after which an event reports that an attachment has not happened."""
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"

_REPORTS: Final = Backoff(0.5, 122.0)
"""Pauses between events about the same failure."""

Key = tuple[Literal["volume", "node"], str]


class _Outcome(Struct):
    """Last reported outcome of an attachment: the reason of a failure, "" for a success."""

    why: str
    next_report: float = 0.0
    """Time of the next report of the failure, on the event loop's clock."""
    reports: int = 0
    """Reports of the failure so far."""


class AttachDetach(Controller[Key]):
    """Attaches and detaches volumes. A key is a volume, or a node whose status lists the attached volumes."""

    name = "persistentvolume-attach-detach-controller"
    account = "attachdetach-controller"
    workers = 10

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._objects = world = AttachmentInformers(self.informers)
        world.pods.add_index(BY_NODE, by_node)
        self._names: dict[str, str] = {}
        """Unique volume names in the nodes' status, by the name of the attachment."""
        self._leaving: dict[str, float] = {}
        """Attachments to detach, and since when, on the event loop's clock."""
        self._detaching: set[str] = set()
        """Attachments being detached, which the nodes' status no longer lists."""
        self._multi_attach_reported: dict[str, set[str]] = {}
        """Nodes by volume for which an event has reported that the volume is attached to another node."""
        self._outcome: dict[str, _Outcome] = {}
        """Last reported outcomes of attachments."""
        world.pods.on_change(self._pod_changed)
        world.claims.on_change(self._claim_changed)
        world.volumes.on_change(self._volume_changed)
        world.attachments.on_change(self._attachment_changed)
        world.nodes.on_change(self._node_changed)
        world.drivers.on_change(self._driver_changed)

    # Changes

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is not None and pod.spec.node_name:
            for volume in self._objects.volumes_of(pod):
                self.queue.add(("volume", volume))

    def _claim_changed(self, _: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        if new is not None and new.spec.volume_name:
            self.queue.add(("volume", new.spec.volume_name))

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        volume = new or old
        if volume is not None and volume.spec.csi is not None:
            self.queue.add(("volume", volume.metadata.name))

    def _attachment_changed(self, old: VolumeAttachment | None, new: VolumeAttachment | None) -> None:
        attachment = new or old
        if attachment is None:
            return
        self.queue.add(("volume", volume_of(attachment)))
        self.queue.add(("node", attachment.spec.node_name))
        if new is None:
            name = attachment.metadata.name
            for outcome in (self._names, self._leaving, self._outcome):
                outcome.pop(name, None)
            self._detaching.discard(name)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        node = new or old
        if node is None or (old is not None and new is not None and _relevant_parts(old) == _relevant_parts(new)):
            return
        name = node.metadata.name
        for attachment in self._objects.attachments_on(name):
            self.queue.add(("volume", volume_of(attachment)))
        if new is not None:
            self.queue.add(("node", name))
            if old is None:
                for pod in self._objects.pods.indexed(BY_NODE, name):
                    self._pod_changed(None, pod)

    def _driver_changed(self, old: CSIDriver | None, new: CSIDriver | None) -> None:
        driver = new or old
        for volume in self._objects.volumes:
            csi = volume.spec.csi
            if driver is not None and csi is not None and csi.driver == driver.metadata.name:
                self.queue.add(("volume", volume.metadata.name))

    # Reconciliation

    async def run(self) -> None:
        done = (each.metadata.name for each in self._objects.attachments if each.status.attached)
        self._outcome = {name: _Outcome("") for name in done}
        await super().run()

    async def sync(self, key: Key) -> None:
        kind, name = key
        if kind == "node":
            await self._report(name)
        else:
            await self._sync_volume(name)

    async def _sync_volume(self, name: str) -> None:
        volume = self._objects.volumes.get("", name)
        desired = {} if volume is None else self._objects.desired_nodes(volume)
        attached: set[str] = set()
        for attachment in self._objects.attachments_of(name):
            node = attachment.spec.node_name
            if volume is not None:
                csi = volume.spec.csi
                if csi is None or attachment.metadata.name != attachment_name(volume, node):
                    continue  # an attachment by another component
                self._names[attachment.metadata.name] = unique_name(csi)
            attached.add(node)
            if volume is not None and node in desired and not attachment.metadata.deletion_timestamp:
                self._keep_attached(attachment, volume, desired[node])
            elif node not in desired and attachment.metadata.name in self._names:
                await self._detach(attachment)
        self._multi_attach_reported[name] = self._multi_attach_reported.get(name, set()) & desired.keys()
        if not self._multi_attach_reported[name]:
            del self._multi_attach_reported[name]
        for node, pods in desired.items():
            assert volume is not None
            if node in attached:
                continue
            if attached and not may_be_shared(volume):
                self._record_multi_attach(volume, node, pods, attached)
                continue
            attached.add(node)
            await self._attach(volume, node)

    async def _attach(self, volume: PersistentVolume, node: str) -> None:
        assert volume.spec.csi is not None
        name = attachment_name(volume, node)
        source = VolumeAttachmentSource(persistent_volume_name=volume.metadata.name)
        spec = VolumeAttachmentSpec(attacher=volume.spec.csi.driver, node_name=node, source=source)
        self._names[name] = unique_name(volume.spec.csi)
        with ignoring(is_already_exists):
            await self.client.create(VOLUME_ATTACHMENTS, VolumeAttachment(metadata=ObjectMeta(name=name), spec=spec))
        self.queue.add_after(("volume", volume.metadata.name), LONGEST_ATTACH)

    def _keep_attached(self, attachment: VolumeAttachment, volume: PersistentVolume, pods: list[Pod]) -> None:
        """Keep an attachment, and record an event about the pods for its success or failure."""
        name = attachment.metadata.name
        if self._leaving.pop(name, None) is not None:
            self._detaching.discard(name)
            self.queue.add(("node", attachment.spec.node_name))
        outcome = "" if attachment.status.attached else _failure(attachment, volume)
        if outcome is None or not self._should_report(attachment, outcome):
            return
        if outcome:
            text = f'AttachVolume.Attach failed for volume "{volume.metadata.name}" : {outcome}'
            self._record_events(pods, "Warning", "FailedAttachVolume", text)
        else:
            text = f'AttachVolume.Attach succeeded for volume "{volume.metadata.name}" '
            self._record_events(pods, "Normal", "SuccessfulAttachVolume", text)

    def _should_report(self, attachment: VolumeAttachment, why: str) -> bool:
        """Return True if an outcome is to be reported. A lasting failure is reported again after growing pauses."""
        now = simulated_time.time()
        name = attachment.metadata.name
        outcome = self._outcome.get(name)
        if outcome is None or outcome.why != why:
            outcome = self._outcome[name] = _Outcome(why)
        elif not why or now < outcome.next_report:
            return False
        if why:
            wait = _REPORTS.wait(outcome.reports)
            outcome.reports += 1
            outcome.next_report = now + wait
            self.queue.add_after(("volume", volume_of(attachment)), wait)
        return True

    async def _detach(self, attachment: VolumeAttachment) -> None:
        """Detach a volume from a node once the node no longer uses it."""
        name, node_name = attachment.metadata.name, attachment.spec.node_name
        if attachment.metadata.deletion_timestamp:
            return
        now = simulated_time.time()
        since = self._leaving.setdefault(name, now)
        node = self._objects.nodes.get("", node_name)
        gone = node is None or any(each.key == OUT_OF_SERVICE for each in node.spec.taints)
        late = now - since >= LONGEST_UNMOUNT
        if not (gone or (late and not _is_ready(node))) and self._is_used(node, name):
            self.queue.add_after(("volume", volume_of(attachment)), LONGEST_UNMOUNT)
            return
        self._detaching.add(name)
        node = await self._report(node_name)
        if not gone and not late and self._is_used(node, name):
            self._detaching.discard(name)  # a pod started to use the volume meanwhile
            self.queue.add(("node", node_name))
            return
        with ignoring(is_not_found):
            await self.client.delete(VOLUME_ATTACHMENTS, name)

    def _is_used(self, node: Node | None, attachment: str) -> bool:
        return node is not None and self._names.get(attachment) in node.status.volumes_in_use

    async def _report(self, name: str) -> Node | None:
        """Update the attached volumes in the status of a node. Return the current node, None if it is gone."""
        node = self._objects.nodes.get("", name)
        if node is None or CONTROLLER_ATTACHES not in node.metadata.annotations:
            return node
        names = {
            self._names[each.metadata.name]
            for each in self._objects.attachments_on(name)
            if each.status.attached
            and each.metadata.name in self._names
            and each.metadata.name not in self._detaching
            and not each.metadata.deletion_timestamp
        }
        others = [each for each in node.status.volumes_attached if not is_csi_name(each.name)]
        attached = [*others, *(AttachedVolume(name=each, device_path="") for each in sorted(names))]
        if {each.name for each in attached} == {each.name for each in node.status.volumes_attached}:
            return node
        patch = {"status": {"volumesAttached": [to_plain(each) for each in attached] or None}}
        with ignoring(is_not_found):
            return await self.client.patch(NODES, name, "", patch, subresource="status")
        return None

    # Events

    def _record_events(self, pods: list[Pod], type_: str, reason: str, text: str) -> None:
        for pod in pods:
            self.recorder.event(reference(PODS, pod), type_, reason, text)

    def _record_multi_attach(self, volume: PersistentVolume, node: str, pods: list[Pod], attached: set[str]) -> None:
        name = volume.metadata.name
        if node in self._multi_attach_reported.setdefault(name, set()):
            return
        self._multi_attach_reported[name].add(node)
        others = [
            each for other, users in self._objects.desired_nodes(volume).items() if other in attached for each in users
        ]
        for pod in pods:
            text = f'Multi-Attach error for volume "{name}" {_in_use(pod, others)}'
            self._record_events([pod], "Warning", "FailedAttachVolume", text)


def _failure(attachment: VolumeAttachment, volume: PersistentVolume) -> str | None:
    """Return the reason why an attachment has failed; None if it may still succeed."""
    error, csi = attachment.status.attach_error, volume.spec.csi
    if error is not None:
        return error.message
    if csi is None or times.unix_now() - times.unix(attachment.metadata.creation_timestamp or "") < LONGEST_ATTACH:
        return None
    return f"timed out waiting for external-attacher of {csi.driver} CSI driver to attach volume {csi.volume_handle}"


def _in_use(pod: Pod, others: list[Pod]) -> str:
    """Return the text about a volume that is attached to another node."""
    if not others:
        return "Volume is already exclusively attached to one node and can't be attached to another"
    near = [each.metadata.name for each in others if each.metadata.namespace == pod.metadata.namespace]
    far = len(others) - len(near)
    if not near:
        return f"Volume is already used by {far} pod(s) in different namespaces"
    rest = f" and {far} pod(s) in different namespaces" if far else ""
    return f"Volume is already used by pod(s) {', '.join(near)}{rest}"


def _is_ready(node: Node | None) -> bool:
    return node is not None and is_condition_true(node.status.conditions, "Ready")


def _relevant_parts(node: Node) -> tuple[object, ...]:
    """Return the parts of a node that the controller depends on."""
    taints = any(each.key == OUT_OF_SERVICE for each in node.spec.taints)
    return (
        CONTROLLER_ATTACHES in node.metadata.annotations,
        taints,
        _is_ready(node),
        node.status.volumes_in_use,
        node.status.volumes_attached,
    )
