"""Conversion between the versions of a custom resource: none (strategy None), or by a webhook.

Follows k8s.io/apiextensions-apiserver `pkg/apiserver/conversion`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Final

from steersman.api.apiextensions.v1 import CustomResourceConversion, WebhookClientConfig
from steersman.apiextensions.conversion_metrics import ConversionMetrics
from steersman.apiextensions.conversion_review import (
    CALL,
    KNOWN_VERSIONS,
    ReviewError,
    accept_converted,
    converted_objects,
    review_of,
)
from steersman.apiextensions.local_conversion import LocalConversion
from steersman.faults.fault import Call
from steersman.faults.faulty_sender import faulty_way
from steersman.kinds.custom import CustomKind
from steersman.kinds.open import OpenKind, OpenObject
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.names import new_uid
from steersman.machinery.large_work.sizes import is_large
from steersman.machinery.limited_log import LimitedLog
from steersman.registry.core.services.locating import locate_service
from steersman.registry.services import Services
from steersman.rest.conversion import Conversion, NotConverted
from steersman.tracing.trace import COMPONENT, StepKind, Value, add_event, branch
from steersman.webhooks.client import TIMEOUT, Through, WebhookClient, WebhookError
from steersman.webhooks.client_config import client_config_of, endpoint_of
from steersman.webhooks.kubeconfig import ANONYMOUS, KubeconfigError
from steersman.webhooks.reviews import is_large_review
from steersman.work.offloading import offload_if
from steersman.work.single_flight import Flight
from steersman.work.yielding import time_sliced

log: Final = LimitedLog(logging.getLogger(__name__))

REVIEW_BYTES: Final = 2 << 20
"""Bytes of the objects in one request with several objects."""
_CALL: Final = StepKind("Call conversion webhook", COMPONENT)
MAX_ANSWER_BYTES: Final = 8 << 20
MAX_CONCURRENT: Final = 32
"""The most concurrent requests to one webhook."""


class Converters:
    """Makes the conversions of definitions."""

    def __init__(self, services: Services, metrics: ConversionMetrics) -> None:
        self._services = services
        self._metrics = metrics

    def make(self, name: str, declared: CustomResourceConversion | None, kinds: Mapping[str, CustomKind]) -> Conversion:
        """Return the conversion of the definition `name`; `kinds` are those of its versions by apiVersion."""
        webhook = None if declared is None or declared.strategy != "Webhook" else declared.webhook
        if webhook is None or webhook.client_config is None:
            return NoneConversion(kinds)
        versions = webhook.conversion_review_versions or []
        return WebhookConversion(name, kinds, versions, webhook.client_config, self._services, self._metrics)


class NoneConversion(LocalConversion):
    """The conversion of strategy None: objects are pruned to the target version, and otherwise unchanged."""

    renames = True

    def convert_object(self, obj: OpenObject, source: CustomKind, target: CustomKind) -> OpenObject:
        return target.converted(obj, source)


class WebhookConversion(Conversion):
    """The conversion by a webhook."""

    def __init__(
        self,
        name: str,
        kinds: Mapping[str, CustomKind],
        versions: Sequence[str],
        config: WebhookClientConfig,
        services: Services,
        metrics: ConversionMetrics,
    ) -> None:
        self.kinds = kinds
        self._custom_kinds = kinds
        self._name = name
        self._review_version = next((each for each in versions if each in KNOWN_VERSIONS), "")
        self._config = client_config_of(config)
        self._services = services
        self._metrics = metrics
        self._client: Flight[WebhookClient] | None = None

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.on_result(WebhookClient.close)

    async def convert_values(self, values: Sequence[bytes], target: OpenKind) -> list[bytes]:
        kind = self._custom_kinds[target.api_version]
        converted: list[bytes] = []
        for some in _requests(values):
            converted += await self._convert_group(some, kind)
        return converted

    async def _convert_group(self, values: Sequence[bytes], target: CustomKind) -> list[bytes]:
        """Convert the values in one request.

        If the answer for several objects is unusable, each is retried in a request of its own: upstream sends one
        object at a time, so a webhook may support only that. Raises NotConverted.
        """
        began = perf_counter()
        source = target.version_of(target.body_of(values[0]))
        version = source.rpartition("/")[2]
        try:
            converted = await self._review(values, target)
        except ReviewError as error:
            took = perf_counter() - began
            self._metrics.failed(self._name, version, target.version, took, error.failure)
            if error.failure != CALL:
                log.warning(self._name, "the conversion webhook of %s returned an unusable answer", self._name)
            if len(values) > 1 and error.failure != CALL:
                return [(await self._convert_group([value], target))[0] for value in values]
            text = str(error)
            raise NotConverted(
                text if error.is_complete else f"conversion webhook for {source}, Kind={target.name}{text}"
            ) from None
        self._metrics.succeeded(self._name, version, target.version, perf_counter() - began)
        return converted

    async def _review(self, values: Sequence[bytes], target: CustomKind) -> list[bytes]:
        version = self._review_version
        if not version:
            raise ReviewError("no supported conversion review versions", CALL, is_complete=True)
        uid = new_uid()
        about: dict[str, Value] = {
            "custom-resource-definition": self._name,
            "desired-api-version": target.api_version,
            "object-count": len(values),
            "UID": uid,
        }
        with branch(_CALL, about):
            answer = await self._call(review_of(version, uid, target.api_version, values))
            add_event("Request completed")
        objects = await offload_if(is_large_review(answer), converted_objects, answer, version, uid, len(values))
        found = []
        async for value, raw in time_sliced(zip(values, objects, strict=True)):
            found.append(await offload_if(is_large(raw), self._accept, value, raw, target))
        return found

    def _accept(self, value: bytes, raw: bytes, target: CustomKind) -> bytes:
        return target.value_as_is(accept_converted(raw, target.decode(target.body_of(value)), target))

    async def _call(self, review: bytes) -> bytes:
        """Return the answer to a review. Raises ReviewError."""
        try:
            async with asyncio.timeout(2 * TIMEOUT):  # the webhook may request a retry itself
                client = await self._get_client()
                return await client.post(review, through=self._through())
        except (WebhookError, KubeconfigError) as error:
            log.warning(self._name, "the conversion webhook of %s cannot be called: %s", self._name, error)
            raise ReviewError(f" failed: {error}", CALL) from None
        except StatusError as error:
            log.warning(self._name, "the conversion webhook of %s answered with status %d", self._name, error.code)
            raise ReviewError(f" failed: {error.message}", CALL) from None
        except TimeoutError:
            log.warning(self._name, "the conversion webhook of %s takes too long", self._name)
            raise ReviewError(" failed: context deadline exceeded", CALL) from None

    def _through(self) -> Through | None:
        """Return the sender of a call that a fault hits, None for the usual one."""
        faults = self._services.faults
        return None if faults is None else faulty_way(faults, Call("conversions", (self._name,)))

    async def _get_client(self) -> WebhookClient:
        """Return the client, which is made on first use in a worker thread, as loading certificates is slow."""
        if self._client is None or self._client.has_failed:
            self._client = Flight(self._make_client)
        return await self._client

    async def _make_client(self) -> WebhookClient:
        services = self._services
        locate = partial(locate_service, services)
        endpoint = await offload_if(
            True, endpoint_of, self._config, locate, lambda host: ANONYMOUS, services.itself, services.egress
        )
        return WebhookClient(
            endpoint,
            None,
            max_answer_bytes=MAX_ANSWER_BYTES,
            at_once=MAX_CONCURRENT,
            user_agent="kube-apiserver-admission",
            passes_trace=True,
        )


def _requests(values: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Split values into groups, one for each request."""
    start = size = 0
    for at, value in enumerate(values):
        size += len(value)
        if at > start and size > REVIEW_BYTES:
            yield values[start:at]
            start, size = at, len(value)
    if start < len(values):
        yield values[start:]
