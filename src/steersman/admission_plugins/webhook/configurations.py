"""The configured webhooks, ordered by the names of their configurations, as they are stored now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from steersman.admission.interface import Attributes
from steersman.admission_plugins.matching.rules import Entry, RuleIndex, Seen
from steersman.admission_plugins.webhook.hooks import HOOKS, Hook
from steersman.catalogue.rest_mapper import RESTMapper
from steersman.rest.objects import Objects
from steersman.webhooks.client_config import ClientConfig


class Configurations:
    """Follows the webhook configurations of one kind. `settled` is called with the endpoints of all webhooks after each
    change.
    """

    def __init__(
        self, objects: Objects, mapper: RESTMapper, settled: Callable[[frozenset[ClientConfig]], None]
    ) -> None:
        self._objects: Final = objects
        self._changed_of: Final = objects.change_count
        self._mapper: Final = mapper
        self._settled: Final = settled
        self._changed = -1
        self._is_empty = True
        self._index: RuleIndex[Hook] = RuleIndex((), mapper)
        self._numbers: dict[str, int] = {}

    @property
    def is_behind(self) -> bool:
        """Return True if a configuration has changed since the last `catch_up`."""
        return self._changed != self._changed_of()

    @property
    def are_none(self) -> bool:
        """Return True if it is certain that no webhook is configured now."""
        return self._is_empty and self._changed == self._changed_of()

    async def catch_up(self) -> None:
        """Read the stored configurations."""
        while self.is_behind:
            changed = self._changed_of()
            every: list[Entry[Hook]] = []
            for hooks in await self._objects.read_all("", HOOKS):
                every += hooks
            if changed != self._changed_of():
                continue  # a configuration changed while all were read
            self._changed = changed
            self._is_empty = not every
            self._index = RuleIndex(every, self._mapper)
            self._numbers = {each.value.uid: number for number, each in enumerate(every)}
            self._settled(frozenset(each.value.client for each in every if each.value.client is not None))

    def number(self, hook: Hook) -> int:
        """Return the index of a webhook among all webhooks, -1 if it is no longer configured."""
        return self._numbers.get(hook.uid, -1)

    def about(self, attributes: Attributes) -> Sequence[tuple[Hook, Seen]]:
        """Return the webhooks whose rules match a request, each with the matched resource. Raises StatusError."""
        return self._index.of(attributes)
