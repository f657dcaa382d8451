"""The command of a running container, followed as far as it has come: what it does to files is done when it is due."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from steersman.nodes.rehearsal import Printed
from steersman.nodes.shell.effects import NoSpace
from steersman.nodes.volume_store import VolumeKey


class Course:
    """A rehearsal (`rehearsal.rehearsed`) that began at a moment, in seconds since 1970, on volumes (`keys`)."""

    __slots__ = ("_at", "_rest", "began", "exit_code", "keys", "message", "next")

    def __init__(
        self, rest: Generator[Printed | float, None, int | None], began: float, keys: Sequence[VolumeKey]
    ) -> None:  # fmt: skip
        self._rest = rest
        self._at = began
        self.began = began
        self.keys = tuple(keys)
        self.next: float | None = began
        """When it goes on; None at its end."""
        self.exit_code: int | None = None
        """Its exit code at its end; None where it is not known what follows."""

    @property
    def ended(self) -> float | None:
        """When it has ended by itself; None if it has not, or if that is not known."""
        return self._at if self.next is None and self.exit_code is not None else None

    def turn(self, until: float) -> bool:
        """Go on with what is due next, unless that is after `until`. Return False if nothing is."""
        if self.next is None or self.next > until:
            return False
        self._at = self.next
        try:
            step = next(self._rest)
        except StopIteration as end:
            self.exit_code = end.value
            self.next = None
        except NoSpace:
            self.next = None
        else:
            self.next = step if isinstance(step, float) else step.at
        return True

    def run(self, until: float, most_turns: int) -> None:
        """Go on until a moment, at most by so many turns."""
        for _ in range(most_turns):
            if not self.turn(until):
                return
