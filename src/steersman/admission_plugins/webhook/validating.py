"""ValidatingAdmissionWebhook: other servers check a write, all at the same time."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Final

from steersman.admission.interface import Attributes
from steersman.admission_plugins.declaration import ConfiguredDeclaration
from steersman.admission_plugins.matching.rules import Seen
from steersman.admission_plugins.webhook.calling import CallFailed, Denied
from steersman.admission_plugins.webhook.dispatch import Shown, WebhookPlugin
from steersman.admission_plugins.webhook.hooks import Hook
from steersman.machinery.errors.status import StatusError

_FAILED_OPEN: Final = "failed-open.validating.webhook.admission.k8s.io/"
_AT_ONCE: Final = 64
"""Most webhooks that are called for one request at the same time, because each needs a connection."""


class ValidatingAdmissionWebhook(WebhookPlugin):
    """Calls all matching webhooks. The first refusal to arrive is reported."""

    name = "ValidatingAdmissionWebhook"
    validates = True
    plural = "validatingwebhookconfigurations"

    async def validate(self, attributes: Attributes) -> None:
        """Raise StatusError if a webhook refuses the request."""
        about = await self._about(attributes)
        if not about:
            return
        shown: dict[Seen, Shown] = {}
        asked: list[tuple[Hook, Seen]] = []
        for hook, seen in about:
            if not self._is_selected(hook, attributes):
                continue
            if seen not in shown:
                shown[seen] = await self._shown(attributes, seen)
            conditions = hook.conditions
            if conditions is None or await self._is_met(conditions, hook, attributes, seen, shown[seen]):
                asked.append((hook, seen))
        if len(asked) == 1:
            hook, seen = asked[0]
            await self._ask(hook, attributes, seen, shown[seen], 0)
        elif asked:
            await self._ask_all(asked, attributes, shown)

    async def _ask_all(self, asked: list[tuple[Hook, Seen]], attributes: Attributes, shown: dict[Seen, Shown]) -> None:
        refusals: list[StatusError] = []
        room = asyncio.Semaphore(_AT_ONCE)

        async def ask(hook: Hook, seen: Seen, number: int) -> None:
            try:
                async with room:
                    await self._ask(hook, attributes, seen, shown[seen], number)
            except StatusError as error:
                refusals.append(error)

        async with asyncio.TaskGroup() as group:
            for number, (hook, seen) in enumerate(asked):
                group.create_task(ask(hook, seen, number))
        if refusals:
            raise refusals[0]

    async def _ask(self, hook: Hook, attributes: Attributes, seen: Seen, shown: Shown, number: int) -> None:
        """Call one webhook; `number` is its index among the called webhooks. Raises StatusError."""
        began = perf_counter()
        failed: CallFailed | Denied | StatusError | None = None
        try:
            await self._caller.call(hook, attributes, seen, shown.obj_json, shown.old_json)
        except (CallFailed, Denied, StatusError) as error:
            failed = error
        if self._caller.judge(hook, attributes, failed, began):
            attributes.annotate(f"{_FAILED_OPEN}round_0_index_{number}", hook.name)


VALIDATING_ADMISSION_WEBHOOK: Final = ConfiguredDeclaration(
    ValidatingAdmissionWebhook, on_by_default=True, make=ValidatingAdmissionWebhook
)
