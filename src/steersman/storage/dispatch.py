"""Dispatch of committed writes to subscriptions by key prefix, at a cost independent of the number of subscriptions."""

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
    """A subscription. While it is on hold, events are buffered instead of delivered."""

    __slots__ = ("_deliver", "_dispatcher", "_lost", "active", "held", "prefix")

    def __init__(self, dispatcher: Dispatcher, prefix: str, deliver: Deliver, lost: Lost | None = None) -> None:
        self.prefix = prefix
        self._lost = lost
        self.active = True
        self._deliver = deliver
        self._dispatcher = dispatcher
        self.held: list[Event] | None = None
        """Events that were committed while older ones were being replayed; None if it is not on hold."""

    def hold(self) -> None:
        """Buffer events from now on, while older ones are being replayed."""
        self.held = []

    def release(self) -> None:
        """Deliver the buffered events, and from now on each event when it is committed."""
        held, self.held = self.held, None
        if held:
            self.deliver_now(held)

    def deliver_now(self, events: Sequence[Event]) -> None:
        """Deliver events, on hold or not. The failure of a subscriber is logged and ends only its own subscription."""
        if not self.active:
            return
        try:
            self._deliver(events)
        except Exception:
            logger.exception("the subscription to %s failed and is cancelled", self.prefix)
            self.cancel()

    def fail(self, error: Exception) -> None:
        """Cancel the subscription because events are missing, and call its `lost` callback."""
        if self.active:
            self.cancel()
            if self._lost is not None:
                self._lost(error)

    def cancel(self) -> None:
        """Cancel the subscription; no more events are delivered."""
        if self.active:
            self.active = False
            self.held = None
            self._dispatcher.remove(self)


class Dispatcher:
    """A router of events to subscriptions by key prefix.

    The subscriptions that may want a key depend only on the key's parent, except for prefixes that reach into the last
    segment. They are computed once for each parent and cached, within a bound, until subscriptions change.
    """

    def __init__(self) -> None:
        self._registrations: dict[Registration, None] = {}
        self._routes: BoundedCache[str, tuple[tuple[Registration, ...], tuple[Registration, ...]]] = BoundedCache(
            _ROUTES_KEPT
        )

    def add(self, prefix: str, deliver: Deliver, lost: Lost | None = None) -> Registration:
        """Subscribe `deliver` to every key that starts with `prefix`; `lost` is called if events are missing."""
        registration = Registration(self, prefix, deliver, lost)
        self._registrations[registration] = None
        self._routes.forget()
        return registration

    def remove(self, registration: Registration) -> None:
        """Remove a subscription."""
        self._registrations.pop(registration, None)
        self._routes.forget()

    def clear(self) -> None:
        """Cancel every subscription."""
        for registration in tuple(self._registrations):
            registration.cancel()

    def fail(self, error: Exception) -> None:
        """Cancel every subscription because events are missing."""
        for registration in tuple(self._registrations):
            registration.fail(error)

    def dispatch(self, events: Sequence[Event]) -> None:
        """Deliver events, in order of their revisions, with one call for each subscription."""
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
        """Return the subscriptions to all keys with this parent, and those to some of them."""
        whole = tuple(each for each in self._registrations if directory.startswith(each.prefix))
        partial = tuple(
            each
            for each in self._registrations
            if len(each.prefix) > len(directory) and each.prefix.startswith(directory)
        )
        route = (whole, partial)
        self._routes.keep(directory, route)
        return route
