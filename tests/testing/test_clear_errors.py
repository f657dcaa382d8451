"""Mistakes in tests give errors of one sentence that says what to do."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steersman.testing import Pool, ThreadedEnvironment, User, pytest_plugin
from steersman.testing.definitions import read


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ThreadedEnvironment(users=[User("admin", ("system:masters",)), User("jane")]) as found:
        yield found


@pytest.mark.parametrize("package", ["kubernetes", "kr8s", "lightkube"])
def test_a_client_whose_package_is_missing_says_what_to_install(
    environment: ThreadedEnvironment, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    with pytest.raises(ImportError) as caught:
        getattr(environment, package)()
    assert str(caught.value) == (
        f"{package}() makes a client of the package {package}, which is not installed: pip install {package}"
    )
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("ask", ["token", "client", "kubeconfig"])
def test_an_unknown_user_is_reported_with_the_known_ones(environment: ThreadedEnvironment, ask: str) -> None:
    with pytest.raises(KeyError) as caught:
        getattr(environment, ask)("jan")
    assert str(caught.value) == (
        "there is no user 'jan'; known are admin, jane, did you mean jane?; User('jan', groups=(...)) in the place of "
        "the name is anybody"
    )


def test_a_missing_file_of_definitions_is_reported(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"there are no CustomResourceDefinitions, as it is not there: '.*crds'"
    ):
        read([tmp_path / "crds"])


def test_an_unknown_argument_is_reported_with_a_suggestion() -> None:
    with pytest.raises(TypeError, match=r"'storag' is no argument of .*, did you mean storage\?"):
        ThreadedEnvironment(storag="memory").start()


def test_a_mark_with_an_argument_that_has_no_name_is_refused() -> None:
    mark = pytest.mark.steersman("crds").mark
    request: Any = SimpleNamespace(node=SimpleNamespace(iter_markers=lambda name: [mark]))
    server = pytest_plugin._server(Pool(Path), request, {})
    with pytest.raises(pytest.UsageError, match="takes arguments by their names alone, not 'crds'"), server:
        pass


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"users": ["jane"]}, "users: 'jane' is no User: User('jane', groups=(...)) is one"),
        ({"users": "jane"}, "users: 'j' is no User: User('j', groups=(...)) is one"),
        ({"nodes": "3"}, "nodes: '3' is no whole number"),
        ({"nodes": None}, "nodes: None is no whole number"),
    ],
)
def test_an_argument_of_another_type_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        ThreadedEnvironment(**arguments)
    assert str(caught.value) == message


def test_an_unknown_resource_is_reported_with_a_suggestion(environment: ThreadedEnvironment) -> None:
    with pytest.raises(ValueError, match="the server has no resource 'podz', did you mean pod"):
        environment.wait_for("podz", "a")
