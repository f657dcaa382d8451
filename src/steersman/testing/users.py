"""Somebody whom a server for tests knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class User:
    """Somebody whom the server knows by a bearer token; without a token of its own, by one that is made at random."""

    name: str
    groups: tuple[str, ...] = ()
    token: str = ""


ADMIN: Final = User("admin", ("system:masters",))
"""May do everything."""
