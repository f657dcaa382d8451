"""A client of a library's server in this process, as its administrator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from steersman import Server
from steersman.net.in_process import InProcessClient
from steersman.testing import Answer

TOKEN = "admin-token"


def write_tokens(folder: Path) -> Path:
    """Write a token file: TOKEN for the administrator, and alice-token for alice, who has no permissions."""
    path = folder / "tokens.csv"
    path.touch(0o600)
    path.write_text(f"{TOKEN},admin,admin,system:masters\nalice-token,alice,alice,dev\n")
    return path


async def send(
    server: Server, method: str, target: str, body: Any = None, *, media: str = "application/json", token: str = TOKEN
) -> Answer:
    """Send a request and return the whole answer."""
    fields = [("accept", "application/json"), ("authorization", f"Bearer {token}"), ("content-type", media)]
    data = b"" if body is None else json.dumps(body).encode()
    response = await InProcessClient(server.handler).request(method, target, fields, data)
    return Answer(response.status, response.headers, await response.read())


def causes(answer: Answer) -> list[tuple[str, str]]:
    """Return the fields and error texts in the answer of a refused request."""
    assert answer.status == 422, answer.body
    return [(each["field"], each["message"]) for each in answer.json()["details"]["causes"]]
