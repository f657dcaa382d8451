"""`steersman kubeconfig`: merges, keeps what is there, and tells what is wrong."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from steersman.cli import main
from steersman.cli.kubeconfig import merge

ADMIN = {
    "clusters": [{"name": "steersman", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "kubernetes-admin", "user": {"client-key-data": "a2V5"}}],
    "contexts": [{"name": "steersman", "context": {"cluster": "steersman", "user": "kubernetes-admin"}}],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A server's folder, as a start leaves it."""
    found = tmp_path / "data"
    found.mkdir()
    (found / "admin.kubeconfig").write_text(yaml.safe_dump(ADMIN))
    return found


def run(folder: Path, target: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["kubeconfig", "--data-dir", str(folder), "--file", str(target), *arguments])


def test_a_new_file_holds_the_context_and_only_its_owner_reads_it(folder: Path, tmp_path: Path):
    target = tmp_path / "new" / "config"
    result = run(folder, target)
    assert result.exit_code == 0, result.stderr
    config = yaml.safe_load(target.read_text())
    assert config["current-context"] == "steersman"
    assert config["clusters"] == [{"name": "steersman", "cluster": {"server": "https://127.0.0.1:1"}}]
    assert config["contexts"] == [{"name": "steersman", "context": {"cluster": "steersman", "user": "steersman"}}]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_what_is_there_stays(folder: Path, tmp_path: Path):
    target = tmp_path / "config"
    other = {
        "clusters": [{"name": "work", "cluster": {"server": "https://work"}}],
        "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": "work", "context": {"cluster": "work", "user": "me", "namespace": "mine"}}],
        "current-context": "work",
        "preferences": {"colors": True},
    }
    target.write_text(yaml.safe_dump(other))
    assert run(folder, target).exit_code == 0
    config = yaml.safe_load(target.read_text())
    for key in ("clusters", "users", "contexts"):
        assert config[key][0] == other[key][0]
        assert len(config[key]) == 2
    assert config["preferences"] == {"colors": True}
    assert config["current-context"] == "steersman"


def test_merging_again_replaces_and_adds_nothing(folder: Path, tmp_path: Path):
    target = tmp_path / "config"
    run(folder, target)
    changed = ADMIN | {"clusters": [{"name": "steersman", "cluster": {"server": "https://127.0.0.1:2"}}]}
    (folder / "admin.kubeconfig").write_text(yaml.safe_dump(changed))
    run(folder, target)
    config = yaml.safe_load(target.read_text())
    assert [each["cluster"]["server"] for each in config["clusters"]] == ["https://127.0.0.1:2"]
    assert len(config["users"]) == len(config["contexts"]) == 1


def test_the_context_has_the_name_asked_for(folder: Path, tmp_path: Path):
    target = tmp_path / "config"
    assert run(folder, target, "--name=lab").exit_code == 0
    config = yaml.safe_load(target.read_text())
    assert config["current-context"] == config["contexts"][0]["name"] == config["users"][0]["name"] == "lab"


def test_the_first_file_of_kubeconfig_is_changed_by_default(folder: Path, tmp_path: Path):
    first = tmp_path / "first"
    environment = {"KUBECONFIG": f"{first}:{tmp_path / 'second'}"}
    result = CliRunner().invoke(main, ["kubeconfig", "--data-dir", str(folder)], env=environment)
    assert result.exit_code == 0, result.stderr
    assert first.is_file()


def test_empty_lists_in_a_config_are_no_obstacle():
    merged = merge({"clusters": None, "contexts": [], "users": None}, ADMIN, "a")
    assert [each["name"] for each in merged["clusters"]] == ["a"]


@pytest.mark.parametrize("content", ["{", "- a\n- b\n", "text"])
def test_a_file_that_is_no_kubeconfig_is_left_as_it_is(folder: Path, tmp_path: Path, content: str):
    target = tmp_path / "config"
    target.write_text(content)
    result = run(folder, target)
    assert result.exit_code == 1
    assert str(target) in result.stderr
    assert "Traceback" not in result.stderr
    assert target.read_text() == content


def test_without_a_server_it_says_so(tmp_path: Path):
    result = run(tmp_path, tmp_path / "config")
    assert result.exit_code == 1
    assert "start the server first" in result.stderr
    assert not (tmp_path / "config").exists()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[" * 800, b"clusters: 7\nusers: []\ncontexts: []", b"- a"])
@pytest.mark.parametrize("spoilt", ["admin.kubeconfig", "config"])
def test_a_damaged_file_is_told_and_nothing_is_changed(folder: Path, tmp_path: Path, content: bytes, spoilt: str):
    target = tmp_path / "data" / "config"
    target.write_text(yaml.safe_dump(ADMIN))
    (folder / spoilt).write_bytes(content)
    if spoilt == "config" and not content:
        pytest.skip("an empty kubeconfig is one with nothing in it")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = run(folder, target)
    assert result.exit_code == 1
    assert result.stderr.startswith("steersman: ")
    assert result.stderr.count("\n") == 1
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_link_stays_one(folder: Path, tmp_path: Path):
    real, target = tmp_path / "real", tmp_path / "config"
    real.write_text("")
    target.symlink_to(real)
    assert run(folder, target).exit_code == 0
    assert target.is_symlink()
    assert yaml.safe_load(real.read_text())["current-context"] == "steersman"


def test_a_folder_in_its_place_is_told(folder: Path, tmp_path: Path):
    result = run(folder, tmp_path)
    assert result.exit_code == 1
    assert "Is a directory" in result.stderr


@pytest.mark.parametrize("link", [False, True])
def test_the_servers_own_file_is_not_merged_into_itself(folder: Path, tmp_path: Path, link: bool):
    own = folder / "admin.kubeconfig"
    before, target = own.read_bytes(), own
    if link:
        target = tmp_path / "link"
        target.symlink_to(own)
    result = CliRunner().invoke(main, ["kubeconfig", "--data-dir", str(folder)], env={"KUBECONFIG": str(target)})
    assert result.exit_code == 1
    assert f"{target} is the server's own file, which has the context already" in result.stderr
    assert own.read_bytes() == before


def test_a_context_without_a_name_is_refused(folder: Path, tmp_path: Path):
    result = CliRunner().invoke(
        main, ["kubeconfig", "--data-dir", str(folder), "--file", str(tmp_path / "config"), "--name", ""]
    )
    assert result.exit_code == 1
    assert "--name: the context needs a name" in result.stderr
    assert not (tmp_path / "config").exists()
