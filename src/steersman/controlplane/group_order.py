"""The order of groups and versions: that of their APIServices, and before there are any that of the built-in ones."""

from __future__ import annotations

from steersman.api.apiregistration.v1 import APIService
from steersman.catalogue.catalogue import Catalogue, Priority
from steersman.controlplane.follower import Follower
from steersman.controlplane.group_versions import GROUP_VERSIONS
from steersman.rest.objects import Reading
from steersman.storage.cache.entry import Entry
from steersman.store.store import Store


def _order_of(service: APIService) -> tuple[tuple[str, str], Priority]:
    spec = service.spec
    return (spec.group, spec.version), Priority(spec.group_priority_minimum, spec.version_priority)


class GroupOrder:
    """Keeps a catalogue in the order of the APIServices that are stored."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._built_in = {
            (each.group, each.version): Priority(each.group_priority, each.version_priority) for each in GROUP_VERSIONS
        }
        self._of_services: dict[str, tuple[tuple[str, str], Priority]] = {}
        catalogue.prioritize(self._built_in)

    def follow(self, services: Store[APIService]) -> None:
        """Takes the order from these from now on."""
        read = services.kind.part(_READING.paths)

        def changed(_: str, name: str, entry: Entry | None) -> None:
            found = None if entry is None else _READING.make(read(entry.body))
            if found == self._of_services.get(name):
                return
            if found is None:
                del self._of_services[name]
            else:
                self._of_services[name] = found
            order = {**self._built_in, **dict(self._of_services.values())}
            self._catalogue.prioritize(order)

        Follower(services, changed).begin()


_READING = Reading(_order_of, "spec.group", "spec.version", "spec.groupPriorityMinimum", "spec.versionPriority")
