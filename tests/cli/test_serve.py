"""`steersman serve` as a process: ready line, files, end, and errors at the start."""

from __future__ import annotations

import contextlib
import errno
import gc
import http.client
import re
import resource
import signal
import socket
import sqlite3
import ssl
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from steersman.cli import main
from steersman.cli.serve import os_error_line
from steersman.server.certificates import ensure_certificates
from steersman.testing import ServerNotReady, ServerProcess

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def refusal(server: ServerProcess) -> str:
    """Return the line that a server prints if it does not start; checks exit code 1."""
    with pytest.raises(ServerNotReady):
        server.start()
    assert server.wait() == 1
    lines = server.errors.read_text().splitlines(keepends=True)
    while lines and " steersman.serve: " in lines[0]:  # of starts before this one, which have gone well
        del lines[0]
    (text,) = lines
    assert text.startswith("steersman: ")
    return text


def refusal_here(folder: Path, *flags: str) -> str:
    """Return the line that a server in this process prints if it does not start; checks exit code 1."""
    result = CliRunner().invoke(main, ["serve", f"--data-dir={folder}", "--secure-port=0", *flags])
    assert result.exit_code == 1
    (text,) = result.stderr.splitlines(keepends=True)
    assert text.startswith("steersman: ")
    return text


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            PermissionError(errno.EACCES, "Permission denied", "/d/steersman.db.lock"),
            "/d/steersman.db.lock: Permission denied",
        ),
        (OSError(errno.ENOSPC, "No space left on device"), "/d: No space left on device"),
        (ssl.SSLError(9, "PEM lib"), "PEM lib"),
        (OSError("/d is a file"), "/d is a file"),
    ],
)
def test_errors_of_the_system_name_a_file_and_no_number(error: OSError, told: str) -> None:
    assert os_error_line(error, Path("/d")) == told


def test_the_ready_line_says_where_and_how(server: ServerProcess) -> None:
    assert server.url.startswith("https://127.0.0.1:")
    assert server.kubeconfig.is_file()
    assert server.ca.is_file()
    with server.client() as client:
        assert client.request("GET", "/readyz") == (200, b"ok")
    assert [line.partition(" steersman.serve: ")[0][:2] for line in server.errors.read_text().splitlines()] == ["I "]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the server makes its keys itself")
def test_a_first_start_does_not_keep_what_makes_keys(make_server: Callable[..., ServerProcess]) -> None:
    server = make_server()
    server.start()
    pid = server.pid
    assert (server.folder / "sa.key").is_file()
    assert "cryptography" not in Path(f"/proc/{pid}/maps").read_text()
    assert Path(f"/proc/{pid}/task/{pid}/children").read_text() == ""


def test_keys_are_for_their_owner_only(server: ServerProcess) -> None:
    assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700
    private = [*server.folder.glob("*.key"), server.kubeconfig, server.folder / "steersman.db"]
    assert {"ca.key", "apiserver.key", "admin.key", "sa.key"} <= {path.name for path in private}
    for path in private:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode & 0o077 == 0 or path.suffix == ".db", f"{path.name} is {mode:o}"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(make_server: Callable[..., ServerProcess], number: signal.Signals) -> None:
    server = make_server()
    server.start()
    with server.client() as client:
        assert client.json("POST", CONFIGMAPS, {"metadata": {"name": "kept"}})[0] == 201
    server.signal(number)
    assert server.wait(10) == 0
    server.start()
    with server.client() as client:
        assert client.json("GET", f"{CONFIGMAPS}/kept")[0] == 200


def test_an_open_watch_sees_its_proper_end_and_does_not_hold_up_the_server(
    make_server: Callable[..., ServerProcess],
) -> None:
    server = make_server()
    server.start()
    connection = http.client.HTTPSConnection(*server.address, context=server.context(), timeout=10)
    connection.request("GET", f"{CONFIGMAPS}?watch=1")
    response = connection.getresponse()
    server.signal(signal.SIGTERM)
    response.read()  # IncompleteRead, if it were cut off
    connection.close()
    assert server.wait(10) == 0


def test_a_second_signal_ends_it_at_once(make_server: Callable[..., ServerProcess]) -> None:
    server = make_server("--shutdown-delay-duration=1h")
    server.start()
    server.signal(signal.SIGTERM)
    with server.client() as client:
        while client.request("GET", "/readyz")[0] == 200:
            pass
    assert server.running
    server.signal(signal.SIGTERM)
    assert server.wait(5) == 1


def test_a_signal_during_the_start_ends_it(make_server: Callable[..., ServerProcess]) -> None:
    server = make_server()
    server.launch()
    with pytest.raises(subprocess.TimeoutExpired):
        server.wait(0.05)
    server.signal(signal.SIGTERM)
    assert server.wait(10) in (0, -signal.SIGTERM)  # the latter before the handler is there


@pytest.mark.slow
def test_a_second_server_on_the_same_folder_is_refused(make_server: Callable[..., ServerProcess]) -> None:
    first = make_server()
    first.start()
    second = make_server()
    second.errors = first.errors.with_name("second.stderr")
    text = refusal(second)
    assert f"steersman.db is in use by another process ({first.pid})" in text
    with first.client() as client:
        assert client.request("GET", "/readyz") == (200, b"ok")


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert refusal_here(tmp_path / "data", f"--secure-port={port}", "--bind-address=127.0.0.1") == (
            f"steersman: port {port} of 127.0.0.1 is in use by another process: end it, or take another --secure-port\n"
        )


def test_an_address_of_another_machine_is_told(tmp_path: Path) -> None:
    assert refusal_here(tmp_path / "data", "--bind-address=192.0.2.77").startswith(
        "steersman: 192.0.2.77 is not an address of this machine: --bind-address must be one"
    )


@pytest.mark.slow
def test_a_damaged_file_is_told_and_left_as_it_is(make_server: Callable[..., ServerProcess]) -> None:
    server = make_server()
    server.start()
    assert server.stop() == 0
    file = server.folder / "steersman.db"
    data = bytearray(file.read_bytes())
    data[5000:9000] = b"\xff" * 4000
    file.write_bytes(data)
    text = refusal(server)
    assert "steersman.db" in text
    assert file.read_bytes() == bytes(data)


@pytest.mark.slow
def test_a_value_of_a_large_file_that_was_overwritten_is_told_at_the_start(
    make_server: Callable[..., ServerProcess],
) -> None:
    server = make_server()
    server.start()
    with server.client() as client:
        for number in range(6):
            body = {"metadata": {"name": f"large-{number}"}, "data": {"x": "y" * 900_000}}
            assert client.json("POST", CONFIGMAPS, body)[0] == 201
    assert server.stop() == 0
    file = server.folder / "steersman.db"
    data = file.read_bytes()
    assert len(data) > 4 << 20
    at = data.rindex(b"y" * 2000) + 100
    file.write_bytes(data[:at] + b"\xff" * 64 + data[at + 64 :])
    with pytest.raises(ServerNotReady):
        server.start()
    assert server.wait() == 1
    text = server.errors.read_text().splitlines()[-1]
    assert re.search(
        r"steersman.db: '/registry/configmaps/default/large-\d' at revision \d+ is not what was written", text
    )
    assert f"`steersman storage check --accept-data-loss --data-dir {server.folder}`" in text


def spoil(server: ServerProcess, key: str) -> None:
    """Replace a stored object of a stopped server by an invalid one with a valid checksum."""
    with contextlib.closing(sqlite3.connect(server.folder / "steersman.db")) as file, file:
        assert file.execute("UPDATE log SET value = 'spoilt', checksum = NULL WHERE key = ?", (key,)).rowcount
    file.close()


@pytest.mark.slow
def test_an_unreadable_object_costs_only_its_own_resource(make_server: Callable[..., ServerProcess]) -> None:
    server = make_server()
    server.start()
    with server.client() as client:
        assert client.json("POST", CONFIGMAPS, {"metadata": {"name": "kept"}})[0] == 201
        assert client.json("POST", CONFIGMAPS.replace("configmaps", "secrets"), {"metadata": {"name": "s"}})[0] == 201
    assert server.stop() == 0
    spoil(server, "/registry/secrets/default/s")
    server.start()
    with server.client() as client:
        assert client.request("GET", f"{CONFIGMAPS}/kept")[0] == 200
        assert client.request("GET", "/api/v1/secrets")[0] == 429
        assert client.request("GET", "/livez") == (200, b"ok")
        assert b"[-]informer-sync failed" in client.request("GET", "/readyz?verbose")[1]
    assert server.stop() == 0
    text = server.errors.read_text()
    assert text.count("the object /registry/secrets/default/s cannot be read: ") == text.count("DELETE FROM log") == 1
    assert "Traceback" not in text


@pytest.mark.slow
@pytest.mark.parametrize("key", ["/registry/clusterroles/admin", "/registry/namespaces/default"])
def test_an_unreadable_object_that_the_server_itself_needs_is_told_once_with_what_helps(
    make_server: Callable[..., ServerProcess], key: str
) -> None:
    server = make_server()
    server.start()
    assert server.stop() == 0
    spoil(server, key)
    file = server.folder / "steersman.db"
    text = refusal(server)
    assert text.startswith(f"steersman: in {file} the object {key} cannot be read: it is no object")
    assert text.endswith(f"sqlite3 {file} \"DELETE FROM log WHERE key = '{key}'\"\n")
    with contextlib.closing(sqlite3.connect(file)) as database, database:  # what it says
        database.execute(f"DELETE FROM log WHERE key = '{key}'")
    database.close()
    server.start()
    assert server.stop() == 0


def test_a_file_of_another_program_is_told(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "steersman.db")) as other, other:
        other.execute("CREATE TABLE theirs (a)")
    assert "steersman.db" in refusal_here(tmp_path)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "data"
    assert refusal_here(folder) == f"steersman: --data-dir: the folder {folder} cannot be made: Not a directory\n"


@pytest.mark.slow
def test_memory_leaves_no_data_behind(make_server: Callable[..., ServerProcess]) -> None:
    server = make_server("--storage=memory")
    server.start()
    with server.client() as client:
        assert client.json("POST", CONFIGMAPS, {"metadata": {"name": "gone"}})[0] == 201
    assert server.stop() == 0
    assert not (server.folder / "steersman.db").exists()
    server.start()
    with server.client() as client:
        assert client.json("GET", f"{CONFIGMAPS}/gone")[0] == 404


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="limits of another process are read from /proc")
def test_it_may_open_as_many_files_as_the_system_grants(make_server: Callable[..., ServerProcess]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    server = make_server("--storage=memory")
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        server.start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    limits = Path(f"/proc/{server.pid}/limits").read_text()
    line = next(line for line in limits.splitlines() if line.startswith("Max open files"))
    assert line.split()[3] == str(hard)


@pytest.mark.slow
def test_certificates_stay_from_start_to_start(make_server: Callable[..., ServerProcess]) -> None:
    server = make_server()
    server.start()
    before = {path.name: path.read_bytes() for path in server.folder.glob("*.crt")}
    server.stop()
    server.start()
    assert {path.name: path.read_bytes() for path in server.folder.glob("*.crt")} == before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["steersman.db", "sa.key", "ca.key", "ca.crt"])
def test_an_empty_file_is_told_and_nothing_in_the_folder_is_changed(
    make_server: Callable[..., ServerProcess], name: str
) -> None:
    server = make_server()
    server.start()
    server.kill() if name == "steersman.db" else server.stop()  # killed, it leaves its log of writes beside the file
    (server.folder / name).write_bytes(b"")

    def files() -> dict[str, bytes]:
        kept = [path for path in server.folder.iterdir() if path.suffix in (".db", ".key", ".crt", ".db-wal")]
        return {path.name: path.read_bytes() for path in kept}

    before = files()
    assert name in refusal(server)
    assert files() == before


def test_a_file_in_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "file is not a folder; a folder for the server's data is expected" in refusal_here(tmp_path / "file")


@pytest.mark.slow
def test_a_certificate_and_a_key_that_do_not_match_are_told_by_name(make_server: Callable[..., ServerProcess]) -> None:
    server = make_server()
    server.start()
    assert server.stop() == 0
    crt, key = server.folder / "apiserver.crt", server.folder / "admin.key"
    server.flags += (f"--tls-cert-file={crt}", f"--tls-private-key-file={key}")
    assert refusal(server) == f"steersman: --tls-private-key-file: {key} is not the key of {crt}\n"


@pytest.mark.slow
def test_the_administrators_kubeconfig_works_beside_a_certificate_that_was_given(
    make_server: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    given = ensure_certificates(tmp_path / "given", ["localhost"])
    server = make_server(f"--tls-cert-file={given.server}", f"--tls-private-key-file={given.server_key}")
    server.start()
    try:
        told = CliRunner().invoke(main, ["status", "--data-dir", str(server.folder)])
        assert told.exit_code == 0, told.stderr
        assert f"address     {server.url}, up " in told.stdout
        trusting = ssl.create_default_context(cafile=str(given.ca))
        port = int(server.url.rpartition(":")[2])
        with closing(http.client.HTTPSConnection("127.0.0.1", port, context=trusting)) as others:
            others.request("GET", "/version")
            assert others.getresponse().status == 200
    finally:
        assert server.stop() == 0


@pytest.mark.slow
def test_keys_that_others_can_read_are_told_and_serve(make_server: Callable[..., ServerProcess]) -> None:
    server = make_server()
    server.start()
    assert server.stop() == 0
    (server.folder / "sa.key").chmod(0o644)
    server.start()
    assert server.stop() == 0
    assert "others can read" in server.errors.read_text()


def test_a_start_that_fails_lets_garbage_be_collected_again(tmp_path: Path) -> None:
    gc.enable()  # threads of earlier tests may still hold it
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(main, ["serve", "--data-dir", str(tmp_path / "file"), "--secure-port", "0"])
    assert result.exit_code != 0
    assert gc.isenabled()


BUSY = """
import asyncio, sys, time
from types import SimpleNamespace
from steersman.cli.serve import run
from steersman.controlplane.options import Options
from steersman.work.offloading import Account
from steersman.work.threads import WorkerThreads


class Busy:
    async def start(self):
        self.threads = WorkerThreads()
        work = asyncio.to_thread(time.sleep, 600), Account(self.threads).offload_if(True, time.sleep, 600)
        self.work = [asyncio.ensure_future(each) for each in work]
        return SimpleNamespace(url="https://127.0.0.1:1")

    async def stop(self):
        self.threads.close()
        for each in self.work:
            each.cancel()


def ready(address):
    print("ready", flush=True)


run(Options(data_dir=None), make=lambda options: Busy(), ready=ready)
"""


@pytest.mark.slow
def test_threads_that_work_for_nobody_do_not_keep_the_server_from_ending() -> None:
    process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 0
        assert "is still working; exiting without waiting for it" in errors
    finally:
        process.kill()
