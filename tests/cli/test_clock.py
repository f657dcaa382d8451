"""`steersman clock`."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from steersman.cli.clock import line_of
from steersman.cli.main import main
from steersman.cluster.clock import ClockState

NOW = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("state", "line"),
    [
        (ClockState(NOW, 0.0, 1, 0.0), f"{NOW}, 0s ahead, speed 1"),
        (ClockState(NOW, 7199.9, 60, 0.0), f"{NOW}, 2h ahead, speed 60"),
        (ClockState(NOW, 180000.0, 1, 0.0), f"{NOW}, 50h ahead, speed 1"),
        (ClockState(NOW, 86399.0 + 61.0, 1, 0.0), f"{NOW}, 24h1m ahead, speed 1"),
        (ClockState(NOW, -30.2, 0, 0.0), f"{NOW}, 30s behind, stopped"),
        (ClockState(NOW, 60.0, 1, 3600.0), f"{NOW}, 1m ahead, speed 1, 1h of a leap to come"),
    ],
)
def test_a_line_says_the_time_and_how_it_passes(state: ClockState, line: str) -> None:
    assert line_of(state) == line


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("command", [["pause"], ["advance", "2h"], ["speed", "60"]])
def test_options_of_the_cluster_stand_before_or_behind_a_subcommand(
    tmp_path_factory: pytest.TempPathFactory, command: list[str], *, before: bool
) -> None:
    folder = str(tmp_path_factory.mktemp("nothing"))
    option = ["--data-dir", folder]
    found = CliRunner().invoke(main, ["clock", *option, *command] if before else ["clock", *command, *option])
    assert found.exit_code == 1
    assert f"no cluster or server is running in {folder}" in found.output


def test_days_are_written_in_hours() -> None:
    found = CliRunner().invoke(main, ["clock", "advance", "2d"])
    assert (found.exit_code, "write 90s, 30m or 24h" in found.output) == (1, True)


@pytest.mark.parametrize("wrong", [["speed", "-1"], ["speed", "nan"], ["speed", "fast"], ["advance"], ["pause", "1"]])
def test_wrong_arguments_are_refused(wrong: list[str]) -> None:
    assert CliRunner().invoke(main, ["clock", *wrong]).exit_code == 1
