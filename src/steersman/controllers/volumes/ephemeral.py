"""Controller that creates the claims of pods' ephemeral volumes (pkg/controller/volume/ephemeral)."""

from __future__ import annotations

from steersman.api.core.v1 import PersistentVolumeClaim, Pod, Volume
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.events import reference
from steersman.client.informer import Key, key_of
from steersman.client.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.volumes.pods import add_claim_index, pods_of_claim
from steersman.controllers.workloads.controller_ref import new_controller_ref
from steersman.machinery.built_in.volumes import claim_name, is_made_for
from steersman.machinery.errors.status import StatusError
from steersman.work.work_queue import TryLater


class EphemeralVolumes(Controller[Key]):
    """Creates claims from pods' templates. A key is the namespace and name of a pod."""

    name = "ephemeral-volume-controller"
    account = "ephemeral-volume-controller"
    component = "ephemeral_volume"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._pods = self.informers.for_resource(PODS)
        self._claims = self.informers.for_resource(PERSISTENT_VOLUME_CLAIMS)
        add_claim_index(self._pods)
        self._pods.on_change(self._pod_changed)
        self._claims.on_change(self._claim_changed)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is None and new is not None:
            self._add(new)

    def _claim_changed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        if new is None and old is not None:
            for pod in pods_of_claim(self._pods, key_of(old)):
                self._add(pod)

    def _add(self, pod: Pod) -> None:
        if not pod.metadata.deletion_timestamp and any(each.ephemeral is not None for each in pod.spec.volumes):
            self.queue.add(key_of(pod))

    async def sync(self, key: Key) -> None:
        pod = self._pods.get(*key)
        if pod is None or pod.metadata.deletion_timestamp:
            return
        for volume in pod.spec.volumes:
            if volume.ephemeral is None:
                continue
            try:
                await self._provide(pod, volume)
            except TryLater as error:
                text = f"ephemeral volume {volume.name}: {error}"
                self.recorder.event(reference(PODS, pod), "Warning", "FailedBinding", text)
                raise

    async def _provide(self, pod: Pod, volume: Volume) -> None:
        """Create the claim of an ephemeral volume unless it exists. Raises TryLater."""
        namespace, name = pod.metadata.namespace, claim_name(pod, volume)
        claim = self._claims.get(namespace, name)
        if claim is not None:
            if not is_made_for(claim, pod):
                whose = f"PVC {namespace}/{name} was not created for pod {namespace}/{pod.metadata.name}"
                raise TryLater(f"{whose} (pod is not owner)")
            return
        template = volume.ephemeral.volume_claim_template if volume.ephemeral is not None else None
        if template is None:
            return
        metadata = ObjectMeta(
            name=name,
            namespace=namespace,
            owner_references=[new_controller_ref(PODS, pod)],
            annotations=dict(template.metadata.annotations),
            labels=dict(template.metadata.labels),
        )
        try:
            await self.client.create(
                PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim(metadata=metadata, spec=template.spec)
            )
        except StatusError as error:
            raise TryLater(f"create PVC {name}: {error.message}") from None
