"""ValidatingAdmissionWebhook: other servers check a write, all at the same time."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Final

from steersman.admission.interface import Attributes
from steersman.admission_plugins.declaration import ConfiguredDeclaration
from steersman.admission_plugins.matching.rules import MatchedResource
from steersman.admission_plugins.webhook.calling import CallFailed, Denied
from steersman.admission_plugins.webhook.dispatch import VersionedObjects, WebhookPlugin
from steersman.admission_plugins.webhook.hooks import Hook
from steersman.machinery.errors.status import StatusError

_FAILED_OPEN: Final = "failed-open.validating.webhook.admission.k8s.io/"
MAX_CONCURRENT: Final = 64
"""Most webhooks that are called for one request at the same time, because each needs a connection."""


class ValidatingAdmissionWebhook(WebhookPlugin):
    """Calls all matching webhooks. The first refusal to arrive is reported."""

    name = "ValidatingAdmissionWebhook"
    validates = True
    plural = "validatingwebhookconfigurations"

    async def validate(self, attributes: Attributes) -> None:
        """Raise StatusError if a webhook refuses the request."""
        hooks = await self._matching_hooks(attributes)
        if not hooks:
            return
        objects: dict[MatchedResource, VersionedObjects] = {}
        to_call: list[tuple[Hook, MatchedResource]] = []
        for hook, matched in hooks:
            if not self._is_selected(hook, attributes):
                continue
            if matched not in objects:
                objects[matched] = await self._versioned_objects(attributes, matched)
            conditions = hook.conditions
            if conditions is None or await self._conditions_hold(
                conditions, hook, attributes, matched, objects[matched]
            ):
                to_call.append((hook, matched))
        if len(to_call) == 1:
            hook, matched = to_call[0]
            await self._call(hook, attributes, matched, objects[matched], 0)
        elif to_call:
            await self._call_all(to_call, attributes, objects)

    async def _call_all(
        self,
        to_call: list[tuple[Hook, MatchedResource]],
        attributes: Attributes,
        objects: dict[MatchedResource, VersionedObjects],
    ) -> None:
        refusals: list[StatusError] = []
        permits = asyncio.Semaphore(MAX_CONCURRENT)

        async def call(hook: Hook, matched: MatchedResource, number: int) -> None:
            try:
                async with permits:
                    await self._call(hook, attributes, matched, objects[matched], number)
            except StatusError as error:
                refusals.append(error)

        async with asyncio.TaskGroup() as group:
            for number, (hook, matched) in enumerate(to_call):
                group.create_task(call(hook, matched, number))
        if refusals:
            raise refusals[0]

    async def _call(
        self, hook: Hook, attributes: Attributes, matched: MatchedResource, objects: VersionedObjects, number: int
    ) -> None:
        """Call one webhook; `number` is its index among the called webhooks. Raises StatusError."""
        began = perf_counter()
        failed: CallFailed | Denied | StatusError | None = None
        with self._caller.span(hook, attributes, matched):
            try:
                await self._caller.call(hook, attributes, matched, objects.obj_json, objects.old_json)
            except (CallFailed, Denied, StatusError) as error:
                failed = error
            if self._caller.record_outcome(hook, attributes, failed, began):
                attributes.annotate(f"{_FAILED_OPEN}round_0_index_{number}", hook.name)


VALIDATING_ADMISSION_WEBHOOK: Final = ConfiguredDeclaration(
    ValidatingAdmissionWebhook, on_by_default=True, make=ValidatingAdmissionWebhook
)
