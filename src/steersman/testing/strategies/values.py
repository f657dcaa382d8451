"""Values of schema nodes: what hypothesis draws for each, bounded in size whatever the schema says.

A value has all required members and some of the others. The deeper it is, the fewer: below `DEEPEST` levels there are
only required members and the least items. Members and items that may be left out are draws of their own, so that
hypothesis can remove them from an example.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cached_property
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from steersman.schema import MISSING
from steersman.schema.nodes import EMBEDDED, INT_OR_STRING, NULLABLE, PRESERVE

from .constraints import Constraints
from .errors import Unsatisfiable
from .feasibility import Feasibility
from .scalars import anything, int_or_strings, integers, numbers, strings
from .texts import names

DEEPEST: Final = 10
"""Levels below which only what is required is drawn."""
_MEMBERS: Final = (8, 6, 5, 4, 3, 2, 2, 1, 1, 1)
"""The most members that are not required, by depth; on average half as many are drawn."""
_ITEMS: Final = (4, 4, 3, 3, 2, 2, 1, 1, 1, 1)
"""The most items beyond the least, by depth."""
_ONE_IN: Final = 8
_OMITTED: Final = object()

Drawn = Callable[[DrawFn], Any]


class Values:
    """Strategies for all positions of one schema, each made when it is first drawn."""

    def __init__(self) -> None:
        self.feasibility: Final = Feasibility()
        self._shapes: Final[dict[Any, Shape]] = {}

    def shape(self, constraints: Constraints, depth: int) -> Shape:
        """Return what draws values under these constraints, `depth` levels below the whole."""
        key = (constraints.key, min(depth, DEEPEST))
        found = self._shapes.get(key)
        if found is None:
            found = self._shapes[key] = Shape(self, constraints, min(depth, DEEPEST))
        return found


class Shape:
    """Draws values of one position."""

    def __init__(self, values: Values, constraints: Constraints, depth: int) -> None:
        """Raises Unsatisfiable if there is no value within bounds."""
        if problem := values.feasibility.problem(constraints):
            raise Unsatisfiable(problem)
        self._values = values
        self._constraints = constraints
        self._depth = depth
        self._draw = self._drawn()

    def draw(self, draw: DrawFn) -> Any:
        """Draw a value."""
        node = self._constraints.node
        if node.traits & NULLABLE and draw(_RARELY):
            return None
        if node.default is not MISSING and draw(_SOMETIMES):
            return deepcopy(node.default)
        return self._draw(draw)

    @cached_property
    def nested(self) -> SearchStrategy[Any]:
        """The strategy that draws values as draws of their own."""
        return st.composite(self.draw)()

    def _drawn(self) -> Drawn:
        constraints = self._constraints
        if constraints.choices:
            return self._choice
        if constraints.enum is not None:
            return _from(st.sampled_from(constraints.enum).map(deepcopy))
        node = constraints.node
        if node.traits & INT_OR_STRING:
            return _from(int_or_strings(constraints))
        match node.types:
            case ("object",):
                return self._object
            case ("array",):
                return self._array
            case ("string",):
                return _from(strings(constraints))
            case ("integer",):
                return _from(integers(constraints))
            case ("number",):
                return _from(numbers(constraints))
            case ("boolean",):
                return _from(st.booleans())
        if node.properties:
            return self._object
        return _from(anything())

    def _choice(self, draw: DrawFn) -> Any:
        """Choose one node of each list of alternatives, then draw under all of them."""
        chosen = self._constraints.chosen(draw(self._picks))
        if self._values.feasibility.problem(chosen):
            chosen = self._constraints.chosen([0] * len(self._constraints.choices))
        return self._values.shape(chosen, self._depth)._draw(draw)

    @cached_property
    def _picks(self) -> SearchStrategy[tuple[int, ...]]:
        return st.tuples(*(st.integers(0, len(each) - 1) for each in self._constraints.choices))

    # Objects

    def _object(self, draw: DrawFn) -> Any:
        found = {name: shape.draw(draw) for name, shape in self._required}
        for name, value in draw(self._optional):
            if value is not _OMITTED:
                found[name] = value
        if self._constraints.node.traits & EMBEDDED:
            found |= {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": draw(names())}}
        return found

    @cached_property
    def _required(self) -> list[tuple[str, Shape]]:
        found = []
        for name in self._constraints.required:
            member = self._constraints.member(name)
            if member is not None:
                found.append((name, self._values.shape(member, self._depth + 1)))
        return found

    @cached_property
    def _optional(self) -> SearchStrategy[list[tuple[str, Any]]]:
        """The strategy for members that are not required, with their names."""
        constraints, node = self._constraints, self._constraints.node
        required = set(constraints.required)
        names_left = [each for each in node.properties if each not in required and each not in constraints.absent]
        least = max(0, constraints.least("min_properties") - len(required))
        most = constraints.most("max_properties")
        room = least + (_MEMBERS[self._depth] if self._depth < DEEPEST else 0)
        room = room if most is None else min(room, max(most - len(required), least))
        entries = self._entries(names_left)
        if entries is None or not room:
            return st.just([])
        if names_left:
            least, room = min(least, len(names_left)), min(room, len(names_left))
        return st.lists(entries, min_size=least, max_size=room, unique_by=lambda entry: entry[0])

    def _entries(self, names_left: list[str]) -> SearchStrategy[tuple[str, Any]] | None:
        """Return the strategy for one member with its name, None if there is no further member."""
        if names_left:
            chosen = st.sampled_from(names_left)
        elif self._constraints.values is not None:
            chosen = names()
        elif self._constraints.node.traits & PRESERVE or self._constraints.node.additional is True:
            return st.tuples(names(), anything())
        else:
            return None

        @st.composite
        def entry(draw: DrawFn) -> tuple[str, Any]:
            name = draw(chosen)
            return name, self._member(draw, name)

        return entry()

    def _member(self, draw: DrawFn, name: str) -> Any:
        member = self._constraints.member(name)
        if member is None or self._values.feasibility.problem(member):
            return _OMITTED
        return self._values.shape(member, self._depth + 1).draw(draw)

    # Lists

    def _array(self, draw: DrawFn) -> Any:
        if self._depth >= DEEPEST:
            items = self._items
            count = self._constraints.least("min_items")
            return [] if items is None else [items.draw(draw) for _ in range(count)]
        return draw(self._lists)

    @cached_property
    def _items(self) -> Shape | None:
        items = self._constraints.items
        if items is None or self._values.feasibility.problem(items):
            return None
        return self._values.shape(items, self._depth + 1)

    @cached_property
    def _lists(self) -> SearchStrategy[list[Any]]:
        constraints, node, items = self._constraints, self._constraints.node, self._items
        if items is None:
            return st.lists(anything(), max_size=2) if node.items is None else st.just([])
        least, most = constraints.least("min_items"), constraints.most("max_items")
        room = least + _ITEMS[self._depth]
        room = room if most is None else min(room, max(most, least))
        if node.list_type == "map":
            return st.lists(items.nested, min_size=least, max_size=room, unique_by=self._key_of)
        if node.list_type == "set" or any(each.unique_items for each in constraints.checks):
            return st.lists(items.nested, min_size=least, max_size=room, unique_by=repr)
        return st.lists(items.nested, min_size=least, max_size=room)

    def _key_of(self, item: Any) -> str:
        """Return the key of an item of a list with keys, in which defaults count."""
        node = self._constraints.node
        if not isinstance(item, dict) or node.items is None:
            return ""
        keys = [(name, node.items.child(name)) for name in node.map_keys]
        return repr([item.get(name, None if key is None else key.default) for name, key in keys])


def _from(strategy: SearchStrategy[Any]) -> Drawn:
    return lambda draw: draw(strategy)


_RARELY: Final = st.integers(0, _ONE_IN - 1).map(lambda number: number == _ONE_IN - 1)
_SOMETIMES: Final = st.booleans().map(lambda no: not no)
