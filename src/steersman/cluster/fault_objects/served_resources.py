"""Check of the resources that Faults name: a fault of a resource that is not served hits nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from steersman.client.client import Client
from steersman.client.discovery import preferred_resources
from steersman.machinery.suggestions import did_you_mean
from steersman.work.yielding import time_sliced

_SHOWN: Final = 3
"""Names of resources that a message has at most."""
_MOST_SUGGESTIONS: Final = 16
"""Suggestions that one check makes, as each compares a name with all served ones."""
_QUOTE: Final = "'"


def named_resources(patterns: Sequence[str]) -> frozenset[str]:
    """Return the resources that patterns name without `*`, such as `pods` and `deployments.apps`."""
    return frozenset(name for each in patterns if "*" not in (name := each.partition("/")[0]))


async def served_names(client: Client) -> frozenset[str]:
    """Return the names of all served resources, with and without their groups. Raises StatusError, Unreachable."""
    names: set[str] = set()
    async for each in time_sliced((await preferred_resources(client)).served):
        resource = each.resource
        names.add(resource.plural)
        names.add(f"{resource.plural}.{resource.group}" if resource.group else resource.plural)
    return frozenset(names)


def messages_about(named: Mapping[str, frozenset[str]], served: frozenset[str]) -> dict[str, str]:
    """Return a message for each fault about the resources that it names and that are not served, "" if all are.

    `named` are the resources of each fault. Similar names are suggested for the first few.
    """
    suggestions = _MOST_SUGGESTIONS
    messages = {}
    for fault, names in named.items():
        missing = sorted(names - served)
        shown = []
        for each in missing[:_SHOWN]:
            suggestions -= 1
            shown.append(f"{each!r} is not served{did_you_mean(each, served, _QUOTE) if suggestions >= 0 else ''}")
        more = f"; {len(missing) - _SHOWN} more are not" if len(missing) > _SHOWN else ""
        messages[fault] = f"match.resources: {'; '.join(shown)}{more}" if missing else ""
    return messages
