"""Fixtures: the programs of `steersman envtest`, started as tools start them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steersman.cli.envtest import assets
from tests.cli.envtest.programs import Etcd


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs."""
    return assets.make(tmp_path_factory.mktemp("envtest"))


@pytest.fixture
def make_etcd(programs: Path, tmp_path: Path) -> Iterator[Callable[..., Etcd]]:
    """Yield `make_etcd(*flags)`, which starts the etcd on tmp_path/"etcd" or another `folder`, killed after the
    test.
    """
    made: list[Etcd] = []

    def make(*flags: str, folder: Path | None = None) -> Etcd:
        made.append(Etcd(programs / "etcd", folder or tmp_path / "etcd", *flags))
        return made[-1]

    yield make
    for each in made:
        each.end()


@pytest.fixture
def etcd(make_etcd: Callable[..., Etcd]) -> Etcd:
    """A healthy etcd."""
    made = make_etcd("--unsafe-no-fsync")
    made.wait_healthy()
    return made
