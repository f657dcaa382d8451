"""Keys that are shared by the servers of a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.testing import Environment, throw_away_keys
from steersman.testing.throw_away_keys import keep, temporary_folder


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    kept: dict[str, bytes] = {}
    monkeypatch.setattr(throw_away_keys, "_made", kept)
    return kept


def folder_of(environment: Environment) -> Path:
    return Path(environment.kubeconfig()).parent


async def test_the_second_server_has_the_keys_of_the_first(made: dict[str, bytes]) -> None:
    found = []
    for _ in range(2):
        async with Environment(listen=True) as environment:
            folder = folder_of(environment)
            found.append({name: (folder / name).read_bytes() for name in ("sa.key", "ca.key", "apiserver.crt")})
            assert folder.stat().st_mode & 0o777 == 0o700
            assert (folder / "sa.key").stat().st_mode & 0o777 == 0o600
        assert not folder.exists()
    assert found[0] == found[1]
    assert made["sa.key"] == found[0]["sa.key"]


async def test_who_gives_a_folder_has_keys_of_its_own(tmp_path: Path, made: dict[str, bytes]) -> None:
    async with Environment(folder=tmp_path):
        assert not made
    async with Environment():
        assert made["sa.key"] != (tmp_path / "sa.key").read_bytes()


def test_what_is_missing_is_added_later(tmp_path: Path, made: dict[str, bytes]) -> None:
    (tmp_path / "ca.key").write_bytes(b"one")
    keep(str(tmp_path))
    (tmp_path / "ca.key").write_bytes(b"two")
    (tmp_path / "sa.key").write_bytes(b"three")
    keep(str(tmp_path))
    assert made == {"ca.key": b"one", "sa.key": b"three"}
    with temporary_folder(small=True) as folder:
        assert {each.name: each.read_bytes() for each in Path(folder).iterdir()} == made
