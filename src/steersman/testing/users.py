"""Users of a server for tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from steersman.machinery.suggestions import known_names_hint


@dataclass(frozen=True, slots=True)
class User:
    """User that the server authenticates by a bearer token: the given one, or a random one."""

    name: str
    groups: tuple[str, ...] = ()
    token: str = ""


ADMIN: Final = User("admin", ("system:masters",))
"""User who may do everything."""


class UnknownUser(KeyError):
    """No user of the environment has this name. The text lists the known names."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(name)
        self._known = sorted(known)

    def __str__(self) -> str:
        name = self.args[0]
        return (
            f"there is no user {name!r}{known_names_hint(name, self._known)}; User({name!r}, groups=(...)) in the place of "
            "the name is anybody"
        )
