"""Tests that URLs in messages and logs have no query and no password: `redacted_url`, or a caller of it, writes them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests import ROOT

SOURCES: Final = ROOT / "src" / "steersman"
NAMES: Final = frozenset({"url", "urls", "jwks_uri", "discovery_url", "server", "servers", "location", "target_url"})
"""Names of values that are URLs."""
_NAMED: Final = re.compile(rf"\b(?:{'|'.join(sorted(NAMES))})\b")
_LOGS: Final = frozenset({"debug", "info", "warning", "error", "exception", "log"})
_OPENING: Final = re.compile(rf"\braise\b|\.(?:{'|'.join(sorted(_LOGS))})\(")
_LONGEST: Final = 4000
"""Characters of a statement that raises or logs; only files in which that many may have a URL are parsed."""
HARMLESS: Final = {
    "cli/envtest/etcd.py": "addresses of its own flag, in a program without the rest of the package",
    "cli/envtest/claim.py": "a flag that names several servers",
    "cli/logs.py": "the server's own address, and what its callers have from Endpoint.shown",
    "endpoints/proxy/location_streamer.py": "told to the client whose request it is, as kube-apiserver tells it",
}
"""Files whose messages may have plain URLs, with the reason."""


def urls_in(node: ast.AST) -> Iterator[int]:
    """Yield the lines of values by these names that are not passed to `redacted_url`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "redacted_url":
        return
    if (isinstance(node, ast.Attribute) and node.attr in NAMES) or (isinstance(node, ast.Name) and node.id in NAMES):
        yield node.lineno
    for each in ast.iter_child_nodes(node):
        yield from urls_in(each)


def told(source: str) -> list[int]:
    """Return the lines in which an exception or a log has a plain URL."""
    found: list[int] = []
    if not any(_NAMED.search(source, each.end(), each.end() + _LONGEST) for each in _OPENING.finditer(source)):
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and node.exc is not None:
            for each in ast.walk(node.exc):
                if isinstance(each, ast.FormattedValue):
                    found += urls_in(each)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LOGS:
            for argument in node.args[1:]:
                found += urls_in(argument)
    return found


def test_no_message_has_a_url_as_it_is() -> None:
    found = {
        f"{name}:{line}"
        for path in SOURCES.rglob("*.py")
        if (name := path.relative_to(SOURCES).as_posix()) not in HARMLESS
        for line in told(path.read_text())
    }
    assert found == set()


@pytest.mark.parametrize("name", HARMLESS)
def test_files_that_are_let_pass_are_there(name: str) -> None:
    assert told(Path(SOURCES / name).read_text())


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('raise E(f"at {endpoint.url}")', [1]),
        ('raise E(f"at {quote(url)}")', [1]),
        ('raise E(f"at {quote(redacted_url(url))}")', []),
        ('logger.warning("%s", self.config.server)', [1]),
        ('logger.warning("%s", redacted_url(self.config.server))', []),
        ('raise E(f"at {endpoint.shown}")', []),
    ],
)
def test_what_is_looked_for(source: str, lines: list[int]) -> None:
    assert told(source) == lines
