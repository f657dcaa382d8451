"""Events posted to another server, as an EventList."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from steersman.audit.backends.backend import Records
from steersman.audit.errors import Errors
from steersman.machinery.errors.status import StatusError
from steersman.machinery.large_work.slow_lane import SlowLane
from steersman.webhooks.client import WebhookClient, WebhookError

_PLUGIN: Final = "webhook"
_HEAD: Final = b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[{'
_BETWEEN: Final = b",{"
_TAIL: Final = b"]}\n"
_LARGE: Final = 1 << 20


class WebhookBackend:
    """Posts events; `client` tries again what fails."""

    deferred = False

    def __init__(self, client: WebhookClient, lane: SlowLane, errors: Errors) -> None:
        self._client: Final = client
        self._lane: Final = lane
        self._errors: Final = errors

    def process(self, records: Records) -> Awaitable[bool]:
        """See Backend: true once the other server has them."""
        return self._post(records)

    async def _post(self, records: Records) -> bool:
        large = sum(map(len, records)) > _LARGE
        body = await self._lane.run(_event_list, records) if large else _event_list(records)
        try:
            await self._client.post(body)
        except (StatusError, WebhookError) as error:
            self._errors.lost(_PLUGIN, error, records)
            return False
        return True

    async def close(self) -> None:
        """See Backend."""
        self._client.close()


def _event_list(records: Records) -> bytes:
    return _HEAD + _BETWEEN.join(records) + _TAIL
