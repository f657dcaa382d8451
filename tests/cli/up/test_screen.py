"""Lines redrawn in place on a terminal."""

from __future__ import annotations

import io
import re

import pytest

from steersman.cli.up.screen import Screen, StreamAbove, can_redraw, size_of


class Terminal:
    """A terminal with a number of columns that wraps longer lines."""

    def __init__(self, columns: int = 40, rows: int = 10) -> None:
        self.size = (columns, rows)
        self.out = io.StringIO()
        self.screen = Screen(self.out, lambda _: self.size)

    @property
    def lines(self) -> list[str]:
        """Return the lines on the terminal, including those scrolled away."""
        shown: list[str] = [""]
        row = 0
        for up, clear, text in re.findall(r"\x1b\[(\d+)F|(\x1b\[J)|([^\x1b]+)", self.out.getvalue()):
            if up:
                row = max(row - int(up), 0)
            elif clear:
                shown = [*shown[:row], ""]
            else:
                for line in text[:-1].split("\n"):
                    shown[row : row + 1] = [line, ""]
                    row += 1
        return shown[:-1]


def test_lines_take_the_place_of_those_before() -> None:
    terminal = Terminal()
    terminal.screen.show(["a", "b", "c"])
    terminal.screen.show(["d", "e"])
    assert terminal.lines == ["d", "e"]


def test_what_is_written_above_stays() -> None:
    terminal = Terminal()
    terminal.screen.show(["a", "b"])
    terminal.screen.above("a warning")
    terminal.screen.show(["c", "d"])
    assert terminal.lines == ["a warning", "c", "d"]


def test_logs_are_written_above_in_whole_lines() -> None:
    terminal = Terminal()
    terminal.screen.show(["view"])
    stream = StreamAbove(terminal.screen)
    stream.write("a war")
    assert terminal.lines == ["view"]
    stream.write("ning\n")
    assert terminal.lines == ["a warning", "view"]


def test_lines_are_cut_at_the_width_and_height() -> None:
    terminal = Terminal(10, 3)
    terminal.screen.show(["0123456789abc", "b", "c", "d"])
    assert terminal.lines == ["012345678", "b"]


def test_lines_that_a_narrower_terminal_has_broken_are_all_replaced() -> None:
    terminal = Terminal(40)
    terminal.screen.show(["x" * 39, "y"])
    terminal.size = (20, 10)
    terminal.screen.redraw()
    assert "\x1b[3F" in terminal.out.getvalue()


def test_the_size_of_what_is_no_terminal_is_the_usual_one() -> None:
    assert size_of(io.StringIO()) == (80, 24)


@pytest.mark.parametrize(
    ("environment", "redraws"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "dumb"}, False),
        ({}, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
    ],
)
def test_only_terminals_that_can_and_may_are_drawn_on(
    environment: dict[str, str], redraws: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert can_redraw(Tty()) is redraws
    assert not can_redraw(io.StringIO())
