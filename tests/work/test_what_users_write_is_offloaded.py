"""Evaluation of users' expressions reports callers that run on the event loop without `offload`.

In all other tests such a report is an error (`code_on_the_loop_fails` in tests/conftest.py). Code that evaluates rules of
JWT authenticators, match conditions, device selectors, stages, conversions, columns, patches or hooks of the library
without offloading therefore fails the first test that reaches it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import pytest

from steersman.api.core.v1 import ConfigMap
from steersman.cel.expression import compile_expression
from steersman.cel.library.kubernetes import base_environment
from steersman.cel.library.kubernetes_costs import kubernetes_costs
from steersman.library.user_code import computing
from steersman.machinery.codec.go_types import struct_of
from steersman.machinery.json_path import PrinterColumn
from steersman.machinery.patch import json_patch, merge_patch, strategic_merge_patch
from steersman.machinery.selectors import labels
from steersman.nodes.stages.expressions import Expressions
from steersman.nodes.stages.go_template.template import Template
from steersman.schema import patterns
from steersman.work.offloading import missed_offloads, offload

_MAPS: Final = struct_of(ConfigMap)
_ENVIRONMENT: Final = base_environment()
_EXPRESSION: Final = compile_expression("1 + 1", _ENVIRONMENT)
_COLUMN: Final = PrinterColumn("integer", ".a")
_PROGRAM: Final = _EXPRESSION.program(kubernetes_costs)


def hook() -> None:
    with computing("a hook"):
        pass


def jq() -> Any:
    expressions = Expressions()
    expressions.add(".a")
    return expressions.evaluate('{"a": 1}')


EVALUATORS: Final[dict[str, Callable[[], Any]]] = {
    "an expression is evaluated": lambda: _PROGRAM.evaluate({}, 100),
    "an expression is evaluated, to a value or an error": lambda: _PROGRAM.outcome({}, 100),
    "a pattern is searched for": lambda: patterns.matches("a+", "aaa"),
    "a JSON Patch is applied": lambda: json_patch.apply({}, [{"op": "add", "path": "/a", "value": 1}]),
    "a merge patch is applied": lambda: merge_patch.apply({}, {"a": 1}),
    "a strategic merge patch is applied": lambda: strategic_merge_patch.apply({}, {"data": {"a": "b"}}, _MAPS),
    "a column is read": lambda: _COLUMN.cell({"a": 1}),
    "jq is run": jq,
    "a template is rendered": lambda: Template("{{ .a }}", {}).render({"a": "b"}),
    "a selector of very many requirements is made": lambda: labels.selector_from_set(
        {f"key-{number}": "value" for number in range(2_000)}
    ),
    "code of a library's user is called": hook,
}


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the reports about missed offloads during a test."""
    reports: list[str] = []
    monkeypatch.setattr(missed_offloads, "report", lambda: reports.append("missed_offloads"))
    return reports


@pytest.mark.parametrize("name", EVALUATORS)
async def test_who_forgets_to_offload_is_found_however_little_is_evaluated(name: str, found: list[str]) -> None:
    await offload(EVALUATORS[name])  # compiled expressions are cached for the next call
    await asyncio.to_thread(EVALUATORS[name])
    assert found == []
    EVALUATORS[name]()
    assert found


@pytest.mark.parametrize("name", EVALUATORS)
def test_code_without_an_event_loop_may_do_so(name: str, found: list[str]) -> None:
    EVALUATORS[name]()
    assert found == []
