"""Plans for operators: drawn lists of writes, deletions, faults and restarts, which are carried out one after the other.

A plan is plain data, so that hypothesis shrinks it like any other value, and the same plan can be run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

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
) -> SearchStrategy[Plan]:
    """Return a strategy for plans of at most `steps` steps, which begin with an object.

    Of the metadata of `objects` only the namespace is taken: names are `a`, `b` and `c`, so that steps meet.
    With `restarts` and `advances` they have these steps, too.
    """
    name = st.sampled_from(_NAMES[:MOST_OBJECTS])
    kinds: list[SearchStrategy[Step]] = [
        _applied(objects, name),
        st.builds(ApplyAgain, name),
        st.builds(Delete, name),
    ]
    if faults:
        kinds.append(st.builds(Fault, st.sampled_from(list(faults))))
    if restarts:
        kinds.append(st.just(Restart()))
    if advances:
        kinds.append(st.builds(Advance, st.sampled_from((1, 60, 3600, 86400))))
    # changes find the most, so that they are drawn as often as all others
    later = st.one_of(kinds[0], st.one_of(kinds))
    first = _applied(objects, st.just(_NAMES[0]))
    return st.builds(lambda begin, rest: [begin, *rest], first, st.lists(later, max_size=steps - 1))


def _applied(objects: SearchStrategy[Body], name: SearchStrategy[str]) -> SearchStrategy[Step]:
    @st.composite
    def draw_step(draw: DrawFn) -> Step:
        named = draw(name)
        drawn = draw(objects)
        metadata = {"name": named}
        if "namespace" in drawn["metadata"]:
            metadata["namespace"] = drawn["metadata"]["namespace"]
        obj = {name: deepcopy(value) for name, value in drawn.items() if name != "status"}
        return Apply(obj | {"metadata": metadata})

    return draw_step()
