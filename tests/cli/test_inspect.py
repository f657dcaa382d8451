"""`steersman inspect`: its address, and a browser that is not given the token in its arguments."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import urllib.request
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from steersman.cli import main
from steersman.cli.browser import PrivateAddress

ADDRESS = "http://127.0.0.1:1/?token=of-the-page&x="


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the addresses that the browser is given."""
    found: list[str] = []

    def note(url: str) -> bool:
        found.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", note)
    return found


def test_a_private_file_leads_to_the_address(opened: list[str]) -> None:
    address = PrivateAddress()
    assert address.open(ADDRESS)
    (url,) = opened
    assert "token" not in url
    file = Path(urlsplit(url).path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    text = file.read_text()
    assert 'content="0;url=http://127.0.0.1:1/?token=of-the-page&amp;x="' in text
    assert 'name="referrer" content="no-referrer"' in text
    address.forget()
    assert not file.parent.exists()
    address.forget()


def test_only_one_file_is_kept(opened: list[str]) -> None:
    address = PrivateAddress()
    address.open(ADDRESS)
    address.open(ADDRESS)
    first, second = (Path(urlsplit(url).path) for url in opened)
    assert not first.exists()
    assert second.exists()
    address.forget()


def test_a_missing_kubeconfig_is_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["inspect", "--no-browser", "--kubeconfig", str(tmp_path / "none")])
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    """Return the kubeconfig of a server that does not answer."""
    content = {
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "a", "user": {}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    path = tmp_path / "config"
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def process(tmp_path: Path, kubeconfig: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield the command, with a browser that notes its arguments and the file that it is given."""
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\necho "$0 $@" > {tmp_path}/arguments\ncp "${{1#file://}}" {tmp_path}/opened 2> /dev/null\n'
    )
    browser.chmod(0o755)
    command = [str(Path(sys.executable).parent / "steersman"), "inspect", "--kubeconfig", str(kubeconfig)]
    environment = {**os.environ, "BROWSER": str(browser), "TMPDIR": str(tmp_path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, env=environment, text=True, **pipes)  # type: ignore[call-overload]
    yield process
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_the_token_is_on_the_standard_output_only(process: subprocess.Popen[str], tmp_path: Path) -> None:
    assert process.stdout is not None
    first = process.stdout.readline()
    address = first.removeprefix("open ").strip()
    token = address.partition("?token=")[2]
    assert len(token) > 40
    with urllib.request.urlopen(address) as answer:
        assert answer.status == 200
    second = process.stdout.readline()
    assert second.startswith(f"opened; the next address is {address.partition('?')[0]}?token=")
    assert token not in second
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "token=" not in rest + errors
    assert not list(tmp_path.glob("steersman-*"))


@pytest.mark.slow
def test_the_token_is_not_in_the_arguments_of_the_browser(process: subprocess.Popen[str], tmp_path: Path) -> None:
    assert process.stdout is not None
    token = process.stdout.readline().strip().partition("?token=")[2]
    arguments = tmp_path / "arguments"
    opened = tmp_path / "opened"
    while not opened.exists() or token not in opened.read_text():
        assert process.poll() is None
    assert "file://" in arguments.read_text()
    assert token not in arguments.read_text()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 0
    assert not list(tmp_path.glob("steersman-*"))
