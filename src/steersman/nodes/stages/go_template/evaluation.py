"""Bounded evaluation of templates (text/template `exec.go`)."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from steersman.nodes.stages.go_template import syntax
from steersman.nodes.stages.go_template.builtins import LAZY, Function
from steersman.nodes.stages.go_template.syntax import Nodes, Operand, Pipeline
from steersman.nodes.stages.go_template.values import MISSING, Opaque, TemplateError, Value, text_of, truth, type_name

MOST_STEPS: Final = 50_000
"""Pieces of text, actions and iterations of loops in one evaluation."""
MOST_TEXT: Final = 1 << 20
"""Characters that an evaluation may write."""
_MOST_CALLS: Final = 50
"""Depth of templates that call each other."""


class _Break(Exception):
    """Ends the innermost loop."""


class _Continue(Exception):
    """Ends the current iteration of the innermost loop."""


class Evaluation:
    """One evaluation of a template."""

    def __init__(self, templates: Mapping[str, Nodes], functions: Mapping[str, Function]) -> None:
        self._templates = templates
        self._functions = functions
        self._written: list[str] = []
        self._length = 0
        self._steps = 0
        self._calls = 0
        self._line = 1

    def run(self, nodes: Nodes, data: Value) -> str:
        """Evaluate `nodes` over `data` and return the text. Raises TemplateError with the line."""
        try:
            self._walk(nodes, data, [("$", data)])
        except TemplateError as error:
            raise TemplateError(f"line {self._line}: {error}") from None
        except RecursionError:  # a map that contains itself, or too many levels of maps and lists
            raise TemplateError(f"line {self._line}: a value that is nested too deeply") from None
        return "".join(self._written)

    # Nodes

    def _walk(self, nodes: Nodes, dot: Value, variables: _Variables) -> None:
        for node in nodes:
            self._step()
            match node:
                case syntax.Text(text):
                    self._write(text)
                case syntax.Action(pipeline):
                    value = self._pipeline(pipeline, dot, variables)
                    if not pipeline.variables:
                        self._write("<no value>" if value is MISSING else text_of(value))
                case syntax.Branch():
                    known = len(variables)
                    self._branch(node, dot, variables)
                    del variables[known:]
                case syntax.Call():
                    self._call_template(node, dot, variables)
                case syntax.Jump(word):
                    raise _Break if word == "break" else _Continue

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise TemplateError(f"more than {MOST_STEPS} steps")

    def _write(self, text: str) -> None:
        self._length += len(text)
        if self._length > MOST_TEXT:
            raise TemplateError(f"a text of more than {MOST_TEXT} characters")
        self._written.append(text)

    def _branch(self, node: syntax.Branch, dot: Value, variables: _Variables) -> None:
        if node.word == "range":
            self._range(node, dot, variables)
            return
        value = self._pipeline(node.pipeline, dot, variables)
        if truth(value):
            self._walk(node.body, value if node.word == "with" else dot, variables)
        else:
            self._walk(node.otherwise, dot, variables)

    def _range(self, node: syntax.Branch, dot: Value, variables: _Variables) -> None:
        pipeline = node.pipeline
        value = self._evaluate(pipeline, dot, variables)
        pairs = _items(value, with_index=len(pipeline.variables) > 1)
        names, outer, ran = pipeline.variables, len(variables), False
        for key, element in pairs:
            ran = True
            self._step()
            for name, given in zip(names, (key, element)[2 - len(names) :], strict=True):
                if pipeline.assigns:
                    _assign(variables, name, given)
                else:
                    variables.append((name, given))
            try:
                self._walk(node.body, element, variables)
            except _Continue:
                pass
            except _Break:
                break
            finally:
                del variables[outer:]
        if not ran:
            self._walk(node.otherwise, dot, variables)

    def _call_template(self, node: syntax.Call, dot: Value, variables: _Variables) -> None:
        self._line = node.line
        nodes = self._templates.get(node.name)
        if nodes is None:
            raise TemplateError(f'template "{node.name}" not defined')
        if self._calls >= _MOST_CALLS:
            raise TemplateError(f"exceeded maximum template depth ({_MOST_CALLS})")
        data = MISSING if node.pipeline is None else self._pipeline(node.pipeline, dot, variables)
        self._calls += 1
        self._walk(nodes, data, [("$", data)])
        self._calls -= 1

    # Pipelines

    def _pipeline(self, pipeline: Pipeline, dot: Value, variables: _Variables) -> Value:
        """Return the result of a pipeline, after storing it in the pipeline's variables."""
        value = self._evaluate(pipeline, dot, variables)
        for name in pipeline.variables:
            if pipeline.assigns:
                _assign(variables, name, value)
            else:
                variables.append((name, value))
        return value

    def _evaluate(self, pipeline: Pipeline, dot: Value, variables: _Variables) -> Value:
        self._line = pipeline.line
        value: Value = MISSING
        for number, command in enumerate(pipeline.commands):
            final = (value,) if number else ()
            value = self._command(command, final, dot, variables)
            if value is None:
                value = MISSING
        return value

    def _command(self, command: syntax.Command, final: tuple[Value, ...], dot: Value, variables: _Variables) -> Value:
        first, *rest = command
        if isinstance(first, syntax.Name):
            return self._call(first.name, rest, final, dot, variables)
        if rest or final:
            raise TemplateError(
                f"{first.names[-1]} has arguments but cannot be invoked as function"
                if isinstance(first, syntax.Fields)
                else "can't give argument to non-function"
            )
        if isinstance(first, syntax.Nil):
            raise TemplateError("nil is not a command")
        return self._operand(first, dot, variables)

    def _call(
        self, name: str, operands: list[Operand], final: tuple[Value, ...], dot: Value, variables: _Variables
    ) -> Value:
        self._step()
        if name in LAZY:
            return self._and_or(name, operands, final, dot, variables)
        function = self._functions[name]
        arguments = [_given(self._operand(each, dot, variables)) for each in operands]
        arguments += map(_given, final)
        least, most = _arity(function)
        if not least <= len(arguments) <= most:
            want = f"{least}" if least == most else f"at least {least}"
            raise TemplateError(f"wrong number of args for {name}: want {want} got {len(arguments)}")
        try:
            return function(*arguments)
        except TemplateError as error:
            raise TemplateError(f"error calling {name}: {error}") from None

    def _and_or(
        self, name: str, operands: list[Operand], final: tuple[Value, ...], dot: Value, variables: _Variables
    ) -> Value:
        value: Value = None
        if not operands and not final:
            raise TemplateError(f"wrong number of args for {name}: want at least 1 got 0")
        for operand in operands:
            value = self._operand(operand, dot, variables)
            if truth(_given(value)) is (name == "or"):
                return value
        return final[0] if final else value

    def _operand(self, operand: Operand, dot: Value, variables: _Variables) -> Value:
        match operand:
            case syntax.Dot():
                return dot
            case syntax.Fields(of, names):
                value = self._operand(of, dot, variables)
                for name in names:
                    value = _field(value, name)
                return value
            case syntax.Variable(name):
                return next(value for known, value in reversed(variables) if known == name)
            case syntax.Literal(value):
                return value
            case syntax.Name(name):
                return self._call(name, [], (), dot, variables)
            case Pipeline():
                known = len(variables)
                value = self._pipeline(operand, dot, variables)
                if operand.assigns:
                    return value
                del variables[known:]
                return value
            case syntax.Nil():
                return None


_Variables = list[tuple[str, Value]]


def _assign(variables: _Variables, name: str, value: Value) -> None:
    at = next(at for at in range(len(variables) - 1, -1, -1) if variables[at][0] == name)
    variables[at] = name, value


def _given(value: Value) -> Value:
    """Return a value as functions receive it: nil for a missing one."""
    return None if value is MISSING else value


def _field(value: Value, name: str) -> Value:
    if isinstance(value, dict):
        return value.get(name, MISSING)
    if value is MISSING:
        return MISSING
    if isinstance(value, Opaque) and (found := value.member(name)) is not None:
        return found
    if value is None:
        raise TemplateError(f"nil pointer evaluating interface {{}}.{name}")
    raise TemplateError(f"can't evaluate field {name} in type {type_name(value)}")


def _items(value: Value, *, with_index: bool) -> Iterable[tuple[Value, Value]]:
    """Return what a loop iterates over: indexes and elements of a list, keys and values of a map, numbers
    below an int.
    """
    if isinstance(value, list):
        return enumerate(value)
    if isinstance(value, dict):
        return ((key, value[key]) for key in sorted(value))
    if isinstance(value, int) and not isinstance(value, bool):
        if with_index:
            raise TemplateError(f"can't use {value} to iterate over more than one variable")
        return ((None, each) for each in range(value))
    if value is MISSING or value is None:
        return ()
    raise TemplateError(f"range can't iterate over {text_of(value)}")


@lru_cache(maxsize=1024)
def _arity(function: Function) -> tuple[int, float]:
    """Return the least and the largest number of arguments of a function."""
    kinds = inspect.Parameter
    parameters = inspect.signature(function).parameters.values()
    places = [each for each in parameters if each.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    least = sum(each.default is kinds.empty for each in places)
    return least, float("inf") if any(each.kind is kinds.VAR_POSITIONAL for each in parameters) else len(places)
