"""The report on the requests of clients, and budgets for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from steersman.authentication.user import COMPONENTS
from steersman.machinery.identity.action import PATH_VERBS, RESOURCE_VERBS
from steersman.machinery.suggestions import known_names_hint
from steersman.report.observations import Observation, observations
from steersman.report.roles import least_role, unused_rights
from steersman.report.tally import WRITES, ClientCounts, Tally

_VERBS: Final = RESOURCE_VERBS | PATH_VERBS | {"write"}
_OWN: Final = (*COMPONENTS, "system:node:")
"""Prefixes of the user names of the cluster's own components and nodes."""


class OverBudget(AssertionError):
    """A client has sent more requests than its budget allows; the text says which."""


class Report:
    """Requests of clients, those of the cluster's own components left out."""

    def __init__(self, tally: Tally, user_agent: str = "") -> None:
        """With `user_agent` the report is about clients with this text in their user agent."""
        self._tally = tally
        self._user_agent = user_agent

    @property
    def dropped(self) -> int:
        """Requests that the server has not told, as there were too many at once."""
        return self._tally.dropped

    @property
    def clients(self) -> list[ClientCounts]:
        """Counts of each client, the busiest first."""
        found = [each for each in self._tally.clients.values() if self._concerns(each)]
        return sorted(found, key=lambda each: (-each.total, each.user_agent, each.user))

    def _concerns(self, client: ClientCounts) -> bool:
        return self._user_agent in client.user_agent and not client.user.startswith(_OWN)

    @property
    def observations(self) -> list[Observation]:
        """Observations about these clients."""
        names = {each.user_agent for each in self.clients}
        return [each for each in observations(self._tally) if names & set(each.client.split(", "))]

    def role(self, name: str = "least") -> dict[str, Any]:
        """Return the ClusterRole with just the rights that these clients have used."""
        return least_role(name, {target for each in self.clients for target in each.allowed})

    def unused(self, rules: Iterable[Any]) -> list[str]:
        """Return what the rules of a role grant that these clients have not used, as `VERB RESOURCE`."""
        return unused_rights(rules, {target for each in self.clients for target in each.allowed})

    def changes(self, client: ClientCounts) -> int:
        """Return the number of changes by others to resources that a client watches."""
        return self._tally.changes_seen(client)

    def count(self, verb: str = "", resource: str = "") -> int:
        """Return the number of requests with a verb (`write` for all that write) and a resource, such as
        `deployments.apps`, `pods` or `pods/status`. Raises ValueError for an unknown verb.
        """
        if verb and verb not in _VERBS:
            raise ValueError(f"no verb {verb!r}{known_names_hint(verb, _VERBS)}")
        return sum(number for (group, name, of), number in self._requests() if _fits(verb, resource, group, name, of))

    def _requests(self) -> Iterator[tuple[tuple[str, str, str], int]]:
        for each in self.clients:
            yield from each.requests.items()

    def at_most(
        self,
        *,
        requests: int | None = None,
        writes: int | None = None,
        writes_per_object: int | None = None,
        writes_per_change: float | None = None,
        unchanged_writes: int | None = None,
        unlimited_lists: int | None = None,
        conflicts: int | None = None,
        errors: int | None = None,
        warnings: int | None = None,
    ) -> None:
        """Raise OverBudget (an AssertionError) if the clients have sent more than one of these numbers of requests.

        `writes_per_change` is about each client that watches: its writes, divided by the changes that others have made
        to resources that it watches.
        """
        per_object: Counter[object] = Counter()
        for each in self.clients:
            per_object.update(each.most_writes)
        codes: Counter[int] = Counter()
        for each in self.clients:
            codes.update(each.codes)
        found = {
            "requests": (sum(codes.values()), requests),
            "writes": (self.count("write"), writes),
            "writes of one object": (max(per_object.values(), default=0), writes_per_object),
            "writes for each change that it watches": (self._most_per_change(), writes_per_change),
            "writes that changed nothing": (
                sum(sum(each.unchanged.values()) for each in self.clients),
                unchanged_writes,
            ),
            "lists without limit or selector": (
                sum(sum(each.unlimited.values()) for each in self.clients),
                unlimited_lists,
            ),
            "conflicts": (codes[409], conflicts),
            "warnings": (sum(each.warnings.total() for each in self.clients), warnings),
            "errors": (sum(number for code, number in codes.items() if code >= 400), errors),
        }
        over = [
            f"{number:g} {what}, at most {most} are allowed"
            for what, (number, most) in found.items()
            if most is not None and number > most
        ]
        if over:
            raise OverBudget(
                "\n".join([*over, *(f"  {each.client or '-'}: {each.message}" for each in self.observations)])
            )

    def _most_per_change(self) -> float:
        """Return the writes for each change that a client watches, of the client with the most."""
        return max(
            (each.write_count / max(self.changes(each), 1) for each in self.clients if each.has_watched), default=0.0
        )


def _fits(verb: str, resource: str, group: str, name: str, of: str) -> bool:
    if verb and verb != of and not (verb == "write" and of in WRITES):
        return False
    return not resource or resource in (name, f"{name}.{group}" if group else name)
