"""A server whose requests are recorded in a folder, for `steersman report`."""

from __future__ import annotations

from steersman.cluster.cluster import Cluster
from steersman.controlplane.addresses import Address
from steersman.controlplane.control_plane import ControlPlane
from steersman.report.recording import Recording


class Recorded:
    """A control plane or cluster, and the record of its requests (cli.serve.Service)."""

    def __init__(self, service: ControlPlane | Cluster, recording: Recording) -> None:
        self._service = service
        self._recording = recording

    async def start(self) -> Address:
        """Start both. Raises OSError for a folder that cannot be written to."""
        address = await self._service.start()
        plane = self._service if isinstance(self._service, ControlPlane) else self._service.plane
        assert plane.server is not None
        self._recording.start(plane.server.traces)
        return address

    async def stop(self) -> None:
        """Stop both; the last requests are written."""
        await self._service.stop()
        await self._recording.stop()
