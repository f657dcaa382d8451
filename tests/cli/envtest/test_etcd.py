"""The `etcd` of `steersman envtest`: answers, claims on its folder, command line, and end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steersman.cli.envtest import etcd as program
from steersman.cli.envtest.claim import claim
from steersman.controlplane.options import OptionsError


def test_it_is_healthy_and_nothing_else(etcd: Any) -> None:
    assert etcd.ask("GET", "/health") == (200, b'{"health":"true","reason":""}')
    assert etcd.ask("GET", "/version")[0] == 404
    assert etcd.ask("POST", "/v3/kv/range")[0] == 404


def test_its_folder_is_lent_to_one_at_a_time(etcd: Any) -> None:
    held = claim(etcd.url)
    assert (held.folder, held.fsync) == (etcd.folder, False)
    with pytest.raises(OptionsError, match="another kube-apiserver uses the etcd at"):
        claim(etcd.url)
    assert etcd.ask("GET", "/health")[0] == 200
    held.connection.close()
    claim(etcd.url).connection.close()


def test_writes_are_to_be_on_the_disk_unless_it_is_told_otherwise(make_etcd: Callable[..., Any]) -> None:
    made = make_etcd()
    made.wait_healthy()
    held = claim(made.url)
    held.connection.close()
    assert held.fsync


def test_a_folder_has_one_etcd(etcd: Any, make_etcd: Callable[..., Any]) -> None:
    second = make_etcd(folder=etcd.folder)
    assert second.process.wait(30) == 2
    assert second.process.stderr.read() == f"etcd: --data-dir: {etcd.folder} is in use by another etcd\n"


def test_what_speaks_etcds_protocol_is_turned_away(etcd: Any) -> None:
    with socket.create_connection(("127.0.0.1", etcd.port), timeout=30) as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert connection.makefile("rb").read().startswith(b"HTTP/1.1 404 ")
    etcd.wait_healthy()


def test_clients_that_say_too_much_or_leave_do_no_harm(etcd: Any) -> None:
    for sent in (b"x" * 40_000, b"GET /hea", b""):
        with socket.create_connection(("127.0.0.1", etcd.port), timeout=30) as connection:
            connection.sendall(sent)
    etcd.wait_healthy()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_as_it_ends_etcd(etcd: Any, number: signal.Signals) -> None:
    etcd.process.send_signal(number)
    assert etcd.process.wait(30) == -number


def test_flags_are_read_as_go_reads_them() -> None:
    read = program.parse(["-data-dir", "a", "--wal-dir", "b", "--name=c", "-unsafe-no-fsync", "--pre-vote=false"])
    assert read == {"data-dir": "a", "wal-dir": "b", "name": "c", "unsafe-no-fsync": "true", "pre-vote": "false"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--dta-dir=a"], "--dta-dir is not a flag of etcd"),
        (["--cert-file=a"], "--cert-file is not a flag of etcd, or not supported by steersman's etcd"),
        (["--data-dir"], "flag needs an argument: --data-dir"),
        (["stray"], "'stray' is not a valid flag"),
        (["---name=a"], "'---name=a' is not a valid flag"),
        (["--listen-client-urls=https://127.0.0.1:1"], "https://127.0.0.1:1 is not of the form http://ADDRESS:PORT"),
        (["--listen-client-urls=http://127.0.0.1"], "http://127.0.0.1 is not of the form http://ADDRESS:PORT"),
        (["--listen-client-urls=unix://a"], "unix://a is not of the form http://ADDRESS:PORT"),
        (["--data-dir=/dev/null/a"], "--data-dir: /dev/null/a cannot be used"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert program.main(arguments) == 2
    text = capsys.readouterr().err
    assert text.startswith("etcd: ")
    assert told in text
    assert text.count("\n") == 1


def test_the_address_may_be_a_name_or_of_either_kind() -> None:
    assert program.address("http://[::1]:2379/") == ("::1", 2379)
    assert program.address("http://localhost:2379") == ("localhost", 2379)


@pytest.mark.parametrize("arguments", [["--help"], ["--name=a", "--help"]])
def test_its_help_names_what_envtest_looks_for(programs: Path, arguments: list[str]) -> None:
    said = subprocess.run(
        [programs / "etcd", *arguments], capture_output=True, text=True, timeout=30, check=True
    ).stdout
    assert re.search(r"(?m)^\s*--unsafe-no-fsync\b", said)
    assert set(re.findall(r"(?m)^\s*--([a-z0-9-]+)", said)) == {*program.IN_USE, *program.WITHOUT_EFFECT}


def test_its_version_is_told(programs: Path) -> None:
    said = subprocess.run([programs / "etcd", "--version"], capture_output=True, text=True, timeout=30, check=True)
    assert re.match(r"etcd Version: 3\.\d+\.\d+\n", said.stdout)


def test_it_needs_nothing_but_python() -> None:
    """Tools wait for it: it imports nothing of this or another project, and no slow module."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", program.__file__, "--version"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "selectors" in imported
    assert not imported & {"steersman", "json", "asyncio", "typing", "urllib", "site", "dataclasses", "pathlib"}


def test_what_it_lends_is_json_whatever_the_folder_is_called(make_etcd: Callable[..., Any], tmp_path: Path) -> None:
    made = make_etcd(folder=tmp_path / 'a "quoted" name')
    made.wait_healthy()
    file = made.folder / program.CLAIM_FILE
    assert asked(made.port) == (401, {"claimFile": str(file)})
    assert asked(made.port, file.read_text()) == (200, {"dataDir": str(made.folder), "fsync": True})


def asked(port: int, word: str = "") -> tuple[int, dict[str, object]]:
    """Return the answer to a claim with this secret."""
    field = f"authorization: Bearer {word}\r\n" if word else ""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(program.CLAIM + f"HTTP/1.1\r\n{field}\r\n".encode())
        head, _, body = connection.recv(4096).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_the_etcd_of_another_user_is_not_claimed(make_etcd: Callable[..., Any]) -> None:
    made = make_etcd()
    made.wait_healthy()
    os.chown(made.folder / program.CLAIM_FILE, 65534, 65534)
    with pytest.raises(OptionsError, match="belongs to another user"):
        claim(made.url)


def test_who_cannot_read_its_folder_cannot_claim_it(make_etcd: Callable[..., Any]) -> None:
    """Every user of the machine can connect to the etcd."""
    made = make_etcd()
    made.wait_healthy()
    word = made.folder / program.CLAIM_FILE
    assert word.stat().st_mode & 0o777 == 0o600
    for guess in ("", "x", word.read_text()[:-1], word.read_text()[:-1] + "x"):
        assert asked(made.port, guess)[0] == 401
    held = claim(made.url)
    assert held.folder == made.folder
    held.connection.close()
