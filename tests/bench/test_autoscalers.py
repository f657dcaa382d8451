"""Tests of the table of autoscalers, and of the programs that there are."""

from __future__ import annotations

import pytest

from bench.autoscalers.command import Step, table
from bench.autoscalers.programs import NoProgram, program


def test_the_table_has_a_line_for_each_step_and_side() -> None:
    step = Step("karpenter", "300 pods served", 20, 14.71, 3.24, 124.2, 1.49, 116.2)
    lines = list(table([("A", step), ("B", step)]))
    assert lines[2] == "| karpenter | 300 pods served | A | 20 | 14.7 | 3.2 | 124 | 1.5 | 116 |"
    assert len(lines) == 4
    assert {line.count("|") for line in lines} == {10}


def test_a_program_that_cannot_be_built_is_told() -> None:
    with pytest.raises(NoProgram, match="no nothing in "):
        program("nothing")
