"""The base of label and field selectors: requirements that must all be met."""

from __future__ import annotations

from typing import Generic, TypeVar

R = TypeVar("R")


class Conjunction(Generic[R]):
    """A conjunction of requirements. `selectable` is False only for the selector that matches nothing."""

    __slots__ = ("requirements", "selectable")

    requirements: tuple[R, ...]
    selectable: bool

    @property
    def empty(self) -> bool:
        """Return True if the selector matches every object."""
        return self.selectable and not self.requirements

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"Selector({str(self)!r})" if self.selectable else "NOTHING"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return (self.requirements, self.selectable) == (other.requirements, other.selectable)

    def __hash__(self) -> int:
        return hash((self.requirements, self.selectable))
