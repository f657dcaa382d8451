"""The order of groups and versions in discovery, from the stored APIServices or else the built-in priorities."""

from __future__ import annotations

from steersman.api.apiregistration.v1 import APIService
from steersman.catalogue.catalogue import Catalogue, Priority
from steersman.controlplane.group_versions import GROUP_VERSIONS
from steersman.rest.objects import Reading
from steersman.storage.cache.entry import Entry
from steersman.store.follower import Follower
from steersman.store.store import Store


def _order_of(service: APIService) -> tuple[tuple[str, str], Priority]:
    spec = service.spec
    return (spec.group, spec.version), Priority(spec.group_priority_minimum, spec.version_priority)


class GroupOrder:
    """Maintains the order of a catalogue by the stored APIServices."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._built_in = {
            (each.group, each.version): Priority(each.group_priority, each.version_priority) for each in GROUP_VERSIONS
        }
        self._of_services: dict[str, tuple[tuple[str, str], Priority]] = {}
        for key, priority in self._built_in.items():
            catalogue.set_priority(*key, priority)

    def follow(self, services: Store[APIService]) -> None:
        """Follow the priorities in these APIServices."""
        read = services.kind.partial_decoder(_READING.paths)

        def changed(_: str, name: str, entry: Entry | None) -> None:
            before = self._of_services.pop(name, None)
            found = None if entry is None else _READING.make(read(entry.body))
            if found is not None:
                self._of_services[name] = found
            if found == before:
                return
            if before is not None and (found is None or found[0] != before[0]):
                self._catalogue.set_priority(*before[0], self._built_in.get(before[0]))
            if found is not None:
                self._catalogue.set_priority(*found[0], found[1])

        Follower(services, changed).begin()


_READING = Reading(_order_of, "spec.group", "spec.version", "spec.groupPriorityMinimum", "spec.versionPriority")
