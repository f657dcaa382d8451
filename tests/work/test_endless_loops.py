"""Endless work is a `WorkQueue` or `Periodic`. Every other endless loop has its reason below."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import steersman

SOURCE: Final = Path(steersman.__file__).parent

ALLOWED: Final = {
    "client/event_writer.py _write_all": "events are gathered for a moment and written together",
    "client/informer.py _watch_repeatedly": "starts an ended watch again, after a back-off",
    "controllers/garbage_collector/garbage_collector.py _apply_changes": "slices of one sequence of changes, in order",
    "controllers/monitors.py _track_served_resources": "discovers resources at changes, with a back-off after failures",
    "endpoints/proxy/stream_translator.py _keep_alive": "pings end with the connection, by what they raise",
    "inspector/cluster_view.py read": "changes for a page, until it goes",
    "inspector/rates.py read": "figures for a page, until it goes",
    "net/client/grpc.py _messages": "messages of a stream, until it ends by what is raised",
    "nodes/heartbeats.py run": "leases are spread evenly over the interval",
    "nodes/kubelets.py _evict_under_pressure": "rounds while nodes are under pressure, and none while they are not",
    "nodes/kubelets.py _follow_disturbances": "changes of the disturbances of nodes, one after the other",
    "nodes/kubelets.py _resume_returned_nodes": "nodes that return, one after the other",
    "nodes/server/port_forward.py messages": "messages of a stream, until it ends by what is raised",
    "scheduler/scheduler.py _decide_heavy_pods": "pods of the scheduling queue, for a part of the time",
    "scheduler/scheduler.py _decide_pods": "pods of the scheduling queue",
    "storage/etcd/watch.py _run": "a watch that has ended begins again, after a back-off",
}


def endless_loops(source: str) -> Iterator[str]:
    """Yield the name of each coroutine function with a `while True` that only an exception ends."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.AsyncFunctionDef) and any(map(_is_endless, ast.walk(function))):
            yield function.name


def _is_endless(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.While)
        and isinstance(node.test, ast.Constant)
        and bool(node.test.value)
        and not any(isinstance(each, (ast.Return, ast.Break)) for each in ast.walk(node))
    )


def test_endless_loops_are_found() -> None:
    source = """
async def endless():
    while True:
        await sleep(1)
async def ends():
    while True:
        if await over():
            return
"""
    assert list(endless_loops(source)) == ["endless"]


def test_each_endless_loop_has_a_reason() -> None:
    found = {
        f"{path.relative_to(SOURCE)} {name}"
        for path in SOURCE.rglob("*.py")
        if "while True" in (source := path.read_text()) and path.parent.name != "work"
        for name in endless_loops(source)
    }
    assert found == ALLOWED.keys()
