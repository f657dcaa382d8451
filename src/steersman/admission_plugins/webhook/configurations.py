"""The configured webhooks, ordered by the names of their configurations, as they are stored now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from steersman.admission.interface import Attributes
from steersman.admission_plugins.matching.rules import Entry, MatchedResource, RuleIndex
from steersman.admission_plugins.webhook.hooks import HOOKS, Hook
from steersman.catalogue.rest_mapper import RESTMapper
from steersman.rest.objects import Objects
from steersman.webhooks.client_config import ClientConfig


class Configurations:
    """Follows the webhook configurations of one kind. `on_refresh` is called with the endpoints of all webhooks after each
    change.
    """

    def __init__(
        self, objects: Objects, mapper: RESTMapper, on_refresh: Callable[[frozenset[ClientConfig]], None]
    ) -> None:
        self._objects: Final = objects
        self._change_count: Final = objects.change_count
        self._mapper: Final = mapper
        self._on_refresh: Final = on_refresh
        self._read_at_change = -1
        self._is_empty = True
        self._index: RuleIndex[Hook] = RuleIndex((), mapper)
        self._indexes: dict[str, int] = {}

    @property
    def is_stale(self) -> bool:
        """Return True if a configuration has changed since the last `refresh`."""
        return self._read_at_change != self._change_count()

    @property
    def is_known_to_be_empty(self) -> bool:
        """Return True if it is certain that no webhook is configured now."""
        return self._is_empty and self._read_at_change == self._change_count()

    async def refresh(self) -> None:
        """Read the stored configurations."""
        while self.is_stale:
            changed = self._change_count()
            every: list[Entry[Hook]] = []
            for hooks in await self._objects.read_all("", HOOKS):
                every += hooks
            if changed != self._change_count():
                continue  # a configuration changed while all were read
            self._read_at_change = changed
            self._is_empty = not every
            self._index = RuleIndex(every, self._mapper)
            self._indexes = {each.value.uid: number for number, each in enumerate(every)}
            self._on_refresh(frozenset(each.value.client for each in every if each.value.client is not None))

    def index_of(self, hook: Hook) -> int:
        """Return the index of a webhook among all webhooks, -1 if it is no longer configured."""
        return self._indexes.get(hook.uid, -1)

    def matching(self, attributes: Attributes) -> Sequence[tuple[Hook, MatchedResource]]:
        """Return the webhooks whose rules match a request, each with the matched resource. Raises StatusError."""
        return self._index.matching(attributes)
