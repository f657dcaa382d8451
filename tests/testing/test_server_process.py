"""Servers in processes of their own: start, stop and kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.testing import ServerNotReady, ServerProcess


def test_a_block_starts_it_and_ends_it_in_order(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    with server, server.client() as admin, server.client(admin=False) as nobody:
        assert server.kubeconfig == tmp_path / "data" / "admin.kubeconfig"
        assert admin.json("GET", "/api/v1/namespaces/default")[0] == 200
        assert nobody.json("GET", "/api/v1/namespaces/default")[0] == 403
    assert not server.running
    assert server.wait() == 0


def test_one_that_cannot_start_tells_why(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--storage=nowhere")
    with pytest.raises(ServerNotReady, match="nowhere"):
        server.start()
    assert not server.running


def test_a_block_whose_server_was_killed_ends_quietly(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        server.kill()
    assert not server.running
