"""Who is told of which committed write: subscriptions by prefix, at a cost that does not grow with their number."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from steersman.storage.interface import Deliver, Event, Lost
from steersman.storage.keys import parent
from steersman.work.bounded_cache import BoundedCache

logger = logging.getLogger(__name__)

_ROUTES_KEPT: Final = 4096


class Registration:
    """One subscription. While it is held back (`hold`), events collect in a buffer instead of being delivered."""

    __slots__ = ("_deliver", "_dispatcher", "_lost", "active", "held", "prefix")

    def __init__(self, dispatcher: Dispatcher, prefix: str, deliver: Deliver, lost: Lost | None = None) -> None:
        self.prefix = prefix
        self._lost = lost
        self.active = True
        self._deliver = deliver
        self._dispatcher = dispatcher
        self.held: list[Event] | None = None
        """Events that came while older ones were being replayed; None where none are held back."""

    def hold(self) -> None:
        """Collects events from here on, while older ones are being replayed."""
        self.held = []

    def release(self) -> None:
        """Delivers what was collected, and each event as it comes from here on."""
        held, self.held = self.held, None
        if held:
            self.deliver_now(held)

    def deliver_now(self, events: Sequence[Event]) -> None:
        """Delivers, held back or not. A subscriber that fails is logged and ended, so that it harms nobody else."""
        if not self.active:
            return
        try:
            self._deliver(events)
        except Exception:
            logger.exception("a subscriber to %s failed and is ended", self.prefix)
            self.cancel()

    def lose(self, error: Exception) -> None:
        """Ends it, as events are missing."""
        if self.active:
            self.cancel()
            if self._lost is not None:
                self._lost(error)

    def cancel(self) -> None:
        """Ends it; nothing is delivered any more."""
        if self.active:
            self.active = False
            self.held = None
            self._dispatcher.remove(self)


class Dispatcher:
    """Routes events to registrations by the prefix each is registered for.

    A key's route (the registrations that may want it) depends on its parent alone but for prefixes that reach into
    the last segment; it is computed once per parent and remembered, within a bound, until registrations change.
    """

    def __init__(self) -> None:
        self._registrations: dict[Registration, None] = {}
        self._routes: BoundedCache[str, tuple[tuple[Registration, ...], tuple[Registration, ...]]] = BoundedCache(
            _ROUTES_KEPT
        )

    def add(self, prefix: str, deliver: Deliver, lost: Lost | None = None) -> Registration:
        """Registers `deliver` for every key that starts with `prefix`; `lost` is told if events are missing."""
        registration = Registration(self, prefix, deliver, lost)
        self._registrations[registration] = None
        self._routes.forget()
        return registration

    def remove(self, registration: Registration) -> None:
        """Forgets a registration."""
        self._registrations.pop(registration, None)
        self._routes.forget()

    def clear(self) -> None:
        """Ends every registration."""
        for registration in tuple(self._registrations):
            registration.cancel()

    def lose(self, error: Exception) -> None:
        """Ends every registration, as events are missing."""
        for registration in tuple(self._registrations):
            registration.lose(error)

    def dispatch(self, events: Sequence[Event]) -> None:
        """Delivers events (in revision order) to all who are registered for their keys, one call for each of them."""
        batches: dict[Registration, list[Event]] = {}
        routes = self._routes
        for event in events:
            key = event.key
            directory = parent(key)
            route = routes[directory]
            if route is None:
                route = self._route(directory)
            whole, partial = route
            for registration in whole:
                if registration in batches:
                    batches[registration].append(event)
                else:
                    batches[registration] = [event]
            for registration in partial:
                if key.startswith(registration.prefix):
                    batches.setdefault(registration, []).append(event)
        for registration, batch in batches.items():
            if registration.held is None:
                registration.deliver_now(batch)
            else:
                registration.held.extend(batch)

    def _route(self, directory: str) -> tuple[tuple[Registration, ...], tuple[Registration, ...]]:
        """Registrations for every key with this parent, and those for only some of them."""
        whole = tuple(each for each in self._registrations if directory.startswith(each.prefix))
        partial = tuple(
            each
            for each in self._registrations
            if len(each.prefix) > len(directory) and each.prefix.startswith(directory)
        )
        route = (whole, partial)
        self._routes.keep(directory, route)
        return route
