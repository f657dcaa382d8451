"""A cluster as a program: up, status, down."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from steersman.cli import main
from steersman.cli.up.process_file import claim, end, running

PATIENCE = 60.0


def run(*arguments: str, code: int = 0) -> str:
    """Run a command, check its exit code, and return its output."""
    done = subprocess.run(
        [sys.executable, "-m", "steersman.cli", *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_a_folder_has_one_cluster_at_a_time(tmp_path: Path) -> None:
    assert running(tmp_path) is None
    claimed = claim(tmp_path)
    assert claimed is not None
    found = running(tmp_path)
    assert found is not None
    assert found.pid == os.getpid()
    assert abs(found.since - time.time()) < 60
    assert claim(tmp_path) is None
    claimed.close()
    assert running(tmp_path) is None
    again = claim(tmp_path)
    assert again is not None
    again.close()


def test_a_number_in_the_file_is_not_believed(tmp_path: Path) -> None:
    """Only for the process that has locked the file the kernel reports the pid."""
    with (tmp_path / "up.pid").open("w") as forged, subprocess.Popen(["sleep", "60"]) as victim:
        forged.write(f"{victim.pid}\n")
        forged.flush()
        fcntl.flock(forged, fcntl.LOCK_EX)
        found = running(tmp_path)
        assert found is not None
        assert found.pid == 0
        assert "was started by an older version" in run("down", "--data-dir", str(tmp_path), code=1)
        assert victim.poll() is None
        victim.kill()
        forged.seek(0)
        forged.write("-1\n")
        forged.flush()
        again = running(tmp_path)
        assert again is not None
        assert again.pid == 0
        with pytest.raises(OSError, match=r"."):
            end(tmp_path, found)


def test_what_is_ended_has_the_file_locked(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from steersman.cli.up.process_file import claim\n"
        "held = claim(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        (tmp_path / "up.pid").write_text("1\n")
        found = running(tmp_path)
        assert found is not None
        assert found.pid == process.pid
        end(tmp_path, found)
        assert process.wait(10) == -signal.SIGTERM
        assert running(tmp_path) is None


@pytest.mark.slow
def test_a_cluster_is_left_running_found_and_ended(tmp_path: Path) -> None:
    folder = str(tmp_path)
    where = ("--data-dir", folder)
    assert "no cluster or server is running" in run("status", *where, code=1)
    ready = run("up", *where, "--secure-port=0", "--nodes=2", "--detach")
    assert ready.startswith("ready url=https://127.0.0.1:")
    assert ready.endswith(f" log={folder}/up.log\n")
    process = running(tmp_path)
    assert process is not None
    try:
        told = run("status", *where)
        assert re.search(r"^address +https://127.0.0.1:\d+, up \d+s, \d+ requests a second$", told, re.MULTILINE)
        assert re.search(r"^nodes +2 ready$", told, re.MULTILINE)
        assert re.search(r"^pods +none$", told, re.MULTILINE)
        assert re.search(rf"^process +{process.pid}$", told, re.MULTILINE)
        assert f"{folder}/admin.kubeconfig" in told
        for more in ((), ("--detach",)):
            said = run("up", *where, "--secure-port=0", *more, code=1)
            assert f"a cluster or a server is already running in {folder}, as process {process.pid}" in said
    finally:
        assert run("down", *where) == "ended\n"
    assert "no cluster or server is running" in run("down", *where, code=1)


@pytest.mark.slow
def test_a_running_cluster_is_scaled_and_has_the_added_nodes_at_its_next_start(tmp_path: Path) -> None:
    where = ("--data-dir", str(tmp_path))
    assert "no cluster or server is running" in run("scale", "nodes", "2", *where, code=1)
    start = ("up", *where, "--secure-port=0", "--detach")
    run(*start)
    try:
        assert run("scale", "nodes", "3", *where) == "group node: 3 nodes, 2 added\n"
        assert "no node is in group x" in run("scale", "nodes", "3", "--group=x", *where, code=1)
        assert "32769 is not in the range" in run("scale", "nodes", "32769", *where, code=1)
        run("down", *where)
        run(*start)
        assert "nodes       3 ready" in run("status", *where)
    finally:
        run("down", *where)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("up",),
        ("up", "--detach"),
        ("serve", "--bind-address=127.0.0.1"),
        ("serve", "--bind-address=127.0.0.1", "--workers=2"),
    ],
)
def test_a_port_that_is_taken_is_told_and_nothing_is_left(command: tuple[str, ...], tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = run(*command, f"--data-dir={folder}", f"--secure-port={port}", code=1)
    assert said == (
        f"steersman: port {port} of 127.0.0.1 is in use by another process: end it, or take another --secure-port\n"
    )
    assert not folder.exists()


@pytest.mark.slow
def test_the_log_names_flags_that_were_given(tmp_path: Path) -> None:
    where = f"--data-dir={tmp_path}"
    run("up", where, "--secure-port=0", "--nodes=2", "--detach")
    try:
        assert (tmp_path / "up.log").read_text().endswith(" flags=[--nodes=2 --secure-port=0]\n")
    finally:
        run("down", where)


@pytest.mark.slow
def test_a_cluster_that_was_killed_begins_again_with_what_it_had(tmp_path: Path) -> None:
    where = (f"--data-dir={tmp_path}", "--secure-port=0", "--nodes=2", "--detach")
    run("up", *where)
    killed = running(tmp_path)
    assert killed is not None
    os.kill(killed.pid, signal.SIGKILL)
    until = time.monotonic() + PATIENCE
    while running(tmp_path) is not None:
        assert time.monotonic() < until
        time.sleep(0.01)
    run("up", *where)
    try:
        assert re.search(r"^nodes +2 ready$", run("status", f"--data-dir={tmp_path}"), re.MULTILINE)
    finally:
        run("down", f"--data-dir={tmp_path}")


@pytest.mark.slow
def test_on_a_terminal_it_shows_what_it_does_until_it_is_interrupted(tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:  # becomes the program
        arguments = ["up", f"--data-dir={tmp_path}", "--storage=memory", "--secure-port=0", "--nodes=2"]
        environment = {**os.environ, "TERM": "xterm", "NO_COLOR": ""}
        os.execve(sys.executable, [sys.executable, "-m", "steersman.cli", *arguments], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    shown = read_until(terminal, "nodes      \x1b[32m2 ready")
    assert "starting: the API server" in shown
    assert "steersman  https://127.0.0.1:" in shown
    if "serves on" not in shown:
        read_until(terminal, "serves on")  # the line of the log, above the view
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
    assert "F\x1b[Jsteersman" in read_until(terminal, "steersman  https://127.0.0.1:\r\n")
    os.write(terminal, b"\x03")
    assert "ended" in read_until(terminal, "ended")
    assert os.waitpid(pid, 0)[1] == 0
    os.close(terminal)


def read_until(terminal: int, text: str) -> str:
    """Read from a terminal until a text appears."""
    said = ""
    until = time.monotonic() + PATIENCE
    while text not in said:
        readable, _, _ = select.select([terminal], [], [], max(until - time.monotonic(), 0))
        assert readable, said
        said += os.read(terminal, 65536).decode()
    return said


@pytest.mark.slow
def test_what_is_no_terminal_gets_one_line_and_no_escape_codes(tmp_path: Path) -> None:
    program = subprocess.Popen(
        [sys.executable, "-m", "steersman.cli", "up", f"--data-dir={tmp_path}", "--storage=memory", "--secure-port=0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert program.stdout is not None
    line = program.stdout.readline()
    program.send_signal(signal.SIGINT)
    assert line.startswith("ready url=https://127.0.0.1:")
    rest = program.communicate(timeout=PATIENCE)[0].splitlines()
    assert all(" steersman.serve: " in each for each in rest), rest
    assert program.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--nodes=100000",), "from 0 to 32768 can be simulated"),
        (("--config=nothing.yaml",), "nothing.yaml"),
        (("--no-such-flag=x",), "--no-such-flag"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(
    arguments: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    refused = CliRunner().invoke(main, ["up", f"--data-dir={tmp_path}/data", *arguments])
    assert refused.exit_code == 1
    assert told in refused.stderr
    assert not (tmp_path / "data").exists()


def test_nodes_are_said_in_one_place(tmp_path: Path) -> None:
    config = tmp_path / "cluster.yaml"
    config.write_text("nodes: [{count: 2}]\n")
    refused = CliRunner().invoke(main, ["up", f"--data-dir={tmp_path}/data", f"--config={config}", "--nodes=1"])
    assert refused.exit_code == 1
    assert "contradict each other" in refused.stderr


@pytest.mark.slow
def test_an_object_that_is_refused_ends_the_start(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("objects: [wrong.yaml]\n")
    (tmp_path / "wrong.yaml").write_text("kind: ConfigMap\napiVersion: v1\nmetadata: {name: Bad_Name}\n")
    where = (f"--data-dir={tmp_path}/data", "--secure-port=0", "--storage=memory", f"--config={tmp_path}/cluster.yaml")
    said = run("up", *where, code=1)
    assert 'ConfigMap Bad_Name: ConfigMap "Bad_Name" is invalid' in said
    assert "Traceback" not in said
