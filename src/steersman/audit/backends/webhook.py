"""Audit webhook: posts events to another server as an EventList."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from steersman.audit.backends.backend import Records
from steersman.audit.errors import Errors
from steersman.machinery.errors.status import StatusError
from steersman.webhooks.client import WebhookClient, WebhookError
from steersman.work.offloading import offload_if

_PLUGIN: Final = "webhook"
_HEAD: Final = b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[{'
_BETWEEN: Final = b",{"
_TAIL: Final = b"]}\n"
_LARGE: Final = 1 << 20


class WebhookBackend:
    """Backend that posts events; `client` retries failed requests."""

    deferred = False

    def __init__(self, client: WebhookClient, errors: Errors) -> None:
        self._client: Final = client
        self._errors: Final = errors

    def process(self, records: Records) -> Awaitable[bool]:
        """Post events; the result is True once the other server has accepted them. See Backend."""
        return self._post(records)

    async def _post(self, records: Records) -> bool:
        body = await offload_if(sum(map(len, records)) > _LARGE, _event_list, records)
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
