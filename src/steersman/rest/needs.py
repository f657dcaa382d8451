"""The type of the services that a resource uses, e.g. `registry.services.Services`.

`Resource[T, S]` is bound to an `S` once (`rest.bound`), when it is served, and mypy checks that it is given one. A
resource that uses no services fits every server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVarTuple, Unpack

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    S = TypeVar("S", contravariant=True, default=Any)
    """The type of the services."""
else:
    S = Unpack[TypeVarTuple("S")]  # `Resource[T]` is enough; until Python 3.13 no type variable has a default
