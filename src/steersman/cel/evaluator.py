"""A checked expression as functions that call each other, and what calling them costs (cel-go `interpreter`).

Each node becomes a function of the `Frame` of one evaluation. Errors are raised, and caught only by the operators that
can do without the operand that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from steersman.cel.access import dispatch, find_field, find_item, iterate
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
    Operator,
    Select,
)
from steersman.cel.environment import Environment
from steersman.cel.nesting import allows_nesting
from steersman.cel.regular import PatternError, check_pattern
from steersman.cel.runtime_cost import CallCosts, call_cost
from steersman.cel.sizes import LIST_COST, MAP_COST, STRUCT_COST
from steersman.cel.types import Kind, Type
from steersman.cel.values import (
    NONE,
    CostLimitExceeded,
    Duration,
    EvaluationError,
    Map,
    Optional,
    Record,
    Timestamp,
    print_value,
)
from steersman.cel.work import HERE
from steersman.work.offloading import expect_offloading
from steersman.work.threads import give_way


class Frame:
    """One evaluation: what variables stand for and what it has cost."""

    __slots__ = ("_free", "cost", "limit", "variables")

    def __init__(self, variables: dict[str, Any], limit: int) -> None:
        self.variables = variables
        self.limit = limit
        self.cost = 0
        self._free = limit // _PER_FREE_STEP

    def charge(self, cost: int) -> None:
        """Adds to the cost. Raises CostLimitExceeded."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostLimitExceeded

    def afford(self, cost: int) -> None:
        """Raises CostLimitExceeded if so much would be too much, and charges it then."""
        if self.cost + cost > self.limit:
            self.charge(cost)

    def work(self, steps: int) -> None:
        """Charges for steps that the cost of no call tells, beyond those that are free. Raises CostLimitExceeded."""
        self._free -= steps
        if self._free < 0:
            cost, self._free = -(self._free // _STEPS_OF_A_UNIT), 0
            self.charge(cost)


_PER_FREE_STEP: Final = 1_000
"""An evaluation that may cost so much may do a step more for nothing: upstream's cost does not tell of them either."""
_STEPS_OF_A_UNIT: Final = 4
"""What a unit of cost pays for beyond that: some microsecond, as other units."""

Step = Callable[[Frame], Any]

_CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
_PATTERN_FUNCTIONS: Final = frozenset({"matches", "find", "findAll"})


class ProgramError(ValueError):
    """A part that is constant has no value: the expression can never be evaluated."""


class Program:
    """An expression ready to be evaluated, again and again."""

    @allows_nesting
    def __init__(self, tree: Expr, environment: Environment, costs: CallCosts) -> None:
        """Raises ProgramError."""
        self._step: Final = _Planner(environment, costs).plan(tree)

    @allows_nesting
    def evaluate(self, variables: Mapping[str, Any], limit: int) -> tuple[Any, int]:
        """The value, and what it cost.

        Raises EvaluationError, or CostLimitExceeded if it costs more than `limit`.
        """
        expect_offloading()
        frame = Frame(dict(variables), limit)
        return self._run(frame), frame.cost

    def outcome(
        self, variables: Mapping[str, Any], limit: int, begin: Callable[[Frame], None] | None = None
    ) -> tuple[Any, int]:
        """The value, or the EvaluationError or CostLimitExceeded in its place; and what it cost in any case.

        `begin` is told of the evaluation, whose limit it may change while that goes on.
        """
        expect_offloading()
        try:
            return self._outcome(variables, limit, begin)
        except RecursionError:
            if HERE.worker is not None:  # the evaluation that this is a part of has no more room either
                raise
            return EvaluationError("evaluation nests too deeply"), limit

    @allows_nesting
    def _outcome(
        self, variables: Mapping[str, Any], limit: int, begin: Callable[[Frame], None] | None
    ) -> tuple[Any, int]:
        frame = Frame(dict(variables), limit)
        if begin is not None:
            begin(frame)
        try:
            return self._run(frame), frame.cost
        except (EvaluationError, CostLimitExceeded) as error:
            return error, frame.cost

    def _run(self, frame: Frame) -> Any:
        outer, HERE.worker = HERE.worker, frame  # as `counted_by`, which would cost a microsecond
        try:
            return self._step(frame)
        finally:
            HERE.worker = outer


class _Constant:
    """A step that is known beforehand."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Final = value

    def __call__(self, frame: Frame) -> Any:
        return self.value


class _Lazy:
    """The value of a bound name, made once, when it is first asked for, of what names stood for where it was bound."""

    __slots__ = ("_step", "_value", "_variables")

    def __init__(self, step: Step, variables: dict[str, Any]) -> None:
        self._step: Step | None = step
        self._variables = dict(variables)
        self._value: Any = None

    def get(self, frame: Frame) -> Any:
        """The value. Raises EvaluationError."""
        if self._step is not None:
            within, frame.variables = frame.variables, self._variables
            try:
                self._value = _attempt(self._step, frame)
            finally:
                frame.variables = within
            self._step, self._variables = None, {}
        if type(self._value) is EvaluationError:
            raise self._value.with_traceback(None)
        return self._value


class _Planner:
    def __init__(self, environment: Environment, costs: CallCosts) -> None:
        self._environment: Final = environment
        self._costs: Final = costs

    def plan(self, node: Expr) -> Step:
        match node:
            case Literal():
                return _Constant(node.value)
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case CreateList():
                return self._list(node)
            case CreateMap():
                return self._map(node)
            case Comprehension():
                return self._bind(node) if node.is_bind else self._comprehension(node)
            case CreateStruct():
                return self._struct(node)
        raise ProgramError("unknown expression")

    def _ident(self, node: Ident) -> Step:
        if node.constant is not None:
            if node.constant.kind is Kind.STRUCT or node.constant.name != node.name:
                # As upstream: the checker knows more names of types than there are values for.
                raise ProgramError(f"reference to undefined type: {node.name}")
            return _Constant(node.constant)
        name = node.name

        def variable(frame: Frame) -> Any:
            try:
                value = frame.variables[name]
            except KeyError:
                raise EvaluationError(f"no such attribute(s): {name}") from None
            frame.charge(1)
            kind = type(value)
            if kind is EvaluationError:
                # Kept over many turns of a loop, it would keep the way it took each time.
                raise value.with_traceback(None)
            if kind is _Lazy:
                return value.get(frame)
            return value

        return variable

    def _select(self, node: Select) -> Step:
        if node.resolved is not None:
            return self._ident(node.resolved)
        operand, field = self.plan(node.operand), node.field
        surcharge = 0 if _is_attribute(node.operand) else 1
        is_typed = node.operand.type.kind is Kind.STRUCT
        if node.test_only:

            def has(frame: Frame) -> bool:
                container = operand(frame)
                frame.charge(surcharge)
                if is_typed and isinstance(container, Record):
                    return container.has(field)
                if isinstance(container, Optional):
                    return bool(container.has_value) and find_field(container.value, field) is not None
                return find_field(container, field) is not None

            return has

        def select(frame: Frame) -> Any:
            container = operand(frame)
            frame.charge(surcharge)
            if isinstance(container, Optional):
                return _optional_field(frame, container, field)
            frame.charge(1)
            if is_typed and isinstance(container, Record):
                return container.get(field)
            found = find_field(container, field)
            if found is None:
                if isinstance(container, list | tuple):
                    raise EvaluationError("unsupported index type 'string' in list")
                raise EvaluationError(f"no such key: {field}")
            return found[1]

        return select

    def _list(self, node: CreateList) -> Step:
        elements = [self.plan(each) for each in node.elements]
        optional = node.optional
        if not optional:
            if all(isinstance(each, _Constant) for each in elements):
                return _Constant([each.value for each in elements if isinstance(each, _Constant)])

            def plain(frame: Frame) -> Any:
                values = [each(frame) for each in elements]
                frame.charge(LIST_COST)
                return values

            return plain

        def with_optional(frame: Frame) -> Any:
            values = []
            for index, each in enumerate(elements):
                value = each(frame)
                if index in optional:
                    if not isinstance(value, Optional):
                        raise EvaluationError(
                            f"cannot initialize optional list element from non-optional value {print_value(value)}"
                        )
                    if not value.has_value:
                        continue
                    value = value.value
                values.append(value)
            frame.charge(LIST_COST)
            return values

        return with_optional

    def _map(self, node: CreateMap) -> Step:
        planned = [(self.plan(each.key), self.plan(each.value), each.optional) for each in node.entries]

        def make(frame: Frame) -> Any:
            values = []
            for key_step, value_step, optional in planned:
                key, value = key_step(frame), value_step(frame)
                if optional:
                    if not isinstance(value, Optional):
                        raise EvaluationError(
                            f"cannot initialize optional entry '{print_value(key)}' from non-optional value "
                            f"{print_value(value)}"
                        )
                    if not value.has_value:
                        continue
                    value = value.value
                values.append((key, value))
            frame.charge(MAP_COST)
            return Map(values)

        if all(
            isinstance(key, _Constant) and isinstance(value, _Constant) and not optional
            for key, value, optional in planned
        ):
            try:
                return _Constant(make(Frame({}, MAP_COST)))
            except EvaluationError as error:
                raise ProgramError(str(error)) from None
        return make

    def _struct(self, node: CreateStruct) -> Step:
        fields = [(init.name, self.plan(init.value), init.optional) for init in node.fields]
        name = node.type_name
        constructed = self._environment.constructed(name)

        def make(frame: Frame) -> Any:
            values = {}
            for field, step, optional in fields:
                value = step(frame)
                if optional:
                    if not isinstance(value, Optional):
                        raise EvaluationError(
                            f"cannot initialize optional entry '{field}' from non-optional value {print_value(value)}"
                        )
                    if not value.has_value:
                        continue
                    value = value.value
                values[field] = value
            if constructed is None:
                # As upstream: types with fields are declared for reading, and nothing makes objects of them.
                raise EvaluationError(f"unknown type '{name}'")
            frame.charge(STRUCT_COST)
            return constructed.make(values)

        return make

    def _comprehension(self, node: Comprehension) -> Step:
        over, init = self.plan(node.range), self.plan(node.init)
        condition, turn, result = self.plan(node.condition), self.plan(node.step), self.plan(node.result)
        first, second, accumulator = node.variable, node.second_variable, node.accumulator

        def loop(frame: Frame) -> Any:
            container = over(frame)
            variables = frame.variables
            outer = {name: variables[name] for name in (first, second, accumulator) if name in variables}
            start = init(frame)
            # What is gathered is added to in place.
            if isinstance(start, list):
                start = [*start]
            elif isinstance(start, Map):
                start = Map(start.items())
            variables[accumulator] = start
            try:
                for one, other in iterate(container, two=bool(second)):
                    give_way()
                    variables[first], variables[second] = one, other
                    if condition(frame) is False:
                        break
                    variables[accumulator] = _attempt(turn, frame)
                _restore(variables, outer, (first, second))
                return result(frame)
            finally:
                _restore(variables, outer, (first, second, accumulator))

        return loop

    def _bind(self, node: Comprehension) -> Step:
        init, result, name = self.plan(node.init), self.plan(node.result), node.accumulator

        def bind(frame: Frame) -> Any:
            variables = frame.variables
            known = name in variables
            outer = variables.get(name)
            variables[name] = _Lazy(init, variables)
            try:
                return result(frame)
            finally:
                if known:
                    variables[name] = outer
                else:
                    del variables[name]

        return bind

    def _call(self, node: Call) -> Step:
        match node.function:
            case Operator.AND:
                return self._logic(node, absorbing=False)
            case Operator.OR:
                return self._logic(node, absorbing=True)
            case Operator.CONDITIONAL:
                return self._conditional(node)
            case Operator.NOT_STRICTLY_FALSE:
                return self._not_strictly_false(node)
            case Operator.INDEX | Operator.OPTIONAL_INDEX:
                return self._index(node, optional=node.function == Operator.OPTIONAL_INDEX)
            case Operator.OPTIONAL_SELECT:
                return self._optional_select(node)
        if node.overloads in (("optional_or_optional",), ("optional_orValue_value",)):
            return self._alternative(node)
        if _is_append(node):
            return self._append(node)
        return self._function(node)

    def _logic(self, node: Call, *, absorbing: bool) -> Step:
        left, right = self.plan(node.args[0]), self.plan(node.args[1])

        def logic(frame: Frame) -> bool:
            failure: EvaluationError | None = None
            value: Any = None
            try:
                value = left(frame)
            except EvaluationError as error:
                failure = error
            else:
                if value is absorbing:
                    return bool(absorbing)
                if value is not (not absorbing):
                    failure = EvaluationError("no such overload")
            value = right(frame) if failure is None else _attempt(right, frame)
            if value is absorbing:
                return bool(absorbing)
            if failure is not None:
                raise failure.with_traceback(None)
            if value is not (not absorbing):
                raise EvaluationError("no such overload")
            return not absorbing

        return logic

    def _conditional(self, node: Call) -> Step:
        condition, one, other = (self.plan(arg) for arg in node.args)
        discount_one, discount_other = (1 if _is_access(arg) else 0 for arg in node.args[1:])

        def conditional(frame: Frame) -> Any:
            value = condition(frame)
            if value is True:
                result = one(frame)
                frame.cost -= discount_one
                return result
            if value is False:
                result = other(frame)
                frame.cost -= discount_other
                return result
            raise EvaluationError("no such overload")

        return conditional

    def _not_strictly_false(self, node: Call) -> Step:
        argument = self.plan(node.args[0])

        def not_strictly_false(frame: Frame) -> bool:
            try:
                value = argument(frame)
            except EvaluationError:
                value = True
            frame.charge(1)
            return value is not False

        return not_strictly_false

    def _index(self, node: Call, *, optional: bool) -> Step:
        operand, index = self.plan(node.args[0]), self.plan(node.args[1])
        if isinstance(index, _Constant) and (wrong := _NO_INDEX.get(type(index.value))):
            raise ProgramError(f"invalid qualifier type: {wrong}")
        surcharge = (0 if _is_attribute(node.args[0]) else 1) - (1 if _is_access(node.args[1]) else 0)

        def get(frame: Frame) -> Any:
            container = operand(frame)
            key = index(frame)
            frame.charge(surcharge)
            if optional or isinstance(container, Optional):
                if isinstance(container, Optional):
                    if not container.has_value:
                        return NONE
                    container = container.value
                found = find_item(container, key)
                if found is None:
                    return NONE
                frame.charge(1)
                return Optional(found[1])
            frame.charge(1)
            found = find_item(container, key)
            if found is None:
                if wrong := _NO_INDEX.get(type(key)):
                    raise EvaluationError(f"invalid qualifier type: {wrong}")
                kind = "index out of bounds" if isinstance(container, list | tuple) else "no such key"
                raise EvaluationError(f"{kind}: {print_value(key)}")
            return found[1]

        return get

    def _optional_select(self, node: Call) -> Step:
        operand, field = self.plan(node.args[0]), node.args[1]
        assert isinstance(field, Literal)
        name = field.value
        surcharge = 0 if _is_attribute(node.args[0]) else 1

        def select(frame: Frame) -> Any:
            container = operand(frame)
            frame.charge(surcharge)
            wrapped = container if isinstance(container, Optional) else Optional(container)
            return _optional_field(frame, wrapped, name)

        return select

    def _alternative(self, node: Call) -> Step:
        assert node.target is not None
        one, other = self.plan(node.target), self.plan(node.args[0])
        unwrap = node.function == "orValue"

        def alternative(frame: Frame) -> Any:
            value = one(frame)
            if not isinstance(value, Optional):
                raise EvaluationError("no such overload")
            if not value.has_value:
                return other(frame)
            return value.value if unwrap else value

        return alternative

    def _append(self, node: Call) -> Step:
        """Adding one element to what a loop gathers: in place, as nothing else can see it."""
        elements = node.args[1]
        assert isinstance(elements, CreateList)
        element = self.plan(elements.elements[0])
        constant = isinstance(element, _Constant)
        gathered = self.plan(node.args[0])

        def append(frame: Frame) -> Any:
            values = gathered(frame)
            values.append(element(frame))
            frame.charge(1 if constant else LIST_COST + 1)
            return values

        return append

    def _function(self, node: Call) -> Step:
        args = [self.plan(arg) for arg in node.args]
        nodes = node.args
        if node.target is not None:
            args.insert(0, self.plan(node.target))
            nodes = [node.target, *nodes]
        chosen = [self._environment.overloads[id] for id in node.overloads]
        call = dispatch(node.function, chosen, nodes)
        overload = chosen[0] if len(chosen) == 1 else None
        cost = call_cost(self._costs, node.function, overload)
        if node.function in _CONVERSIONS and len(args) == 1 and isinstance(args[0], _Constant):
            try:
                return _Constant(call(args[0].value))
            except EvaluationError as error:
                raise ProgramError(str(error)) from None
        if node.function in _PATTERN_FUNCTIONS and len(args) > 1:
            _check_pattern(args[1])
        if node.function == Operator.IN and isinstance(args[1], _Constant) and isinstance(args[1].value, list):
            return _membership(args[0], args[1].value, call)
        if len(args) == 1:
            (only,) = args

            def unary(frame: Frame) -> Any:
                try:
                    value = only(frame)
                except EvaluationError as error:
                    frame.charge(cost([error], error))
                    raise
                try:
                    result = call(value)
                except EvaluationError as error:
                    frame.charge(cost([value], error))
                    raise
                frame.charge(cost([value], result))
                return result

            return unary

        def function(frame: Frame) -> Any:
            # All arguments are evaluated, and the call is paid for, also if one of them fails.
            values = []
            failure: EvaluationError | None = None
            for arg in args:
                try:
                    values.append(arg(frame))
                except EvaluationError as error:
                    values.append(error)
                    failure = failure or error
            if failure is None:
                try:
                    result = call(*values)
                except EvaluationError as error:
                    frame.charge(cost(values, error))
                    raise
                frame.charge(cost(values, result))
                return result
            frame.charge(cost(values, failure))
            raise failure.with_traceback(None)

        return function


def _is_attribute(node: Expr) -> bool:
    """Whether a selection from it is part of the same access, which is paid for once."""
    return isinstance(node, Ident | Select) or (
        isinstance(node, Call)
        and node.function in (Operator.INDEX, Operator.OPTIONAL_INDEX, Operator.OPTIONAL_SELECT, Operator.CONDITIONAL)
    )


def _is_access(node: Expr) -> bool:
    """Whether it is a variable or a selection: what costs one less where it is a branch or an index."""
    if isinstance(node, Ident):
        return node.constant is None
    if isinstance(node, Select):
        return not node.test_only
    return isinstance(node, Call) and node.function in (
        Operator.INDEX,
        Operator.OPTIONAL_INDEX,
        Operator.OPTIONAL_SELECT,
    )


def _is_append(node: Call) -> bool:
    return (
        node.function == Operator.ADD
        and isinstance(node.args[0], Ident)
        and node.args[0].name == ACCUMULATOR
        and isinstance(node.args[1], CreateList)
        and len(node.args[1].elements) == 1
        and not node.args[1].optional
    )


def _restore(variables: dict[str, Any], outer: dict[str, Any], names: tuple[str, ...]) -> None:
    """Lets names stand for what they stood for before a loop used them."""
    for name in names:
        if name in outer:
            variables[name] = outer[name]
        else:
            variables.pop(name, None)


_NO_INDEX: Final = {
    type(None): "types.Null",
    bytes: "types.Bytes",
    list: "*types.baseList",
    Map: "*types.baseMap",
    Type: "*types.Type",
    Duration: "types.Duration",
    Timestamp: "types.Timestamp",
}
"""What no constant index is, as Go names it."""


def _attempt(step: Step, frame: Frame) -> Any:
    """The value of a step, or the error it raises."""
    try:
        return step(frame)
    except EvaluationError as error:
        return error


def _check_pattern(step: Step) -> None:
    if isinstance(step, _Constant) and isinstance(step.value, str):
        try:
            check_pattern(step.value)
        except PatternError as error:
            raise ProgramError(str(error)) from None


def _membership(argument: Step, values: list[Any], call: Callable[..., Any]) -> Step:
    """Whether a value is one of some constants; costs nothing beyond the value."""
    if not values:
        return _Constant(False)
    if all(type(value) is str for value in values):
        strings = frozenset(values)

        def is_string_in(frame: Frame) -> bool:
            value = argument(frame)
            return type(value) is str and value in strings

        return is_string_in
    return lambda frame: call(argument(frame), values)


def _optional_field(frame: Frame, container: Optional, field: str) -> Optional:
    found = find_field(container.value, field) if container.has_value else None
    if found is None:
        return NONE
    frame.charge(1)
    return Optional(found[1])
