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
"""Limit of names of excluded checks that are read from a request."""

Check = Callable[[], str | Awaitable[str | None] | None]
"""Function that returns None if the check passes, else an error text, possibly as an awaitable. The text is logged and
not sent to clients.
"""


class HealthCheck(Struct, frozen=True):
    """A named check."""

    name: str
    check: Check

    async def wrong(self) -> str | None:
        """Return the error text of the check, None if it passes."""
        found = self.check()
        return found if found is None or isinstance(found, str) else await found


class HealthChecks:
    """The checks of one of the three paths, in kube-apiserver's order."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._checks: dict[str, HealthCheck] = {}
        self._is_in_order = True

    def add(self, *checks: HealthCheck) -> None:
        """Add checks. Raises ValueError for a name that is taken."""
        for check in checks:
            if check.name in self._checks:
                raise ValueError(f"health check {check.name} exists already")
            self._checks[check.name] = check
        self._is_in_order = False

    def _in_order(self) -> dict[str, HealthCheck]:
        if not self._is_in_order:
            self._checks = {name: self._checks[name] for name in in_order(self._checks)}
            self._is_in_order = True
        return self._checks

    @property
    def paths(self) -> list[str]:
        """All paths that are answered."""
        return [self.path, *(f"{self.path}/{name}" for name in self._in_order())]

    async def results(self) -> AsyncIterator[tuple[str, str | None]]:
        """Yield each check's name and error text, None if it passes."""
        for name, check in list(self._in_order().items()):
            yield name, await check.wrong()

    async def answer(self, request: Request) -> Response:
        """Run all checks, or the check that the path names, and return the answer."""
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
