"""The chart of the comparison shows what its table says."""

from __future__ import annotations

import pytest

from tools.benchmark_chart import OUTPUT, PAGE, Comparison, amount, chart, comparisons, picture


def test_the_committed_picture_is_made_of_the_page() -> None:
    assert OUTPUT.read_text() == picture(PAGE.read_text()), "run python -m tools.benchmark_chart"


def test_rows_of_other_sections_are_not_read() -> None:
    table = "| row | a | b | ratio |\n|---|--:|--:|--:|\n| get | 2 us | 1 us | 1/2.0 |\n"
    page = f"# P\n\n## Against kube-apiserver\n\n{table}\n## Other\n\n| put | 2 us | 1 us | 1/2.0 |\n"
    assert {"get", "put"} & {*comparisons(page)} == {"get"}


def test_a_page_without_a_chosen_row_is_refused() -> None:
    with pytest.raises(KeyError):
        picture("# P\n\n## Against kube-apiserver\n\n| get | 2 us | 1 us | 1/2.0 |\n")


def test_bars_are_as_long_as_their_figures_and_the_longer_one_is_full() -> None:
    drawn = chart(
        [("A", Comparison("a", "1,000 us", "250 us", "1/4.0")), ("B", Comparison("b", "1 ms", "2 ms", "2.0"))]
    )
    assert [drawn.count(f'width="{width}"') for width in ("330.0", "82.5", "165.0")] == [2, 1, 1]


def test_thousands_have_commas() -> None:
    assert amount("1,340 us") == 1340
