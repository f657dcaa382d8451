"""`steersman serve --faults`: a control plane with Fault objects, and without controllers, scheduler and nodes."""

from __future__ import annotations

from contextlib import AsyncExitStack

from steersman.client.client import Client
from steersman.client.in_process import InProcessTransport
from steersman.cluster.fault_objects.controller import USER, FaultController
from steersman.cluster.fault_objects.definition import definition, install_faults
from steersman.cluster.first_definitions import parts_with
from steersman.controllers.controller import ControllerDependencies, Settings
from steersman.controllers.manager import ControllerManager
from steersman.controlplane.addresses import Address
from steersman.controlplane.control_plane import PARTS, ControlPlane
from steersman.controlplane.options import Options
from steersman.faults.fault_set import FaultSet
from steersman.work.offloading import bound


class FaultyServer:
    """A control plane whose Fault objects happen: `await start()`, then `await stop()`."""

    def __init__(self, options: Options) -> None:
        self._faults = FaultSet()
        parts = parts_with([definition()], PARTS)
        self.plane = ControlPlane(options, faults=self._faults, owns_process=True, parts=parts)
        self._running = AsyncExitStack()

    async def start(self) -> Address:
        """Start the server and return its address. Raises what ControlPlane.start raises."""
        address = await self.plane.start()
        self._running.push_async_callback(self.plane.stop)
        try:
            with bound(self.plane.account(USER.name)):
                await self._start_faults()
        except BaseException:
            await self.stop()
            raise
        return address

    async def _start_faults(self) -> None:
        server = self.plane.server
        assert server is not None
        client = Client(InProcessTransport(server.handler, self.plane.token_of(USER)), FaultController.component)
        if not await install_faults(client):
            return
        settings = Settings()
        manager = ControllerManager(client, lambda _: client, settings, ())
        recorder = manager.events.recorder(FaultController.component)
        controller = FaultController(
            ControllerDependencies(client, manager.informers, manager.monitors, recorder, settings), self._faults
        )
        self._running.push_async_callback(manager.stop)
        await manager.start()
        self._running.push_async_callback(controller.stop)
        controller.start()

    async def stop(self) -> None:
        """End the faults, and stop the server."""
        await self._running.aclose()
