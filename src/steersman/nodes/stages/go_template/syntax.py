"""What a template is made of, read (text/template/parse `node.go`)."""

from __future__ import annotations

from dataclasses import dataclass

from steersman.nodes.stages.go_template.values import Value


@dataclass(frozen=True, slots=True)
class Dot:
    """`.`: what the template, or the innermost `range` and `with`, is about."""


@dataclass(frozen=True, slots=True)
class Nil:
    """`nil`."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A text, number or truth value."""

    value: Value


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name`; `$` is what the template was given."""

    name: str


@dataclass(frozen=True, slots=True)
class Name:
    """A function."""

    name: str


@dataclass(frozen=True, slots=True)
class Fields:
    """`.a.b` of something."""

    of: Operand
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands, each of which takes what the one before gives as its last argument; `$x := ...` keeps the result."""

    line: int
    commands: tuple[Command, ...]
    variables: tuple[str, ...] = ()
    assigns: bool = False
    """Whether the variables are there already."""


Operand = Dot | Nil | Literal | Variable | Name | Fields | Pipeline
Command = tuple[Operand, ...]
"""A function and its arguments, or one operand."""


@dataclass(frozen=True, slots=True)
class Text:
    """What stands as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Action:
    """A pipeline whose result is printed, unless a variable keeps it."""

    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class Branch:
    """`if`, `with` or `range`, and its `else`."""

    word: str
    pipeline: Pipeline
    body: Nodes
    otherwise: Nodes


@dataclass(frozen=True, slots=True)
class Call:
    """`template`: another template at this place; `block` defines it too."""

    line: int
    name: str
    pipeline: Pipeline | None


@dataclass(frozen=True, slots=True)
class Jump:
    """`break` or `continue`."""

    word: str


Node = Text | Action | Branch | Call | Jump
Nodes = tuple[Node, ...]
