"""Commands of agnhost that print something and end."""

from __future__ import annotations

import pytest

from steersman.nodes.shell.effects import Missing, Wait, World, Write
from steersman.nodes.shell.shell import Shell
from tests.nodes.shell.running import run


def output_of(found: World, *words: str) -> tuple[int | None, str, float]:
    """Return the exit code (None if the command waits for ever), the output, and the duration in seconds."""
    execution, out, seconds = Shell(found).run(["/agnhost", *words]), "", 0.0
    while True:
        try:
            effect = execution.send(None)
        except StopIteration as done:
            return done.value, out, seconds
        if isinstance(effect, Write):
            out += effect.data.decode()
        elif isinstance(effect, Wait):
            seconds += effect.seconds
            if seconds == float("inf"):
                return None, out, seconds


@pytest.fixture
def found() -> World:
    made = World("pod", {}, lambda: 1_800_000_000.0, {"/cfg/a": b"1", "/etc/hosts": b"127.0.0.1\tlocalhost\n"})
    made.folders |= {"/cfg", "/scratch"}
    made.modes.update({"/cfg/a": 0o400, "/scratch": 0o777})
    made.file_systems.update({"/scratch": "tmpfs", "/cfg": "ext4"})
    return made


def test_it_says_with_what_it_was_called() -> None:
    assert run("/agnhost", "entrypoint-tester", "a", "b").out == "[/agnhost entrypoint-tester a b]\n"
    assert run("/agnhost-2", "entrypoint-tester").out == "[/agnhost-2 entrypoint-tester]\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--file_content=/cfg/a"], 'content of file "/cfg/a": 1\n'),
        (["--file_mode=/cfg/a"], 'mode of file "/cfg/a": -r--------\n'),
        (["--file_mode", "/scratch"], 'mode of file "/scratch": drwxrwxrwx\n'),
        (["--file_perm=/scratch"], 'perms of file "/scratch": -rwxrwxrwx\n'),
        (["--fs_type=/scratch"], 'mount type of "/scratch": tmpfs\n'),
        (["--fs_type=/cfg"], 'mount type of "/cfg": 61267\n'),
        (
            ["--file_perm=/scratch/new", "--new_file_0660=/scratch/new"],
            'content of file "/scratch/new": mount-tester new file\n\nperms of file "/scratch/new": -rw-rw----\n',
        ),
    ],
)
def test_it_tells_of_files(found: World, words: list[str], said: str) -> None:
    assert output_of(found, "mounttest", *words) == (0, said, 0.0)


def test_it_fails_for_a_file_that_is_not_there(found: World) -> None:
    code, said, _ = output_of(found, "mounttest", "--file_content=/cfg/b", "--file_mode=/cfg/b")
    assert code == 1
    assert said == (
        'error from Stat("/cfg/b"): stat /cfg/b: no such file or directory\n'
        'error reading file content for "/cfg/b": open /cfg/b: no such file or directory\n'
    )


def test_it_checks_a_file_again_and_again(found: World) -> None:
    words = ("mounttest", "--break_on_expected_content=false", "--retry_time=6", "--file_content_in_loop=/cfg/a")
    assert output_of(found, *words) == (0, 'content of file "/cfg/a": 1\n' * 3, 6.0)


def test_it_waits_for_the_content_that_it_expects(found: World) -> None:
    found.files["/cfg/a"] = b"mount-tester new file\n"
    code, said, seconds = output_of(found, "mounttest", "--file_content_in_loop=/cfg/a")
    assert (code, seconds) == (0, 0.0)
    assert said == 'content of file "/cfg/a": mount-tester new file\n\n'
    assert output_of(found, "mounttest", "--file_content_in_loop=/cfg/b", "--retry_time=2")[::2] == (1, 2.0)


def test_it_prints_lines_evenly(found: World) -> None:
    code, said, seconds = output_of(found, "logs-generator", "--log-lines-total", "4", "--run-duration", "2s")
    assert (code, seconds) == (0, 2.0)
    lines = said.splitlines()
    assert len(lines) == 4
    assert lines[0] == "I0115 08:00:00.000000       1 logs_generator.go:76] 0 GET /api/v1/namespaces/ns/pods/0000 200"
    assert output_of(found, "logs-generator")[0] == 255


def test_the_hosts_file_is_printed(found: World) -> None:
    assert output_of(found, "etc-hosts") == (0, "127.0.0.1\tlocalhost\n", 0.0)


@pytest.mark.parametrize("words", [[], ["pause"], ["netexec", "--http-port=8080"]])
def test_servers_go_on(found: World, words: list[str]) -> None:
    code, said, _ = output_of(found, *words)
    assert code is None
    assert said == ("" if "netexec" in words else "Paused\n")


def test_what_asks_others_is_not_known() -> None:
    assert run("/agnhost", "connect", "10.0.0.1:80").other == [Missing("agnhost connect")]
