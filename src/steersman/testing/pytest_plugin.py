"""Fixtures for pytest: `steersman`, a server for one test, and `steersman_session`, one that all tests share.

Both are ThreadedEnvironments, so that tests may block or not. pytest imports this module at every start where Steersman
is installed; it imports nothing else before a fixture is asked for. Names below are also the plugin's settings:
the mark `steersman(...)`, and `steersman_crds` in pytest's configuration.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from steersman.testing import ThreadedEnvironment

_MARK = (
    "steersman(crds=[...], users=[...], **flags): files and folders of CustomResourceDefinitions for the server of "
    "this test, its users, and flags of `steersman serve`"
)
_CRDS = "files and folders of CustomResourceDefinitions that every server of the fixtures has"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares the setting."""
    parser.addini("steersman_crds", _CRDS, type="paths", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Declares the mark."""
    config.addinivalue_line("markers", _MARK)


@pytest.fixture(scope="session")
def _steersman_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with certificates and keys, made once: they are most of what a start takes."""
    from steersman.testing import make_keys

    folder = tmp_path_factory.mktemp("steersman-keys")
    make_keys(folder)
    return folder


@pytest.fixture(scope="session")
def steersman_session(
    _steersman_keys: Path, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[ThreadedEnvironment]:
    """A server that all tests share: each makes things in a namespace, or by names, of its own."""
    yield from _running(_steersman_keys, tmp_path_factory.mktemp("steersman"), pytestconfig, {})


@pytest.fixture
def steersman(
    _steersman_keys: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[ThreadedEnvironment]:
    """A server of the test's own, which is empty."""
    arguments: dict[str, Any] = {}
    for mark in request.node.iter_markers("steersman"):
        arguments = {**mark.kwargs, **arguments}
    yield from _running(_steersman_keys, tmp_path_factory.mktemp("steersman"), request.config, arguments)


def _running(
    keys_folder: Path, folder: Path, config: pytest.Config, arguments: dict[str, Any]
) -> Iterator[ThreadedEnvironment]:
    from steersman.testing import ThreadedEnvironment, copy_keys

    own = [config.rootpath / each for each in arguments.pop("crds", ())]
    paths = [*config.getini("steersman_crds"), *own]
    copy_keys(keys_folder, folder)
    with ThreadedEnvironment(folder=folder, **arguments) as environment:
        if paths:
            environment.apply_definitions(*paths)
        yield environment
