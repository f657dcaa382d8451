"""`steersman stress` with an operator and a test of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from steersman.stress.point import Kind, read_plan
from tests.stress.searches import found, stress

OPERATOR = f"exec {sys.executable} -m tests.stress.copying_operator"
TEST = f"exec {sys.executable} -m tests.stress.copying_test"


@pytest.mark.slow
def test_a_crash_between_two_writes_is_found_and_its_plan_fails_again_until_it_is_repaired(tmp_path: Path) -> None:
    careless = ("--operator", f"{OPERATOR} --careless", "--test", TEST)
    done = stress(*careless, "--kinds", "crash,conflict", "--patience", "3s", "-o", "json", folder=tmp_path)
    result = found(done)
    assert done.returncode == 1, done.stderr
    (group,) = result["findings"]
    assert group[0]["failure"] == "the end state differs: Secret default/a: data: missing, was <hidden>"
    (plan,) = (tmp_path / "plans").iterdir()
    (fault,) = read_plan(plan).faults
    assert (fault.kind, fault.at.verb, fault.at.resource) == (Kind.CRASH_AFTER, "create", "secrets")
    repaired = ("--operator", OPERATOR, "--test", TEST)
    done = stress(*repaired, "--plan", str(plan), "-o", "json", folder=tmp_path)
    assert done.returncode == 0, done.stdout
    assert found(done)["kinds"] == {"crash-after": {"tried": 1, "failed": 0, "missed": 0}}


@pytest.mark.slow
def test_servers_that_a_command_starts_from_the_assets_take_part(tmp_path: Path) -> None:
    suite = (sys.executable, "-m", "tests.stress.copying_suite")
    done = stress("--kinds", "crash,lost", "--client", "copier", "-o", "json", "--", *suite, folder=tmp_path)
    result = found(done)
    assert result["clients"] == ["copier", "suite"], done.stderr
    assert done.returncode == 1
    assert [each["plan"]["faults"][0]["at"]["verb"] for group in result["findings"] for each in group] == ["create"]
    assert result["kinds"].keys() == {"lost"}


def test_a_run_without_faults_that_fails_ends_the_search(tmp_path: Path) -> None:
    done = stress("--kinds", "lost", "--client", "a", "--", "sh", "-c", "echo no tests; exit 3", folder=tmp_path)
    assert done.returncode == 2
    assert done.stdout == "without any fault: the test failed with exit code 3\n   | no tests\n"
    assert not (tmp_path / "plans").exists()
