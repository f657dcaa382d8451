"""`steersman report`: counts while a command runs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from steersman.cli import main
from steersman.testing import ThreadedEnvironment

PROGRAM = """
import json, ssl, sys, urllib.request
url, token, ca = sys.argv[1:]
for _ in range(2):
    request = urllib.request.Request(url + "/api/v1/namespaces/default/configmaps")
    request.add_header("Authorization", "Bearer " + token)
    request.add_header("User-Agent", "operator/v1 (linux)")
    urllib.request.urlopen(request, context=ssl.create_default_context(cafile=ca)).read()
sys.exit(3)
"""


@pytest.fixture(scope="module")
def environment() -> Iterator[ThreadedEnvironment]:
    with ThreadedEnvironment() as running:
        yield running


def run(environment: ThreadedEnvironment, *options: str) -> Result:
    program = [sys.executable, "-c", PROGRAM, environment.url, environment.token(), str(environment.environment.ca)]
    kubeconfig = ["--kubeconfig", str(environment.kubeconfig())]
    return CliRunner().invoke(main, ["report", *kubeconfig, *options, "--", *program])


def test_the_report_of_a_command(environment: ThreadedEnvironment, tmp_path: Path) -> None:
    role = tmp_path / "role.yaml"
    role.write_text(
        '{"kind": "Role", "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "get"]}]}'
    )
    found = run(environment, "--user-agent", "operator", "--role", str(role))
    assert found.exit_code == 3
    assert (
        "operator/v1 (kubernetes-admin): 2 requests, 0 failed" in found.output or "2 requests, 0 failed" in found.output
    )
    assert "2 lists of all configmaps, without limit or selector" in found.output
    assert "granted, and not used: get configmaps" in found.output


def test_a_report_without_requests_says_which_are_kept(environment: ThreadedEnvironment) -> None:
    kubeconfig = ["--kubeconfig", str(environment.kubeconfig())]
    found = CliRunner().invoke(main, ["report", *kubeconfig, "--recent", "--user-agent", "nobody"])
    assert (found.exit_code, "no requests of clients; they are kept while somebody" in found.output) == (0, True)


def test_other_forms(environment: ThreadedEnvironment) -> None:
    found = json.loads(run(environment, "--user-agent", "operator", "-o", "json").stdout)
    assert [each["requests"] for each in found["clients"]] == [2]
    role = run(environment, "--user-agent", "operator", "-o", "role").stdout
    assert "kind: ClusterRole" in role
    assert "- configmaps" in role


def test_commands_and_roles_that_are_not_there(environment: ThreadedEnvironment, tmp_path: Path) -> None:
    kubeconfig = ["--kubeconfig", str(environment.kubeconfig())]
    missing = CliRunner().invoke(main, ["report", *kubeconfig, "--", str(tmp_path / "nothing")])
    assert (missing.exit_code, "No such file" in missing.output) == (1, True)
    empty = tmp_path / "empty.yaml"
    empty.write_text("kind: Pod\n")
    refused = CliRunner().invoke(main, ["report", *kubeconfig, "--recent", "--role", str(empty)])
    assert (refused.exit_code, "no Role and no ClusterRole" in refused.output) == (1, True)


@pytest.mark.slow
def test_the_servers_that_a_command_starts_itself(tmp_path: Path) -> None:
    program = tmp_path / "suite.py"
    program.write_text(
        """
import asyncio, sys
from steersman.testing import Environment
MAPS = "/api/v1/namespaces/default/configmaps"

async def suite():
    for name in ("a", "b"):
        async with Environment() as environment:
            await environment.client().post(MAPS, {"metadata": {"name": name}})

asyncio.run(suite())
sys.exit(4)
"""
    )
    command = ["report", "--tests", "--", sys.executable, str(program)]
    found = CliRunner().invoke(main, command)
    assert found.exit_code == 4
    assert "(admin): 2 requests, 0 failed" in found.output
    nothing = CliRunner().invoke(main, ["report", "--tests", "--", sys.executable, "-c", ""])
    assert (nothing.exit_code, "has started no server" in nothing.output) == (1, True)


def test_an_interrupted_command_is_no_success_and_what_it_asked_is_reported() -> None:
    line = json.dumps({"verb": "get\x1b[2J", "resource": "pods", "code": 200, "userAgent": "operator\x1b[2J/v1"})
    command = f"echo '{line}' > $STEERSMAN_REPORT/server-1.requests; echo begun; exec sleep 300"
    report = [sys.executable, "-m", "steersman.cli", "report", "--tests", "--", "sh", "-c", command]
    with subprocess.Popen(report, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "begun\n"
        running.send_signal(signal.SIGINT)
        output = running.stdout.read()
    assert running.returncode == 130
    assert output.startswith("operator\\x1b[2J/v1 (anonymous): 1 request, 0 failed\n")
    assert "\x1b" not in output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--testes", "--", "true"], "unknown flag: --testes, did you mean --tests?"),
        (["--tests", "--recent", "--", "true"], "exclude each other"),
        (["--tests"], "needs a COMMAND"),
        (["--read", "/nowhere/at/all"], "No such file"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: list[str], message: str) -> None:
    found = CliRunner().invoke(main, ["report", *options])
    assert found.exit_code != 0
    assert message in found.output
