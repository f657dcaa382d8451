"""A client of a library's server in this process, for its administrator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from steersman import Server
from steersman.net.in_process import InProcessClient
from steersman.testing import Answer

TOKEN = "admin-token"


def write_tokens(folder: Path) -> Path:
    """A file in which the administrator has TOKEN, and alice, who may do nothing, alice-token."""
    path = folder / "tokens.csv"
    path.touch(0o600)
    path.write_text(f"{TOKEN},admin,admin,system:masters\nalice-token,alice,alice,dev\n")
    return path


async def ask(
    server: Server, method: str, target: str, body: Any = None, *, media: str = "application/json", token: str = TOKEN
) -> Answer:
    """The whole answer."""
    fields = [("accept", "application/json"), ("authorization", f"Bearer {token}"), ("content-type", media)]
    data = b"" if body is None else json.dumps(body).encode()
    response = await InProcessClient(server.handler).request(method, target, fields, data)
    return Answer(response.status, response.headers, await response.read())


def causes(answer: Answer) -> list[tuple[str, str]]:
    """What is wrong with which field, of an answer that says so."""
    assert answer.status == 422, answer.body
    return [(each["field"], each["message"]) for each in answer.json()["details"]["causes"]]
