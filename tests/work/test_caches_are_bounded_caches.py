"""Caches are those of `work.bounded_cache`. Every other dictionary in order of use has its reason here."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

import steersman

SOURCE: Final = Path(steersman.__file__).parent

ALLOWED: Final[dict[str, int]] = {
    # exactly as many as the configuration says, as upstream
    "admission_plugins/event_rate_limit.py": 1,
    # dropped entries are closed, or dropped elsewhere too
    "admission_plugins/webhook/clients.py": 1,
    "nodes/containers.py": 1,
    "scheduler/fit/rankings.py": 1,
    "storage/cache/cacher.py": 1,
    "storage/encryption/metrics.py": 2,
    "testing/pool.py": 1,
    # sums that are updated while they exist, and the images of a node, which are its state
    "controllers/resource_quota/sums.py": 1,
    "nodes/simulated_node.py": 1,
    # the first entry is dropped first, whichever was used
    "controlplane/recent_reads.py": 1,
    "storage/cache/past_states.py": 1,
    # the latest entry is kept whatever its size
    "openapi/cache.py": 1,
    # used by worker threads too
    "kinds/custom.py": 1,
    "scheduler/demand/requests.py": 1,
    "storage/encryption/kms/envelope.py": 1,
    # not caches: reset streams, and connections
    "net/http2/connection.py": 1,
    "net/client/transport.py": 1,
}
_ORDERED: Final = "OrderedDict"


def _drops_the_first(node: ast.AST) -> bool:
    """Return True for `del x[next(iter(x))]` and `x.pop(next(iter(x)))`, also with a method `_drop`."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Del):
        key: ast.expr = node.slice
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("pop", "_drop")
        and node.args
    ):
        key = node.args[0]
    else:
        return False
    return ast.unparse(key).startswith("next(iter(")


def caches_by_hand(source: str) -> int:
    """Return how many dictionaries of a module keep the order of use, or drop their first entry."""
    nodes = list(ast.walk(ast.parse(source)))
    made = sum(isinstance(node, ast.Call) and ast.unparse(node.func) == _ORDERED for node in nodes)
    derived = sum(
        isinstance(node, ast.ClassDef) and any(ast.unparse(base).startswith(_ORDERED) for base in node.bases)
        for node in nodes
    )
    return made + derived + sum(map(_drops_the_first, nodes))


def test_caches_are_those_of_the_one_mechanism() -> None:
    counts: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        source = path.read_text()
        if (_ORDERED in source or "next(iter(" in source) and (count := caches_by_hand(source)):
            counts[str(path.relative_to(SOURCE))] = count
    assert dict(counts) == ALLOWED


@pytest.mark.parametrize(
    "source",
    [
        "known = OrderedDict()",
        "class Known(OrderedDict[int, int]): ...",
        "del a.x[next(iter(a.x))]",
        "x.pop(next(iter(x)))",
    ],
)
def test_it_is_found(source: str) -> None:
    assert caches_by_hand(source) == 1
