"""The page beside a cluster: its address is in a file of the owner, and in no log."""

from __future__ import annotations

import logging
import socket
import urllib.request
from pathlib import Path

import pytest

from steersman.cli.up.page import FILE, NO_PORT, Page, address_of_page

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: admin
clusters: [{name: local, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: admin, user: {}}]
contexts: [{name: admin, context: {cluster: local, user: admin}}]
"""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "admin.kubeconfig"
    path.write_text(KUBECONFIG)
    path.chmod(0o600)
    return path


def test_each_address_opens_the_page_once_and_the_file_has_the_next_one(
    kubeconfig: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    page = Page(tmp_path, 0)
    page.start(kubeconfig)
    first = address_of_page(tmp_path)
    assert first == page.address
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    with urllib.request.urlopen(first) as answer:
        assert answer.status == 200
        assert "SameSite=Strict" in answer.headers["set-cookie"]
    second = address_of_page(tmp_path)
    assert second.startswith("http://127.0.0.1:")
    assert second != first
    token = first.partition("token=")[2]
    assert len(token) > 40
    assert token not in caplog.text


def test_without_a_port_there_is_no_page_and_no_address_of_an_earlier_run(kubeconfig: Path, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("http://127.0.0.1:1/?token=old")
    Page(tmp_path, NO_PORT).start(kubeconfig)
    assert address_of_page(tmp_path) == ""


def test_a_taken_port_is_told_in_the_log(kubeconfig: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        page = Page(tmp_path, taken.getsockname()[1])
        page.start(kubeconfig)
    assert page.address == ""
    assert "the page of the cluster is not served" in caplog.text
