"""Cases: rows of requests, about objects of the case's own, that are sent to both servers.

A kind of cases is a module with a function `cases(random) -> Case`, listed in `command.KINDS`. All randomness comes
from the given generator, so the seed and the number of a case reproduce it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from .server import Answer

NAME: Final = "@NAME@"
"""Stands for the name of the case's objects, in paths and bodies."""
NAMESPACE: Final = "@NS@"
NAMESPACE_OF_CASES: Final = "differential"
"""Placeholder for the namespace of the case."""
TOKEN: Final = "@TOKEN@"
"""Stands, in fields of heads, for the token that a server has issued last in the case."""
RECEIVED: Final = "RECEIVED"
"""The method of a step that asks for what the webhook of a server was asked about the case that its path names."""
SINCE: Final = "@SINCE@"
"""Stands, in paths, for the first resourceVersion that a server has answered in the case."""

UID: Final = "@UID@"
"""Stands, in paths, for the first uid that a server has answered in the case."""

_SHOWN: Final = 2000

Edit = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Step:
    """One request. `edit` makes its body of the object that the server has at that path, in place of `body`."""

    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"
    edit: Edit | None = None
    about: str = ""
    """Description of an edit, for the reader of a report."""
    attempts: int = 1
    """Attempts at an edit if another client has written in between."""
    accept: str = "application/json"
    until: Callable[[Any], bool] | None = None
    """The request is made again until its body is so, for some seconds."""
    pause: float = 0.0
    """Seconds after it, in which the server finds out about what was written."""
    fields: Mapping[str, str | tuple[str, ...] | None] = field(default_factory=dict)
    """More fields of the head; several values are several fields."""
    seen: Callable[[Answer], Answer] | None = None
    """Takes out of an answer what is not compared."""
    conditions: bool = False
    """True if the conditions of a definition are compared too; they are left out where their time of arrival varies."""

    @property
    def headers(self) -> Mapping[str, str | tuple[str, ...] | None]:
        fields: dict[str, str | tuple[str, ...] | None] = {"Accept": self.accept, **self.fields}
        if self.body is not None or self.edit is not None:
            fields["Content-Type"] = self.content_type
        return fields

    def __str__(self) -> str:
        shown = self.about if self.edit is not None else "" if self.body is None else _text(self.body)
        media = "" if self.content_type == "application/json" else f" [{self.content_type.partition('/')[2]}]"
        accepted = "" if self.accept == "application/json" else f" ({self.accept})"
        more = f" {dict(self.fields)}" if self.fields else ""
        return f"{self.method} {self.path}{media}{accepted}{more} {shown}".rstrip()[:_SHOWN]


def _text(body: Any) -> str:
    return repr(body) if isinstance(body, str) else json.dumps(body)


@dataclass(frozen=True)
class Case:
    """Some steps that are about the same object."""

    title: str
    steps: list[Step] = field(default_factory=list)
    cleanup: list[Step] = field(default_factory=list)
    """Requests that are always sent at the end; their answers are not compared."""
    is_slow: bool = False
    """True if the case takes too long to be played again with fewer steps."""


Generator = Callable[[Random], Case]


def named(value: Any, name: str, namespace: str) -> Any:
    """`value`, text or data, with the names put in."""
    text = value if isinstance(value, str) else json.dumps(value)
    text = text.replace(NAME, name).replace(NAMESPACE, namespace)
    return text if isinstance(value, str) else json.loads(text)
