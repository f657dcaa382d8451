"""Somebody whom a server for tests knows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from steersman.machinery.suggestions import known_names_hint


@dataclass(frozen=True, slots=True)
class User:
    """Somebody whom the server knows by a bearer token; without a token of its own, by one that is made at random."""

    name: str
    groups: tuple[str, ...] = ()
    token: str = ""


ADMIN: Final = User("admin", ("system:masters",))
"""May do everything."""


class UnknownUser(KeyError):
    """A name that no user of an environment has; the text says which there are."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(name)
        self._known = sorted(known)

    def __str__(self) -> str:
        name = self.args[0]
        return (
            f"there is no user {name!r}{known_names_hint(name, self._known)}; User({name!r}, groups=(...)) in the place of "
            "the name is anybody"
        )
