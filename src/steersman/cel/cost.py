"""Estimates of the least and the highest cost of an expression, from its syntax tree (cel-go `checker.Cost`).

Estimates decide which expressions are accepted, so they follow the reference implementation even where it seems odd.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from steersman.cel.ast import (
    ACCUMULATOR,
    Call,
    Comprehension,
    CreateList,
    CreateMap,
    CreateStruct,
    Expr,
    Ident,
    Literal,
    Select,
)
from steersman.cel.environment import Overload
from steersman.cel.nesting import allows_nesting
from steersman.cel.sizes import (
    LIST_COST,
    MAP_COST,
    NOTHING,
    ONE,
    REGEX_FACTOR,
    STRING_FACTOR,
    STRUCT_COST,
    UNBOUNDED,
    UNKNOWN,
    CallEstimate,
    CostNode,
    Estimator,
    Range,
    fixed,
)
from steersman.cel.types import Kind, Type

Path = tuple[str, ...]

_SCALARS: Final = frozenset({Kind.BOOL, Kind.DOUBLE, Kind.DURATION, Kind.INT, Kind.TIMESTAMP, Kind.UINT})


class _Entries(NamedTuple):
    """The sizes of the keys or indices and of the values of a list or map."""

    kind: Kind
    key: Range
    value: Range


class _Local(NamedTuple):
    """The facts about a variable of a comprehension."""

    path: Path
    size: Range | None
    entries: _Entries | None


@allows_nesting
def estimate_cost(tree: Expr, overloads: Mapping[str, Overload], estimator: Estimator) -> Range:
    """Return the estimated cost of a checked expression."""
    return _Coster(overloads, estimator).cost(tree)


class _Coster:
    def __init__(self, overloads: Mapping[str, Overload], estimator: Estimator) -> None:
        self._overloads: Final = overloads
        self._estimator: Final = estimator
        self._paths: Final[dict[int, Path]] = {}
        self._sizes: Final[dict[int, Range]] = {}
        self._entries: Final[dict[int, _Entries]] = {}
        self._locals: Final[dict[str, list[_Local]]] = {}

    def cost(self, node: Expr) -> Range:
        match node:
            case Ident():
                return self._ident(node, node.name)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case CreateList():
                return self._list(node)
            case CreateMap():
                return self._map(node)
            case CreateStruct():
                total = fixed(STRUCT_COST)
                for init in node.fields:
                    total = total.plus(self.cost(init.value))
                return total
            case Comprehension():
                return self._bind(node) if node.is_bind else self._comprehension(node)
            case _:
                return NOTHING

    def _ident(self, node: Expr, name: str) -> Range:
        local = self._local(name)
        self._paths[id(node)] = (name,) if local is None else local.path
        return ONE

    def _select(self, node: Select) -> Range:
        if node.resolved is not None:
            return self._ident(node, node.resolved.name)
        total = self.cost(node.operand)
        if node.test_only:
            return total
        if node.operand.type.kind in (Kind.MAP, Kind.STRUCT, Kind.TYPE_PARAM):
            total = total.plus(ONE)
        self._paths[id(node)] = (*self._path(node.operand), node.field)
        return total

    def _call(self, node: Call) -> Range:
        if node.function == "dyn" and len(node.args) == 1:
            total = self.cost(node.args[0]).plus(ONE)
            self._copy_sizes(node, node.args[0])
            return total
        costs = [self.cost(argument) for argument in node.args]
        args = [self._node(argument) for argument in node.args]
        if not node.overloads:
            return NOTHING
        total = NOTHING
        target: CostNode | None = None
        if node.target is not None:
            total = self.cost(node.target)
            target = self._node(node.target)
        cost = Range(UNBOUNDED, 0)
        size: Range | None = None
        for overload in node.overloads:
            estimate = self._function(node, overload, target, args, costs)
            cost = cost.union(estimate.cost)
            if estimate.result_size is not None:
                size = estimate.result_size if size is None else size.union(estimate.result_size)
            if overload in ("index_list", "index_map"):
                size = self._value_size(node.args[0])
                step = "@items" if overload == "index_list" else "@values"
                self._paths[id(node)] = (*self._path(node.args[0]), step)
            if size is None:
                size = self._size(node)
        if size is not None:
            self._sizes[id(node)] = size
        return total.plus(cost)

    def _list(self, node: CreateList) -> Range:
        total = fixed(LIST_COST)
        size = Range(UNBOUNDED, 0) if node.elements else NOTHING
        for element in node.elements:
            total = total.plus(self.cost(element))
            size = size.union(self._size_or_unknown(element))
        self._entries[id(node)] = _Entries(Kind.LIST, ONE, size)
        return total

    def _map(self, node: CreateMap) -> Range:
        total = fixed(MAP_COST)
        key = value = Range(UNBOUNDED, 0) if node.entries else NOTHING
        for entry in node.entries:
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            key = key.union(self._size_or_unknown(entry.key))
            value = value.union(self._size_or_unknown(entry.value))
        self._entries[id(node)] = _Entries(Kind.MAP, key, value)
        return total

    def _comprehension(self, node: Comprehension) -> Range:
        total = self.cost(node.range).plus(self.cost(node.init))
        self._push_value(node.accumulator, node.init)
        entries = self._entry_sizes(node.range)
        kind = node.range.type.kind if entries is None else entries.kind
        path = self._path(node.range)
        is_list = kind is Kind.LIST
        keys = _Local(
            (*path, "@indices" if is_list and node.second_variable else "@keys"),
            None if entries is None else entries.key,
            None,
        )
        values = _Local((*path, "@items" if is_list else "@values"), None if entries is None else entries.value, None)
        pushed = {node.variable: keys if node.second_variable or not is_list else values}
        if node.second_variable:
            pushed[node.second_variable] = values
        for name, local in pushed.items():
            self._locals.setdefault(name, []).append(local)
        turn = self.cost(node.condition)
        turn = self.cost(node.step).plus(turn)
        for name in pushed:
            self._locals[name].pop()
        total = total.plus(self.cost(node.result))
        self._locals[node.accumulator].pop()
        count = self._size_or_unknown(node.range)
        self._comprehension_size(node, count)
        return total.plus(count.times(turn))

    def _comprehension_size(self, node: Comprehension, count: Range) -> None:
        if isinstance(node.init, Literal):
            size = self._size(node.init)
            if size is not None:
                self._sizes[id(node)] = size
        elif isinstance(node.init, CreateList | CreateMap):
            self._sizes[id(node)] = count
            entries = self._entry_sizes(node.step)
            if entries is not None:
                self._entries[id(node)] = entries

    def _bind(self, node: Comprehension) -> Range:
        total = self.cost(node.range).plus(self.cost(node.init))
        self._push_value(node.accumulator, node.init)
        total = total.plus(self.cost(node.result))
        self._locals[node.accumulator].pop()
        self._copy_sizes(node, node.result)
        return total

    def _function(
        self, node: Call, overload: str, target: CostNode | None, args: list[CostNode], costs: list[Range]
    ) -> CallEstimate:
        """Return the cost of one overload of a call, including its arguments."""
        declared = self._overloads.get(overload)
        estimate: CallEstimate | None = None
        if declared is not None and declared.estimate is not None:
            estimate = declared.estimate(self._estimator, target, args)
        if estimate is None:
            estimate = self._estimator.call(node.function, overload, target, args)
        if estimate is None:
            if overload == "logical_and" or overload == "logical_or":
                return CallEstimate(Range(costs[0].min, costs[0].plus(costs[1]).max))
            if overload == "conditional":
                return self._conditional(node, costs)
            estimate = self._standard(node, overload, target, args)
        total = estimate.cost
        for each in costs:
            total = total.plus(each)
        return CallEstimate(total, estimate.result_size)

    def _conditional(self, node: Call, costs: list[Range]) -> CallEstimate:
        one, other = node.args[1], node.args[2]
        self._join_entries(node, one, other)
        size = self._size_or_unknown(one).union(self._size_or_unknown(other))
        return CallEstimate(costs[0].plus(costs[1].union(costs[2])), size)

    def _join_entries(self, node: Expr, one: Expr, other: Expr) -> None:
        first, second = self._entry_sizes(one), self._entry_sizes(other)
        if first is not None and second is not None:
            self._entries[id(node)] = _Entries(first.kind, first.key.union(second.key), first.value.union(second.value))

    def _standard(self, node: Call, overload: str, target: CostNode | None, args: list[CostNode]) -> CallEstimate:
        """Return the estimate by the language's rules; functions without a rule cost 1."""
        known = [UNKNOWN if arg.computed_size is None else arg.computed_size for arg in args]
        match overload, len(args):
            case ("starts_with_string" | "ends_with_string", 1):
                return CallEstimate(known[0].scaled(STRING_FACTOR))
            case ("string_to_bytes", 1):
                size = known[0]
                # The product overflows for the largest size, as in the reference implementation.
                return CallEstimate(size.scaled(STRING_FACTOR), Range(size.min, size.max * 4 & UNBOUNDED))
            case ("bytes_to_string", 1):
                return CallEstimate(known[0].scaled(STRING_FACTOR), Range(known[0].min // 4, known[0].max))
            case ("strings_quote", 1):
                size = Range((known[0].min + 2) & UNBOUNDED, (known[0].max * 2 + 2) & UNBOUNDED)
                return CallEstimate(known[0].scaled(STRING_FACTOR), size)
            case ("string_format", _) if target is not None:
                return CallEstimate(self._known(target).scaled(STRING_FACTOR))
            case ("in_list", 2):
                return CallEstimate(known[1].scaled(1))
            case ("matches_string", 1) if target is not None:
                text = self._known(target).plus(ONE).scaled(STRING_FACTOR)
                return CallEstimate(text.times(known[0].scaled(REGEX_FACTOR)))
            case ("contains_string", 1) if target is not None:
                text = self._known(target).scaled(STRING_FACTOR)
                return CallEstimate(text.times(known[0].scaled(STRING_FACTOR)))
            case ("add_string" | "add_bytes" | "add_list", 2):
                size = known[0].plus(known[1])
                self._join_entries(node, node.args[0], node.args[1])
                return CallEstimate(ONE if overload == "add_list" else size.scaled(STRING_FACTOR), size)
            case (name, 2) if name in _COMPARISONS:
                smallest = min(known[0].max, known[1].max)
                return CallEstimate(Range(min(smallest, 1), smallest).scaled(STRING_FACTOR))
            case _:
                return CallEstimate(ONE)

    def _known(self, node: CostNode) -> Range:
        return UNKNOWN if node.computed_size is None else node.computed_size

    def _local(self, name: str) -> _Local | None:
        found = self._locals.get(name)
        return found[-1] if found else None

    def _push_value(self, name: str, node: Expr) -> None:
        local = _Local(self._path(node), self._size(node), self._entry_sizes(node))
        self._locals.setdefault(name, []).append(local)

    def _path(self, node: Expr) -> Path:
        if isinstance(node, Ident):
            local = self._local(node.name)
            if local is not None:
                return local.path
        return self._paths.get(id(node), ())

    def _node(self, node: Expr) -> CostNode:
        path = self._path(node)
        if path and path[0] == ACCUMULATOR:
            path = ()
        return CostNode(path, node.type, node, self._size(node))

    def _copy_sizes(self, node: Expr, other: Expr) -> None:
        size = self._size(other)
        if size is not None:
            self._sizes[id(node)] = size
        entries = self._entry_sizes(other)
        if entries is not None:
            self._entries[id(node)] = entries

    def _size_or_unknown(self, node: Expr) -> Range:
        size = self._size(node)
        return UNKNOWN if size is None else size

    def _size(self, node: Expr) -> Range | None:
        """Return the size of the value, if known."""
        computed = self._sizes.get(id(node))
        if computed is not None:
            return computed
        match node:
            case Literal():
                return fixed(len(node.value)) if isinstance(node.value, str | bytes) else ONE
            case CreateList():
                return fixed(len(node.elements))
            case CreateMap():
                return fixed(len(node.entries))
        path = self._path(node)
        if path:
            declared = self._estimator.size(path)
            if declared is not None:
                self._sizes[id(node)] = declared
                return declared
        if _is_scalar(node.type):
            return ONE
        if isinstance(node, Ident):
            local = self._local(node.name)
            return None if local is None else local.size
        return None

    def _entry_sizes(self, node: Expr) -> _Entries | None:
        found = self._entries.get(id(node))
        if found is None and isinstance(node, Ident):
            local = self._local(node.name)
            return None if local is None else local.entries
        return found

    def _value_size(self, node: Expr) -> Range | None:
        entries = self._entry_sizes(node)
        return None if entries is None else entries.value


_COMPARISONS: Final = frozenset(
    [f"{name}_{type}" for name in ("less", "greater", "less_equals", "greater_equals") for type in ("string", "bytes")]
    + ["equals", "not_equals"]
)


def _is_scalar(type: Type) -> bool:
    return _is_scalar(type.params[0]) if type.is_optional else type.kind in _SCALARS
