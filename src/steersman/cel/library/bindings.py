"""The macro `cel.bind(name, value, expression)`, which names a value that is used several times (cel-go
`ext.Bindings`).
"""

from __future__ import annotations

from typing import Final

from steersman.cel.ast import Expr, Ident
from steersman.cel.environment import Library
from steersman.cel.macros import bind, variable_name


def _bind(offset: int, target: Expr | None, args: list[Expr]) -> Expr | None:
    if not (isinstance(target, Ident) and target.name == "cel"):
        return None
    name = variable_name(args[0], "cel.bind() variable names must be simple identifiers")
    return bind(offset, name, args[1], args[2])


BINDINGS: Final = Library(macros={("bind", 3, True): _bind})
