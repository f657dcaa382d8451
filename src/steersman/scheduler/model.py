"""The model of a cluster that the scheduler decides from, and the cycle that decides.

The running scheduler feeds it from watches; a simulation feeds it with a copy of a cluster's objects.
"""

from __future__ import annotations

from typing import Final

from steersman.api.core import v1 as core
from steersman.client.informer import Informers
from steersman.client.resources import POD_DISRUPTION_BUDGETS
from steersman.scheduler.cycle import Cycle
from steersman.scheduler.demands import Demands
from steersman.scheduler.devices.pod_claims import PodClaims
from steersman.scheduler.devices.store import DeviceStore
from steersman.scheduler.preemption.nominator import Nominator
from steersman.scheduler.state.cluster import ClusterState
from steersman.scheduler.volumes.pod_volumes import PodVolumes, has_relevant_volumes
from steersman.scheduler.volumes.store import VolumeStore


class Model:
    """Nodes and the pods on them, volumes, devices, nominations, and the cycle that decides pods on them.

    Volumes, devices, budgets, Services and owners come from the informers; whoever owns the model puts namespaces,
    nodes and pods into `cluster`.
    """

    def __init__(self, informers: Informers) -> None:
        self.cluster: Final = ClusterState()
        self.devices: Final = DeviceStore(informers)
        self.demands: Final = Demands(informers, self.cluster, self.devices.class_names.requested_by)
        self.nominator: Final = Nominator()
        self.volumes: Final = VolumeStore(informers)
        self.budgets: Final = informers.for_resource(POD_DISRUPTION_BUDGETS)
        self.cycle: Final = Cycle(
            self.cluster, self.demands, self.nominator, self.budgets.list, self._volumes_of, self._claims_of
        )

    async def synced(self) -> None:
        """Wait until the informers have synced."""
        await self.budgets.wait_until_synced()
        await self.demands.synced()
        await self.volumes.synced()
        await self.devices.synced()

    def _volumes_of(self, pod: core.Pod) -> PodVolumes | None:
        return PodVolumes(pod, self.volumes, self.cluster.users_of) if has_relevant_volumes(pod) else None

    def _claims_of(self, pod: core.Pod) -> PodClaims | None:
        is_needed = pod.spec.resource_claims or self.devices.class_names.requested_by(pod)
        return PodClaims(pod, self.devices) if is_needed else None
