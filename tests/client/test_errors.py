"""Answers that are errors, whatever stands in them."""

from __future__ import annotations

import pytest

from steersman.client.errors import error_of, ignoring, is_conflict, is_not_found
from steersman.machinery.errors.status import StatusError


@pytest.mark.parametrize(
    "body", [b"", b"no", b'{"kind":"\xff"}', b"[" * 100_000, b'{"kind":"Other"}', b"[]", b"\xff\xfe"]
)
def test_what_is_no_status_is_an_error_by_its_code(body: bytes) -> None:
    error = error_of(503, "7", body)
    assert (error.code, error.retry_after) == (503, 7)
    assert error.message


def test_a_status_says_what_it_says() -> None:
    error = error_of(404, "", b'{"kind":"Status","apiVersion":"v1","reason":"NotFound","message":"gone","code":404}')
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
