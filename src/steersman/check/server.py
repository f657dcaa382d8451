"""The API server that judges documents: in this process, in memory, without a socket, thrown away at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import quote, urlencode

from msgspec import Struct

from steersman.authentication.user import UserInfo, authenticated
from steersman.client.errors import error_from_response
from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.options import Options
from steersman.controlplane.parts.basis import Common
from steersman.endpoints.discovery import ServedResource
from steersman.machinery.codec.serializer import decode_plain, encode_in_order
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.net.in_process import InProcessClient
from steersman.work.patterns import late_pattern

ADMIN: Final = UserInfo("steersman:check", groups=("system:masters", "system:authenticated"))
_MANAGER: Final = "steersman-check"
_WARNING: Final = late_pattern(r'299 - "((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = late_pattern(r"\\(.)")


class Answer(Struct, frozen=True):
    """Response of the server: the object, or the error, and warnings."""

    plain: Any = None
    error: StatusError | None = None
    warnings: tuple[str, ...] = ()


class JudgingServer:
    """A running server, to which requests of any user are sent."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        server = plane.server
        assert server is not None
        self._client = InProcessClient(server.handler)
        self._mapper = plane.part(Common).mapper

    def resource_for(self, api_version: str, kind: str) -> ServedResource | None:
        """Return the resource that serves a kind, None if there is none."""
        group, _, version = api_version.rpartition("/")
        found = self._mapper.resources_for(GroupVersionKind(group, version, kind))
        return found[0] if found else None

    def versions_with(self, kind: str) -> list[str]:
        """Return the served API versions that have a kind of this name."""
        return self._mapper.versions_with(kind)

    async def settle(self) -> None:
        """Wait until definitions of custom resources that were written are served."""
        await self._plane.definitions_settled()

    async def send(
        self,
        method: str,
        path: str,
        plain: Any,
        *,
        user: UserInfo = ADMIN,
        media: str = "application/json",
        **query: str,
    ) -> Answer:
        """Send a request and return its answer."""
        token = self._plane.token_of(authenticated(user))
        headers = (
            ("authorization", f"Bearer {token}"),
            ("content-type", media),
            ("accept", "application/json"),
            ("user-agent", _MANAGER),
        )
        body = b"" if plain is None else encode_in_order(plain)
        target = f"{path}?{urlencode({'fieldManager': _MANAGER, **query})}" if method != "GET" else path
        response = await self._client.request(method, target, headers, body)
        content = await response.read()
        warnings = tuple(_ESCAPED.sub(r"\1", each) for each in _WARNING.findall(response.headers.get("warning", "")))
        if response.status >= 300:
            return Answer(error=error_from_response(response.status, "", content), warnings=warnings)
        return Answer(decode_plain(content), warnings=warnings)


def path_of(served: ServedResource, namespace: str, name: str = "", subresource: str = "") -> str:
    """Return the path of a resource's collection, or of an object."""
    root = f"/apis/{served.group}/{served.version}" if served.group else f"/api/{served.version}"
    steps: Mapping[str, str] = {"namespaces": namespace} if served.resource.namespaced else {}
    place = "".join(f"/{key}/{quote(value, safe='')}" for key, value in steps.items())
    rest = "".join(f"/{quote(each, safe='')}" for each in (name, subresource) if each)
    return f"{root}{place}/{served.resource.plural}{rest}"


@asynccontextmanager
async def judging_server() -> AsyncIterator[JudgingServer]:
    """Start a server, and stop it at the end. Raises OSError."""
    with TemporaryDirectory(prefix="steersman-check-") as folder:
        plane = ControlPlane(
            Options(
                data_dir=Path(folder),
                storage="memory",
                listen=False,
                allow_privileged=True,
                authorization_mode=("RBAC",),
                disable_admission_plugins=("ServiceAccount",),  # nobody creates the accounts of namespaces here
            )
        )
        await plane.start()
        try:
            yield JudgingServer(plane)
        finally:
            await plane.stop()
