"""Answers that are errors, whatever stands in them."""

from __future__ import annotations

import pytest

from steersman.client.errors import error_of


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
