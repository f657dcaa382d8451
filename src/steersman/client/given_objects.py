"""Informers of objects that the caller supplies, for work on a copy of a cluster's state without a server."""

from __future__ import annotations

from typing import NoReturn, TypeVar

from steersman.client.api_resource import APIResource, Object
from steersman.client.client import Client
from steersman.client.informer import Informers
from steersman.client.transport import Fields, Unreachable

O = TypeVar("O", bound=Object)  # noqa: E741


class _NoServer:
    """Transport without a server: every request fails."""

    async def send(self, method: str, target: str, fields: Fields, body: bytes) -> NoReturn:
        """Raise Unreachable."""
        raise Unreachable(f"{method} {target}: there is no server")

    async def aclose(self) -> None:
        """Do nothing."""


class GivenInformers(Informers):
    """Informers that follow nothing: their objects are put in and removed by the caller.

    `client` is a client without a server, whose requests raise Unreachable.
    """

    def __init__(self) -> None:
        self.client = Client(_NoServer(), "")
        super().__init__(self.client)

    def put(self, resource: APIResource[O], obj: O) -> None:
        """Store an object, and notify the handlers of the resource's informer."""
        self.for_resource(resource).put(obj)

    def remove(self, resource: APIResource[O], obj: O) -> None:
        """Remove an object, and notify the handlers of the resource's informer."""
        self.for_resource(resource).remove(obj)
