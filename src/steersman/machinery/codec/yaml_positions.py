"""Lines of fields in the text of documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml as pyyaml

from steersman.work.patterns import late_pattern

_PARSER: Any = getattr(pyyaml, "CSafeLoader", pyyaml.SafeLoader)
_STEP: Final = late_pattern(r"[^.\[\]]+|\[[^\[\]]*\]")
_MOST_STEPS: Final = 100


def steps_of(path: str) -> tuple[str, ...]:
    """Return the steps of a field's path as the server writes it: `spec.hard[pods]`, `spec.containers[0].image`."""
    steps = []
    for each in _STEP.findall(path)[:_MOST_STEPS]:
        steps.append(each[1:-1].strip('"') if each.startswith("[") else each)
    return tuple(steps)


@dataclass(slots=True)
class _Wanted:
    """Fields whose lines are wanted, as a tree by steps."""

    numbers: list[int] = field(default_factory=list)
    children: dict[str, _Wanted] = field(default_factory=dict)


def lines_of(data: bytes, fields: Sequence[tuple[int, tuple[str, ...]]]) -> dict[int, int]:
    """Return the lines (from 1) of fields by their index in `fields`: the number of a document, and steps in it.

    A field that the text does not have gets the line of its nearest parent. Time is linear in the text and the steps.
    """
    root = _Wanted()
    for number, (document, steps) in enumerate(fields):
        node = root
        for each in (str(document), *steps):
            node = node.children.setdefault(each, _Wanted())
        node.numbers.append(number)
    found: dict[int, int] = {}
    try:
        for node, line in _visited(_PARSER(data.decode(errors="replace")), root):
            found.update((each, line) for each in _numbers_below(node))
    except pyyaml.YAMLError:
        pass  # what comes before the error has its lines
    return found


def _numbers_below(node: _Wanted) -> Iterator[int]:
    """Return the numbers of a node and of all below it, which get their own lines later if they have any."""
    nodes = [node]
    while nodes:
        each = nodes.pop()
        yield from each.numbers
        nodes += each.children.values()


@dataclass(slots=True)
class _Open:
    """A mapping or sequence whose end has not come yet, and the fields that are wanted of it."""

    wanted: _Wanted | None
    is_mapping: bool
    index: int = 0
    """Number of the next item of a sequence."""
    key: str | None = None
    """Key whose value comes next; None if a key comes next."""

    def child(self, step: str) -> _Wanted | None:
        """Return what is wanted of a member or item."""
        return None if self.wanted is None else self.wanted.children.get(step)


def _visited(parser: Any, root: _Wanted) -> Iterator[tuple[_Wanted, int]]:
    """Yield wanted nodes that the text has, parents first, with their lines. The line of a member is its key's."""
    number = -1
    stack: list[_Open] = []
    while not isinstance(event := parser.get_event(), pyyaml.StreamEndEvent):
        if isinstance(event, pyyaml.DocumentStartEvent):
            number += 1
        elif isinstance(event, pyyaml.CollectionEndEvent):
            stack.pop()
        elif isinstance(event, pyyaml.NodeEvent):
            top = stack[-1] if stack else None
            node: _Wanted | None
            below: _Wanted | None
            if top is None:
                node = below = root.children.get(str(number))
            elif not top.is_mapping:
                node = below = top.child(str(top.index))
                top.index += 1
            elif top.key is None:
                top.key = event.value if isinstance(event, pyyaml.ScalarEvent) else ""
                node, below = top.child(top.key), None
            else:
                node, below = None, top.child(top.key)
                top.key = None
            if node is not None:
                yield node, _line(event)
            if isinstance(event, pyyaml.CollectionStartEvent):
                stack.append(_Open(below, isinstance(event, pyyaml.MappingStartEvent)))


def _line(event: pyyaml.NodeEvent) -> int:
    return 1 if event.start_mark is None else event.start_mark.line + 1
