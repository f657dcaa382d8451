"""Pauses that grow are those of `work.backoff`, and rates those of `work.token_bucket`. Other ways have reasons here."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

import steersman

SOURCE: Final = Path(steersman.__file__).parent

ALLOWED: Final[dict[str, int]] = {
    # upstream's Retry-After, which also falls again
    "flowcontrol/retry_after.py": 1,
    # sizes that grow, not pauses
    "controllers/workloads/pod_control.py": 1,
    # the mechanism
    "work/token_bucket.py": 1,
    # credit in seconds of the event loop, which programs overdraw
    "nodes/shares.py": 1,
}


def _is_min_of(node: ast.expr, operator: type[ast.operator]) -> bool:
    """Return True for `min(..., a OPERATOR b, ...)`."""
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) == "min"
        and any(isinstance(each, ast.BinOp) and isinstance(each.op, operator) for each in node.args)
    )


def _doubles(node: ast.AST) -> bool:
    """Return True for `x = min(2 * x, ...)`, also of several values at once."""
    if not isinstance(node, ast.Assign):
        return False
    values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    targets = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else node.targets
    return any(
        _is_min_of(value, ast.Mult) and ast.unparse(target) in ast.unparse(value) and "2" in ast.unparse(value)
        for target, value in zip(targets, values, strict=False)
    )


def _fills(node: ast.AST) -> bool:
    """Return True for `min(burst, tokens + seconds * rate)`."""
    if not isinstance(node, ast.Call) or not _is_min_of(node, ast.Add):
        return False
    return any(
        isinstance(each, ast.BinOp)
        and isinstance(each.right, ast.BinOp)
        and isinstance(each.right.op, ast.Mult)
        and "-" in ast.unparse(each.right)
        for each in node.args
    )


def _reads_table(node: ast.AST) -> bool:
    """Return True for `sleep(DELAYS[min(tries, len(DELAYS) - 1)])`."""
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in ("sleep", "call_later")
        and any(isinstance(each, ast.Subscript) and _is_min_of(each.slice, ast.Sub) for each in node.args)
    )


def by_hand(source: str) -> int:
    """Return how many pauses that grow, and rates, a module has of its own."""
    return sum(_doubles(node) or _fills(node) or _reads_table(node) for node in ast.walk(ast.parse(source)))


def test_pauses_and_rates_are_those_of_the_mechanisms() -> None:
    counts: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        source = path.read_text()
        if "min(" in source and (count := by_hand(source)):
            counts[str(path.relative_to(SOURCE))] = count
    assert dict(counts) == ALLOWED


@pytest.mark.parametrize(
    "source",
    [
        "self.retry = min(2 * self.retry, MOST)",
        "await asyncio.sleep(DELAYS[min(tries, len(DELAYS) - 1)])",
        "self.tokens = min(BURST, self.tokens + (now - self.at) * RATE)",
    ],
)
def test_it_is_found(source: str) -> None:
    assert by_hand(f"async def f():\n    {source}") == 1
