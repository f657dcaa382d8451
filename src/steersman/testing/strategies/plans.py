"""Plans for operators: drawn lists of writes, deletions, faults and restarts, which are carried out one after the other.

A plan is plain data, so that hypothesis shrinks it like any other value, and the same plan can be run again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from .changes import Changes

Body = dict[str, Any]

MOST_OBJECTS: Final = 3
"""Objects of the kind that exist at the same time."""
_NAMES: Final = ("a", "b", "c")


@dataclass(frozen=True)
class Apply:
    """Apply an object: create it, or change it."""

    object: Body

    @property
    def name(self) -> str:
        """Name of the object."""
        return str(self.object["metadata"]["name"])


@dataclass(frozen=True)
class ApplyAgain:
    """Apply an object as it was applied last; does nothing if there is no such object."""

    name: str


@dataclass(frozen=True)
class Delete:
    """Delete an object; does nothing if there is none."""

    name: str


@dataclass(frozen=True)
class Fault:
    """Let the next request of the operator that fits fail; arguments are those of `faults.add`."""

    arguments: Body = field(default_factory=dict)


@dataclass(frozen=True)
class Restart:
    """End the operator and start it again."""


@dataclass(frozen=True)
class Advance:
    """Move the time of the server."""

    seconds: int


Step = Apply | ApplyAgain | Delete | Fault | Restart | Advance
Plan = list[Step]

_Drawn = tuple[type[Apply | ApplyAgain | Delete], Body | None, int] | Fault | Restart | Advance
"""A step whose object has no name yet: the number chooses it."""
_PLACES: Final = st.integers(0, 2 * MOST_OBJECTS - 1)
"""Numbers that choose an object: the first half one that is there, the others any."""

FAULTS: Final[tuple[Body, ...]] = (
    {"verb": ["create", "update", "patch"], "code": 409},
    {"verb": ["create", "update", "patch", "delete"], "code": 500},
    {"verb": ["create", "update", "patch"], "lose_answer": True},
    {"verb": ["get", "list"], "code": 503},
    {"verb": ["create", "update", "patch"], "delay": 0.2},
)
"""Faults that operators have to live with, once each."""


def plans(
    objects: SearchStrategy[Body],
    *,
    steps: int = 6,
    faults: Sequence[Body] = FAULTS,
    restarts: bool = False,
    advances: bool = False,
    definitions: Sequence[Body] = (),
) -> SearchStrategy[Plan]:
    """Return a strategy for plans of at most `steps` steps, which begin with an object, or with a fault and an object.

    Of the metadata of `objects` only the namespace is taken: names are `a`, `b` and `c`, so that steps meet.
    With `restarts` and `advances` they have these steps, too. Changes obey the transition rules of `definitions`.
    """
    drawn = objects.map(_without_name)
    kinds: dict[str, SearchStrategy[_Drawn]] = {
        "apply": st.tuples(st.just(Apply), drawn, _PLACES),
        "again": st.tuples(st.just(ApplyAgain), st.none(), _PLACES),
        "delete": st.tuples(st.just(Delete), st.none(), _PLACES),
    }
    fault = st.builds(Fault, st.sampled_from(list(faults))) if faults else st.nothing()
    if faults:
        kinds["fault"] = fault
    if restarts:
        kinds["restart"] = st.just(Restart())
    if advances:
        kinds["advance"] = st.builds(Advance, st.sampled_from((1, 60, 3600, 86400)))
    # changes find the most, so that they are drawn as often as all others
    chosen = [*kinds, *["apply"] * (len(kinds) - 2)]
    # a list of one length, in which a third is left out, as hypothesis draws short lists most often
    left_out: list[str] = [""] * (len(chosen) // 2)
    later = st.sampled_from([*left_out, *chosen]).flatmap(lambda kind: kinds[kind] if kind else st.none())
    opening = st.lists(fault, max_size=1 if faults else 0)
    steps_after = st.lists(later, min_size=steps - 1, max_size=steps - 1)
    changes = Changes(definitions)

    @st.composite
    def plan(draw: DrawFn) -> Plan:
        named = _named(draw(drawn), draw(steps_after), lambda new, old: changes.obeying(draw, new, old))
        return [*draw(opening), *named][:steps]

    return plan()


def _without_name(obj: Body) -> Body:
    """Return an object as a client applies it, without a name."""
    body = {name: deepcopy(value) for name, value in obj.items() if name != "status"}
    return body | {"metadata": {name: value for name, value in obj["metadata"].items() if name == "namespace"}}


def _named(first: Body, later: list[_Drawn | None], change: Callable[[Body, Body], Body]) -> Plan:
    """Return a plan: drawn steps with names, without those for which there is no object.

    `change` returns an object that may replace another one.
    """
    begin = _apply(first, _NAMES[0])
    plan: Plan = [begin]
    there = {begin.name: begin.object}
    for step in later:
        if step is None:
            continue
        if not isinstance(step, tuple):
            plan.append(step)
            continue
        kind, body, place = step
        if body is not None:
            name = sorted(there)[place % len(there)] if there and place < MOST_OBJECTS else _NAMES[place % MOST_OBJECTS]
            applied = _apply(body, name)
            if name in there:
                applied = Apply(change(applied.object, there[name]))
            plan.append(applied)
            there[name] = applied.object
        elif there:
            name = sorted(there)[place % len(there)]
            plan.append(Delete(name) if kind is Delete else ApplyAgain(name))
            if kind is Delete:
                del there[name]
    return plan


def _apply(body: Body, name: str) -> Apply:
    return Apply(body | {"metadata": {"name": name, **body["metadata"]}})
