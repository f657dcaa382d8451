"""Groups of nodes that do not take a pod for the same reasons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from steersman.explain.pods.amounts import amount_text
from steersman.explain.pods.reasons import Reason

_MOST_NAMES: Final = 50
"""Nodes that a group names."""


class GroupReason(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Reason that all nodes of a group have, with the amounts of all of them."""

    plugin: str
    text: str
    """Words for people, without amounts."""
    message: str
    """Text of the scheduler's message."""
    resource: str = ""
    requested: str = ""
    short_by: str = ""
    """Least amount that one of the nodes lacks."""
    short_by_most: str = ""
    """Largest amount that one of the nodes lacks, if they differ."""
    free_most: str = ""
    """Largest amount that is free on one of the nodes."""
    notes: tuple[str, ...] = ()
    """Facts of single nodes."""
    pods: tuple[str, ...] = ()
    """Some of the pods that are in the way, as NAMESPACE/NAME."""

    def __str__(self) -> str:
        """Return the reason with its amounts, pods and notes, for people."""
        text = self.text
        if self.short_by:
            more = f" to {self.short_by_most}" if self.short_by_most else ""
            text += f" (short by {self.short_by}{more}: {self.requested} requested, at most {self.free_most} free)"
        some = [*self.notes[:1], *([f"pod {self.pods[0]}"] if self.pods else [])]
        return f"{text} ({', '.join(some)})" if some else text


class Group(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Nodes that do not take a pod for the same reasons."""

    count: int
    nodes: tuple[str, ...]
    """Names of the nodes, at most 50."""
    reasons: tuple[GroupReason, ...]

    def __str__(self) -> str:
        """Return the group in one line: its size, and its reasons."""
        subject = "1 node" if self.count == 1 else f"{self.count} nodes"
        return f"{subject}: {' and '.join(map(str, self.reasons))}"


def grouped(nodes: Iterable[tuple[str, Sequence[Reason]]]) -> Sequence[Group]:
    """Return the groups of rejected nodes, given as name and reasons: the fewest reasons first, then the largest."""
    members: dict[tuple[tuple[str, str], ...], list[tuple[str, Sequence[Reason]]]] = {}
    for name, reasons in nodes:
        members.setdefault(tuple((each.plugin, each.text) for each in reasons), []).append((name, reasons))
    groups = [_group(each) for each in members.values()]
    return sorted(groups, key=lambda each: (len(each.reasons), -each.count, each.nodes))


def _group(members: Sequence[tuple[str, Sequence[Reason]]]) -> Group:
    names = sorted(name for name, _ in members)
    columns = zip(*(reasons for _, reasons in members), strict=True)
    return Group(len(members), tuple(names[:_MOST_NAMES]), tuple(_merged(each) for each in columns))


def _merged(reasons: Sequence[Reason]) -> GroupReason:
    first = reasons[0]
    pods = tuple(dict.fromkeys(pod for each in reasons for pod in each.pods))[:_MOST_NAMES]
    notes = tuple(dict.fromkeys(each.note for each in reasons if each.note))[:_MOST_NAMES]
    name = first.resource
    if not name or name == "pods":
        return GroupReason(first.plugin, first.text, first.upstream, name, notes=notes, pods=pods)
    short = [each.requested - each.free for each in reasons]
    free = max(each.free for each in reasons)
    most = amount_text(name, max(short)) if max(short) != min(short) else ""
    return GroupReason(
        first.plugin,
        first.text,
        first.upstream,
        name,
        amount_text(name, first.requested),
        amount_text(name, min(short)),
        most,
        amount_text(name, free),
    )
