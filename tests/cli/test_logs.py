"""The log of a server: lines at start and end, both formats, and levels."""

from __future__ import annotations

import json
import logging
import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from steersman.cli.flags import parse
from steersman.cli.logs import JsonFormatter, TextFormatter, flags_that_differ, storage_of
from steersman.cli.service_manager import ServiceManager
from steersman.controlplane.options import OptionsError
from steersman.net.log_levels import NOTICE
from steersman.server.debug_paths import log_level
from steersman.testing import ServerProcess


def a_record(level: int, message: str, *, error: BaseException | None = None) -> logging.LogRecord:
    where = "/somewhere/steersman/net/tls.py"
    found = None if error is None else (type(error), error, error.__traceback__)
    return logging.LogRecord("steersman.net.tls", level, where, 12, message, (), found)


def test_the_start_and_the_end_are_logged_by_default(make_server: Callable[..., ServerProcess]) -> None:
    server = make_server("--v=0", "--etcd-prefix=/x", "--service-account-jwks-uri=https://me:secret@h/keys?key=secret")
    server.start()
    assert server.stop() == 0
    start, ending, end = server.errors.read_text().splitlines()
    url, folder = re.escape(server.url), re.escape(str(server.folder))
    assert re.search(
        rf"^I \S+ \S+ steersman\.serve: steersman \S+ \(Kubernetes v1\.36\.\d+, Python 3\.\S+\) serves on {url}, ready "
        rf"after \d+\.\d s: process={server.pid} folder={folder} storage=sqlite flags=\[.*--secure-port=0.*\]$",
        start,
    )
    assert "--etcd-prefix=/x" in start
    assert re.search(r" --service-account-jwks-uri=https://me:\*\*\*@h/keys[ \]]", start)
    assert ending.endswith("SIGTERM: the server ends")
    assert re.search(r"ended, after \d+s$", end)


def test_lines_of_json_are_kube_apiservers(make_server: Callable[..., ServerProcess]) -> None:
    server = make_server("--logging-format=json")
    server.start()
    assert server.stop() == 0
    lines = [json.loads(line) for line in server.errors.read_text().splitlines()]
    assert len(lines) == 3
    for line in lines:
        assert list(line) == ["ts", "logger", "caller", "msg", "v"]
        assert re.fullmatch(r"cli/logs\.py:\d+", line["caller"])
        assert line["ts"] > 1.7e12  # milliseconds
        assert line["v"] == 0


def test_a_start_that_fails_is_told_in_json_too(make_server: Callable[..., ServerProcess]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = make_server("--logging-format=json", f"--secure-port={taken.getsockname()[1]}")
        server.launch()
        assert server.wait() == 1
    (line,) = map(json.loads, server.errors.read_text().splitlines())
    assert (line["msg"], "v" in line, "stacktrace" in line) == ("command failed", False, False)
    assert "is in use by another process" in line["err"]


@pytest.mark.parametrize(
    ("level", "v"), [(NOTICE, 0), (logging.INFO, 2), (logging.DEBUG, 6), (logging.WARNING, None), (logging.ERROR, None)]
)
def test_the_v_of_a_line_is_the_one_from_which_it_is_logged(level: int, v: int | None) -> None:
    line = json.loads(JsonFormatter(0).format(a_record(level, "loaded")))
    assert line.get("v") == v
    if v is not None:
        assert log_level(v) <= level
        assert v == 0 or log_level(v - 1) > level


def test_an_error_has_its_reason_and_any_text_is_json() -> None:
    try:
        raise ValueError("b\ud800d")
    except ValueError:
        error = sys.exc_info()[1]
    line = json.loads(JsonFormatter(2).format(a_record(logging.ERROR, 'a "quoted"\nline', error=error)))
    assert (line["msg"], line["err"], line["worker"]) == ('a "quoted"\nline', "ValueError: b?d", 2)
    assert "test_logs.py" in line["stacktrace"]
    assert line["caller"] == "net/tls.py:12"


def test_a_form_that_there_is_not_is_refused_as_upstream_does(tmp_path: Path) -> None:
    with pytest.raises(OptionsError, match='format: Invalid value: "xml": Unsupported log format'):
        parse(["--logging-format=xml"], tmp_path)


def test_flags_and_storage_are_told_without_secrets(tmp_path: Path) -> None:
    options = parse(["--etcd-servers=https://me:secret@a:1,https://b:2", "-v3", "--profiling=true"], tmp_path)
    assert flags_that_differ(options, {}) == ["--v=3"]
    assert storage_of(options) == "https://me:***@a:1,https://b:2"


def test_defaults_of_a_command_are_no_flags_that_were_given(tmp_path: Path) -> None:
    defaults = {"bind-address": "127.0.0.1", "allow-privileged": "true"}
    given = [f"--{name}={value}" for name, value in defaults.items()]
    assert flags_that_differ(parse(given, tmp_path), defaults) == []
    options = parse([*given, "--allow-privileged=false"], tmp_path)
    assert flags_that_differ(options, defaults) == ["--allow-privileged=false"]


def test_the_service_manager_is_told_of_the_start_and_the_end(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(10)
        with ServerProcess(tmp_path / "data", environment={"NOTIFY_SOCKET": str(tmp_path / "notify")}) as server:
            assert manager.recv(1000).decode() == f"READY=1\nSTATUS=serves on {server.url}"
        assert manager.recv(1000) == b"STOPPING=1"


def test_the_socket_of_the_service_manager_may_have_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0steersman-{tmp_path}")
        manager.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@steersman-{tmp_path}")
        ServiceManager().ready("x")
        assert manager.recv(1000) == b"READY=1\nSTATUS=x"


def test_a_service_manager_that_is_gone_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "none"))
    ServiceManager().ready("x")
    assert "of READY=1 failed" in caplog.text
    ServiceManager().ready("x")  # which has no socket: the first has taken the variable
    assert len(caplog.records) == 1


def test_envtests_server_takes_the_flag(tmp_path: Path) -> None:
    from steersman.cli.envtest.kube_apiserver import read

    assert read(["--logging-format=json"])[0].logging_format == "json"


def test_a_text_of_others_makes_no_lines_and_no_escape_codes() -> None:
    formatter = TextFormatter(0)
    line = formatter.format(a_record(logging.ERROR, "found \x1b[2J\x9b1m\r\nI 2026-01-01 00:00:00,000 forged\u2028é\t"))
    assert line.endswith(r": found \x1b[2J\x9b1m\r\nI 2026-01-01 00:00:00,000 forged\u2028é\t")


@pytest.mark.parametrize("make", [TextFormatter, JsonFormatter])
def test_a_long_text_of_others_is_cut_off(make: Callable[[int], logging.Formatter]) -> None:
    error = ValueError("x" * 3_000_000)
    line = make(0).format(a_record(logging.ERROR, "answered " + "\0" * 3_000_000, error=error))
    assert "... (3000" in line
    assert len(line) < 500_000


def test_lines_of_an_error_are_not_those_of_records() -> None:
    try:
        raise ValueError("\x1b[2J\nI 2026-01-01 00:00:00,000 forged")
    except ValueError as error:
        text = TextFormatter(0).format(a_record(logging.ERROR, "panic'd", error=error))
    first, *others = text.split("\n")
    assert first.endswith("panic'd")
    assert others[0] == "Traceback (most recent call last):"
    assert others[-2:] == [r"  ValueError: \x1b[2J", "  I 2026-01-01 00:00:00,000 forged"]
