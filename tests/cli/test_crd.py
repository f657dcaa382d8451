"""`steersman crd`: the definitions of a module's classes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from steersman import definition_of
from steersman.cli import main

MODULE = """
import msgspec
from steersman import Rule, resource, version_of

@resource("e.x/v1")
class {0}Ship(msgspec.Struct):
    size: int = 1

@version_of({0}Ship, "v2")
class New(msgspec.Struct):
    size: int = 1

@resource("e.x/v1", namespaced=False)
class {0}Buoy(msgspec.Struct):
    color: str = "red"

Same = {0}Buoy
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module in the current folder."""
    name = f"declared_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE.format("Own"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    return name


def run(where: str) -> Result:
    return CliRunner().invoke(main, ["crd", where])


def test_every_class_of_a_module_is_there_once_in_all_its_versions(module: str) -> None:
    result = run(module)
    assert result.exit_code == 0, result.stderr
    found = list(yaml.safe_load_all(result.stdout))
    assert [each["metadata"]["name"] for each in found] == ["ownships.e.x", "ownbuoys.e.x"]
    assert [each["name"] for each in found[0]["spec"]["versions"]] == ["v1", "v2"]


def test_one_class_is_asked_for_by_its_name(module: str) -> None:
    assert yaml.safe_load(run(f"{module}:OwnBuoy").stdout)["spec"]["scope"] == "Cluster"
    flunder = yaml.safe_load(run("examples.flunders.types:Flunder").stdout)
    from examples.flunders.types import Flunder

    assert flunder == definition_of(Flunder)


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("no.such.module", "there is no module"),
        ("no/such.py", "there is no module no/such.py, did you mean no.such?"),
        ("examples.flunders.types:Whale", "no class in it is declared"),
    ],
)
def test_what_is_not_there_is_told(where: str, told: str) -> None:
    result = run(where)
    assert result.exit_code == 1
    assert told in result.stderr


def test_a_definition_that_no_server_would_take_is_told(tmp_path: Path, module: str) -> None:
    Path(f"wrong_{tmp_path.name}.py").write_text(
        "import msgspec\nfrom steersman import Rule, resource\n"
        '@resource("e.x/v1", rules=[Rule("self.nothing")])\nclass Wrong(msgspec.Struct):\n    size: int = 1\n'
    )
    result = run(f"wrong_{tmp_path.name}")
    assert result.exit_code == 1
    assert "undefined field 'nothing'" in result.stderr
