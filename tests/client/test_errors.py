"""Tests of errors made from any kind of error response."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import steersman
from steersman.client.errors import error_from_response, ignoring, is_conflict, is_not_found
from steersman.machinery.errors.status import StatusError

SOURCE: Final = Path(steersman.__file__).parent


@pytest.mark.parametrize(
    "body", [b"", b"no", b'{"kind":"\xff"}', b"[" * 100_000, b'{"kind":"Other"}', b"[]", b"\xff\xfe"]
)
def test_what_is_no_status_is_an_error_by_its_code(body: bytes) -> None:
    error = error_from_response(503, "7", body)
    assert (error.code, error.retry_after) == (503, 7)
    assert error.message


def test_a_status_says_what_it_says() -> None:
    error = error_from_response(
        404, "", b'{"kind":"Status","apiVersion":"v1","reason":"NotFound","message":"gone","code":404}'
    )
    assert (error.code, error.reason, error.message) == (404, "NotFound", "gone")


@pytest.mark.parametrize(("reason", "ends"), [("NotFound", True), ("Conflict", True), ("Forbidden", False)])
def test_only_expected_errors_are_ignored(reason: str, *, ends: bool) -> None:
    went_on = False
    with pytest.raises(StatusError) if not ends else ignoring():
        with ignoring(is_not_found, is_conflict):
            raise StatusError(404, reason, "")
        went_on = True
    assert went_on is ends
    with pytest.raises(ValueError, match="other"), ignoring(is_not_found):
        raise ValueError("other")


def handlers_by_hand(source: str) -> Iterator[int]:
    """Yield the lines of `except StatusError` handlers that only re-raise unless a predicate of this package holds."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Try) or len(node.handlers) > 1 or node.orelse or node.finalbody:
            continue
        handler = node.handlers[0]
        if handler.type is None or ast.unparse(handler.type) != "StatusError" or len(handler.body) > 1:
            continue
        body = handler.body[0]
        if not isinstance(body, ast.If) or ast.unparse(body.body[0]) != "raise" or body.orelse:
            continue
        test = body.test.operand if isinstance(body.test, ast.UnaryOp) else body.test
        calls = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]
        if all(isinstance(each, ast.Call) and ast.unparse(each.func).startswith("is_") for each in calls):
            yield handler.lineno


def test_expected_errors_are_ignored_in_one_way() -> None:
    by_hand = "try:\n    f()\nexcept StatusError as error:\n    if not is_not_found(error):\n        raise\n"
    assert list(handlers_by_hand(by_hand)) == [3]
    assert list(handlers_by_hand(by_hand + "    g()\n")) == []
    found = {
        str(path.relative_to(SOURCE)): lines
        for path in SOURCE.rglob("*.py")
        if "except StatusError" in (source := path.read_text()) and (lines := list(handlers_by_hand(source)))
    }
    assert found == {}
