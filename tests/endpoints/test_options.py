"""Invalid request options are refused at a cost proportional to their length."""

from __future__ import annotations

from itertools import islice

import pytest

from steersman.api.meta.v1 import CreateOptions
from steersman.endpoints import options
from steersman.endpoints.query import parse_query
from steersman.machinery.errors import field
from steersman.machinery.errors.field import Path
from steersman.machinery.errors.status import StatusError


def test_errors_are_looked_for_as_long_as_they_are_told() -> None:
    errors = islice(iter(lambda: field.invalid(Path("a"), "x" * 10_000, "wrong"), None), 10_000)
    with pytest.raises(StatusError) as caught:
        options.refuse("CreateOptions", errors)
    assert caught.value.message.startswith('CreateOptions.meta.k8s.io "" is invalid: a: Invalid value: "xxx')
    assert next(errors, None) is not None


def test_a_field_manager_is_quoted_once_for_all_that_is_wrong_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    quoted: list[str] = []
    quote = field.quote

    def counted(text: str) -> str:
        quoted.append(text)
        return quote(text)

    monkeypatch.setattr(field, "quote", counted)
    with pytest.raises(StatusError) as caught:
        options.write_options(CreateOptions, parse_query("fieldManager=a%00%07a"))
    assert caught.value.message == (
        'CreateOptions.meta.k8s.io "" is invalid: [fieldManager: Invalid value: "a\\x00\\aa": invalid character U+0000 '
        '(at position 1), fieldManager: Invalid value: "a\\x00\\aa": invalid character U+0007 (at position 2)]'
    )
    assert quoted.count("a\x00\x07a") == 1
