"""Warning headers: each text once, quoted, and limited (k8s.io/apiserver `filters/warning.go`)."""

from __future__ import annotations

import pytest

from steersman.endpoints.filters.warnings import warning_values


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        ([], []),
        (["a"], ['299 - "a"']),
        (["a", "b", "a"], ['299 - "a"', '299 - "b"']),
        (['say "hi" \\o/'], ['299 - "say \\"hi\\" \\\\o/"']),
        (["grüße €"], ['299 - "grüße €"']),
        (["two\nlines", "one", "\x1b[31m", "del\x7f"], ['299 - "one"']),
        (["", "a"], ['299 - "a"']),
    ],
)
def test_texts_become_values(texts: list[str], values: list[str]) -> None:
    assert warning_values(texts) == values


def test_long_texts_are_whole_while_all_of_them_fit() -> None:
    texts = ["a" * 2048, "b" * 2048]
    assert warning_values(texts) == [f'299 - "{text}"' for text in texts]


def test_once_they_are_too_long_in_all_each_is_cut() -> None:
    texts = ["a" * 3000, "short", "b" * 3000, "c" * 3000]
    cut = ["a" * 256, "short", "b" * 256, "c" * 256]
    assert warning_values(texts) == [f'299 - "{text}"' for text in cut]


def test_however_many_there_are_the_headers_stay_bounded() -> None:
    values = warning_values([f"{number:04}" + "x" * 600 for number in range(1000)])
    assert sum(map(len, values)) < 4096 + 256 + 20 * len(values)
    assert values[0].startswith('299 - "0000x')
