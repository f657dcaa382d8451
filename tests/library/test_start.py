"""Modules that are not imported, and checks that are skipped, when a server starts."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steersman import DefinitionError, Rule, Server, resource
from steersman.library import checked
from steersman.library.declaration import Declaration
from steersman.storage.sqlite.file import FileLock

PROGRAM = """
import asyncio, sys
from typing import Annotated
import msgspec
from steersman import PrinterColumn, Rule, Server, resource

@resource("e.x/v1", printer_columns=[PrinterColumn("Size", ".size", "integer")])
class Thing(msgspec.Struct):
    size: Annotated[int, Rule("self < 10")] = 1

async def main():
    async with Server(Thing, data_dir=sys.argv[1], secure_port=0):
        print(*sorted(sys.modules))

asyncio.run(main())
"""
UNUSED = (
    "cryptography",
    "joserfc",
    "yaml",
    "pydantic",
    "steersman.cel.evaluator",
    "steersman.registry.apiextensions.validation",
    "steersman.schema.declaration",
    "steersman.endpoints.proxy",
    "steersman.net.client.transport",
    "steersman.webhooks",
    "steersman.library.aggregated",
    "steersman.api.admissionregistration.v1",
    "steersman.authentication.service_account_keys",
    "steersman.schema.mail_address",
    "steersman.openapi.builder",
)
"""Modules that are slow to import and used by few requests, or none."""


@resource("e.x/v1")
class Good(msgspec.Struct):
    size: int = 1


@resource("e.x/v1", rules=[Rule("self.nothing == 1")])
class Invalid(msgspec.Struct):
    size: int = 1


def test_a_start_on_a_folder_that_is_there_loads_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=120, check=True
        )
    loaded = done.stdout.split()
    assert [name for name in UNUSED if name in loaded] == []


async def test_a_definition_is_checked_once(serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    check = checked.check_definition

    def counted(declaration: Declaration) -> None:
        found.append(declaration.kind)
        check(declaration)

    monkeypatch.setattr("steersman.library.checked.check_definition", counted)
    for _ in range(2):
        server: Server = await serve(Good, data_dir=tmp_path)
        await server.stop()
    assert found == ["Good"]


async def test_a_definition_that_is_wrong_is_wrong_each_time(serve: Any, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(DefinitionError):
            await serve(Invalid, data_dir=tmp_path)


async def test_an_unreadable_note_is_replaced(serve: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "definitions.json").write_text("{")
    await serve(Good, data_dir=tmp_path)
    assert "will be replaced" in caplog.text
    assert (tmp_path / "definitions.json").read_text() != "{"


def test_a_program_that_cannot_start_ends_with_one_line(tmp_path: Path) -> None:
    used, new = tmp_path / "used", tmp_path / "new"
    used.mkdir()
    lock = FileLock(used / "steersman.db")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit, match=r"^steersman: \S+/used/steersman\.db is in use by another process"):
            Server(Good, data_dir=used, secure_port=0).run()
        with pytest.raises(SystemExit, match=rf"^steersman: port {port} .* end it, or take another secure_port$"):
            Server(Good, data_dir=new, secure_port=port).run()
    lock.release()
    with pytest.raises(SystemExit, match=r"^steersman: \S*Invalid"):
        Server(Invalid, data_dir=new, secure_port=0).run()
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match=r"^steersman: data_dir: \S+/file is not a folder"):
        Server(Good, data_dir=tmp_path / "file", secure_port=0).run()
    assert not (tmp_path / "new" / "admin.kubeconfig").exists()
