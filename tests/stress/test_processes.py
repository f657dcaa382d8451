"""Programs of a run: their ends, those of the processes that they begin, and the size of their output."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from steersman.stress.output_files import MOST_OUTPUT, MOST_SHOWN, OutputFiles, shorten
from steersman.stress.process_family import family_of
from steersman.stress.processes import Operator, Program
from steersman.testing.waiting import until_true

NUMBERS = "echo $$; sleep 300 & echo $!; setsid sleep 300 & echo $!; exec sleep 300"


def numbers_in(file: Path, count: int) -> list[int]:
    found = [int(each) for each in file.read_text().split()] if file.exists() else []
    return found if len(found) == count else []


def runs(pid: int) -> bool:
    try:
        return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc here")
async def test_processes_that_a_program_has_begun_end_with_it_also_in_sessions_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "output"
    program = Program(NUMBERS, os.environ, file)
    await program.start()
    await until_true(lambda: numbers_in(file, 3), 30)
    numbers = numbers_in(file, 3)
    await until_true(lambda: family_of(numbers[0]) >= set(numbers), 30)
    program.kill()
    assert await program.wait() == -9
    await until_true(lambda: not any(map(runs, numbers)), 30)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc here")
async def test_an_operator_that_ignores_sigterm_ends_with_the_run_and_begins_again_after_a_crash(
    tmp_path: Path,
) -> None:
    file = tmp_path / "output"
    operator = Operator("trap '' TERM; echo $$; while :; do sleep 300; done", os.environ, file)
    await operator.start()
    await until_true(lambda: numbers_in(file, 1), 30)
    operator.crash()
    await until_true(lambda: numbers_in(file, 2), 30)
    assert (operator.starts, operator.exit_codes) == (2, [])
    await operator.end()
    assert not any(map(runs, numbers_in(file, 2)))


async def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"^no-program: No such file or directory$"):
        await Program(["no-program"], os.environ, tmp_path / "output").start()


async def test_an_output_stays_small_while_a_program_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "output"
    file.write_text("of an earlier run")
    part = "sys.stdout.write('x' * (1 << 20)); sys.stdout.flush()"
    code = f"import sys\nfor _ in range(40): {part}\nprint('end')"
    async with OutputFiles([file]):
        program = Program([sys.executable, "-c", code], os.environ, file)
        await program.start()
        assert await program.wait() == 0
        await until_true(lambda: file.stat().st_size <= MOST_OUTPUT, 30)
        assert program.last_output().endswith("xend")


def test_the_end_of_an_output_is_kept_for_those_who_append(tmp_path: Path) -> None:
    file = tmp_path / "output"
    with file.open("ab") as program:
        program.write(b"x" * MOST_OUTPUT + b"almost the end, ")
        program.flush()
        shorten(file)
        program.write(b"the end")
    assert file.stat().st_size == MOST_SHOWN + len(b"the end")
    assert file.read_bytes().endswith(b"almost the end, the end")
