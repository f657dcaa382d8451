"""History of requests and answers for the judge (judge/main.go documents the fields)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import orjson

OK: Final = "ok"
UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Operation:
    """One request to one object."""

    key: str
    client: int
    verb: str
    value: str
    expected: int
    outcome: str
    version: int
    began: int
    ended: int


@dataclass
class History:
    """All operations, in the order in which they were answered."""

    operations: list[Operation] = field(default_factory=list)
    _clients: int = 0

    def new_client(self) -> int:
        """A number for one who does one thing after another."""
        self._clients += 1
        return self._clients

    def write(self, path: Path) -> None:
        """One line each, as JSON."""
        with path.open("wb") as file:
            for each in self.operations:
                file.write(orjson.dumps(asdict(each), option=orjson.OPT_APPEND_NEWLINE))

    def acknowledged(self) -> dict[int, Operation]:
        """The writes whose version is known, by that."""
        return {
            each.version: each
            for each in self.operations
            if each.outcome == OK and each.version and each.verb in ("create", "update")
        }

    def values(self) -> set[tuple[str, str]]:
        """Keys and what was written to them, or may have been."""
        return {
            (each.key, each.value)
            for each in self.operations
            if each.verb in ("create", "update") and each.outcome in (OK, UNKNOWN)
        }
