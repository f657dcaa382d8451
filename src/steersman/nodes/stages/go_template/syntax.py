"""Syntax tree of templates (text/template/parse `node.go`)."""

from __future__ import annotations

from dataclasses import dataclass

from steersman.nodes.stages.go_template.values import Value


@dataclass(frozen=True, slots=True)
class Dot:
    """`.`: the data of the template, or the value of the innermost `range` or `with`."""


@dataclass(frozen=True, slots=True)
class Nil:
    """`nil`."""


@dataclass(frozen=True, slots=True)
class Literal:
    """String, number or boolean constant."""

    value: Value


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name`; `$` is the data that the template was called with."""

    name: str


@dataclass(frozen=True, slots=True)
class Name:
    """Name of a function."""

    name: str


@dataclass(frozen=True, slots=True)
class Fields:
    """Chain of fields, such as `.a.b`, of a value."""

    of: Operand
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands, each of which gets the result of the one before as its last argument; `$x := ...` stores the result."""

    line: int
    commands: tuple[Command, ...]
    variables: tuple[str, ...] = ()
    assigns: bool = False
    """True for `=`, which sets existing variables."""


Operand = Dot | Nil | Literal | Variable | Name | Fields | Pipeline
Command = tuple[Operand, ...]
"""Function with its arguments, or a single operand."""


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text outside of actions."""

    text: str


@dataclass(frozen=True, slots=True)
class Action:
    """Pipeline whose result is printed, unless it is stored in a variable."""

    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class Branch:
    """`if`, `with` or `range`, with its `else`."""

    word: str
    pipeline: Pipeline
    body: Nodes
    otherwise: Nodes


@dataclass(frozen=True, slots=True)
class Call:
    """`template`: a call of another template; `block` defines that template, too."""

    line: int
    name: str
    pipeline: Pipeline | None


@dataclass(frozen=True, slots=True)
class Jump:
    """`break` or `continue`."""

    word: str


Node = Text | Action | Branch | Call | Jump
Nodes = tuple[Node, ...]
