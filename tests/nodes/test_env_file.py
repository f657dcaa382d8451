"""Files of variables."""

from __future__ import annotations

import pytest

from steersman.nodes.env_file import EnvFile, EnvFileError
from tests.counted_work import calls


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("K='v'", "v"),
        ("  K='v' # why\n", "v"),
        ("# K='no'\n\nK='v'\n", "v"),
        ("A='1'\nK='v'\n", "v"),
        ("K='a\nb'\n", "a\nb"),
        ("K='' \n", ""),
        ("K= 'v'\n", ""),
        ("A= 'x y\nK='v'", "v"),
        ("A='1'\n", ""),
        ("", ""),
        ("K='v'\nnonsense", "v"),
        ("K='v'\r\n", "v"),
        ("K='$x \\n'", "$x \\n"),
        ("K='1'\nK='2'", "1"),
    ],
)
def test_values_are_in_single_quotes(text: str, value: str) -> None:
    assert EnvFile(text).value("K") == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("A", "at line 1: missing '='"),
        ("\n='v'", "at line 2: empty variable name"),
        ("A ='v'", "at line 1: whitespace before '=' is not allowed"),
        ("A=v", "at line 1: value must be enclosed in single quotes"),
        ("A=", "at line 1: value must be enclosed"),
        ("A='v' x", "at line 1: unexpected content after closing quote"),
        ("\nA='v\nw\n", "starting at line 2: unclosed single quote"),
    ],
)
def test_everything_else_is_refused(text: str, why: str) -> None:
    with pytest.raises(EnvFileError, match=f"^invalid environment variable format {why}"):
        EnvFile(text).value("K")


@pytest.mark.parametrize("seed", ["A='\n'\n", "\n", "#\n", "A=' \n"])
def test_reading_takes_time_by_length(seed: str) -> None:
    def read(times: int) -> int:
        def work() -> None:
            try:
                EnvFile(seed * times).value("K")
            except EnvFileError:
                return

        return calls(work)

    assert read(4000) < 5 * max(read(1000), 100)
