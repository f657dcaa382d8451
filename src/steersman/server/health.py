"""Health: /healthz, /livez and /readyz with their checks (k8s.io/apiserver `server/healthz`)."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from msgspec import Struct

from steersman.endpoints.request import Request
from steersman.endpoints.responses import NOSNIFF, TEXT_TYPE, not_found_text
from steersman.net.message import Response
from steersman.server.health_order import in_order

logger = logging.getLogger(__name__)

_MOST_EXCLUDED: Final = 1000
"""Names of checks in a request that are read."""

Check = Callable[[], str | Awaitable[str | None] | None]
"""None if all is well, else what is wrong; that goes to the log, not to the client. It may have to ask somebody."""


class HealthCheck(Struct, frozen=True):
    """A named check."""

    name: str
    check: Check

    async def wrong(self) -> str | None:
        """What is wrong, None if nothing is."""
        found = self.check()
        return found if found is None or isinstance(found, str) else await found


class HealthChecks:
    """The checks behind one of the three paths, in the order in which kube-apiserver reports them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._checks: dict[str, HealthCheck] = {}
        self._is_in_order = True

    def add(self, *checks: HealthCheck) -> None:
        """Adds checks. Raises ValueError for a name that is taken."""
        for check in checks:
            if check.name in self._checks:
                raise ValueError(f"health check {check.name} is there already")
            self._checks[check.name] = check
        self._is_in_order = False

    def _in_order(self) -> dict[str, HealthCheck]:
        if not self._is_in_order:
            self._checks = {name: self._checks[name] for name in in_order(self._checks)}
            self._is_in_order = True
        return self._checks

    @property
    def paths(self) -> list[str]:
        """Every path that is answered."""
        return [self.path, *(f"{self.path}/{name}" for name in self._in_order())]

    async def results(self) -> AsyncIterator[tuple[str, str | None]]:
        """Every check's name and what is wrong, None if nothing is."""
        for name, check in list(self._in_order().items()):
            yield name, await check.wrong()

    async def answer(self, request: Request) -> Response:
        """Runs all checks, or the one that the path names."""
        path = request.info.path
        name = path[len(self.path) + 1 :]
        if path == self.path:
            return await self._all(request)
        check = self._checks.get(name)
        if check is None:
            return not_found_text()
        wrong = await check.wrong()
        if wrong is None:
            return Response(200, [TEXT_TYPE], b"ok")
        logger.warning("%s check failed: %s", request.path, wrong)
        return Response(500, [TEXT_TYPE, NOSNIFF], f"internal server error: {wrong}\n".encode())

    async def _all(self, request: Request) -> Response:
        excluded = set(",".join(request.query.get_all("exclude")).split(",", _MOST_EXCLUDED)[:_MOST_EXCLUDED])
        lines = []
        failed = []
        for name, check in list(self._in_order().items()):
            if name in excluded:
                excluded.discard(name)
                lines.append(f"[+]{name} excluded: ok\n")
                continue
            wrong = await check.wrong()
            if wrong is None:
                lines.append(f"[+]{name} ok\n")
            else:
                failed.append(f"{name}: {wrong}")
                lines.append(f"[-]{name} failed: reason withheld\n")
        if excluded - {""}:
            names = ", ".join(f'"{name}"' for name in sorted(excluded) if name)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
        title = self.path.strip("/")
        if failed:
            logger.warning("%s check failed: %s", title, "; ".join(failed))
            return Response(500, [TEXT_TYPE, NOSNIFF], f"{''.join(lines)}{title} check failed\n".encode())
        if "verbose" not in request.query:
            return Response(200, [TEXT_TYPE, NOSNIFF], b"ok")
        return Response(200, [TEXT_TYPE, NOSNIFF], f"{''.join(lines)}{title} check passed\n".encode())


PING = HealthCheck("ping", lambda: None)
