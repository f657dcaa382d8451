"""`steersman kubeconfig`: merging, preservation of other entries, and errors."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from steersman.cli import main
from steersman.cli.merged_context import merge, remove_contexts, replaced_server, without
from steersman.cli.up.process_file import claim

ADMIN: dict[str, Any] = {
    "clusters": [{"name": "steersman", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "kubernetes-admin", "user": {"client-key-data": "a2V5"}}],
    "contexts": [{"name": "steersman", "context": {"cluster": "steersman", "user": "kubernetes-admin"}}],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A server's folder after a start."""
    found = tmp_path / "data"
    found.mkdir()
    (found / "admin.kubeconfig").write_text(yaml.safe_dump(ADMIN))
    return found


def run(folder: Path, target: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["kubeconfig", "--data-dir", str(folder), "--file", str(target), *arguments])


def test_a_new_file_holds_the_context_and_only_its_owner_reads_it(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "config"
    result = run(folder, target)
    assert result.exit_code == 0, result.stderr
    config = yaml.safe_load(target.read_text())
    assert config["current-context"] == "steersman"
    assert config["clusters"] == [{"name": "steersman", "cluster": {"server": "https://127.0.0.1:1"}}]
    assert config["contexts"] == [{"name": "steersman", "context": {"cluster": "steersman", "user": "steersman"}}]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_what_is_there_stays(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "config"
    other: dict[str, Any] = {
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


def test_merging_again_replaces_and_adds_nothing(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "config"
    run(folder, target)
    changed = ADMIN | {"clusters": [{"name": "steersman", "cluster": {"server": "https://127.0.0.1:2"}}]}
    (folder / "admin.kubeconfig").write_text(yaml.safe_dump(changed))
    run(folder, target)
    config = yaml.safe_load(target.read_text())
    assert [each["cluster"]["server"] for each in config["clusters"]] == ["https://127.0.0.1:2"]
    assert len(config["users"]) == len(config["contexts"]) == 1


def test_the_context_has_the_name_asked_for(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "config"
    assert run(folder, target, "--name=lab").exit_code == 0
    config = yaml.safe_load(target.read_text())
    assert config["current-context"] == config["contexts"][0]["name"] == config["users"][0]["name"] == "lab"


def test_the_first_file_of_kubeconfig_is_changed_by_default(folder: Path, tmp_path: Path) -> None:
    first = tmp_path / "first"
    environment = {"KUBECONFIG": f"{first}:{tmp_path / 'second'}"}
    result = CliRunner().invoke(main, ["kubeconfig", "--data-dir", str(folder)], env=environment)
    assert result.exit_code == 0, result.stderr
    assert first.is_file()


def test_empty_lists_in_a_config_are_no_obstacle() -> None:
    merged = merge({"clusters": None, "contexts": [], "users": None}, ADMIN, "a")
    assert [each["name"] for each in merged["clusters"]] == ["a"]


@pytest.mark.parametrize("content", ["{", "- a\n- b\n", "text"])
def test_a_file_that_is_no_kubeconfig_is_left_as_it_is(folder: Path, tmp_path: Path, content: str) -> None:
    target = tmp_path / "config"
    target.write_text(content)
    result = run(folder, target)
    assert result.exit_code == 1
    assert str(target) in result.stderr
    assert "Traceback" not in result.stderr
    assert target.read_text() == content


def test_without_a_server_it_says_so(tmp_path: Path) -> None:
    result = run(tmp_path, tmp_path / "config")
    assert result.exit_code == 1
    assert "start the server first" in result.stderr
    assert not (tmp_path / "config").exists()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[" * 800, b"clusters: 7\nusers: []\ncontexts: []", b"- a"])
@pytest.mark.parametrize("spoilt", ["admin.kubeconfig", "config"])
def test_a_damaged_file_is_told_and_nothing_is_changed(
    folder: Path, tmp_path: Path, content: bytes, spoilt: str
) -> None:
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


def test_a_link_stays_one(folder: Path, tmp_path: Path) -> None:
    real, target = tmp_path / "real", tmp_path / "config"
    real.write_text("")
    target.symlink_to(real)
    assert run(folder, target).exit_code == 0
    assert target.is_symlink()
    assert yaml.safe_load(real.read_text())["current-context"] == "steersman"


def test_a_folder_in_its_place_is_told(folder: Path, tmp_path: Path) -> None:
    result = run(folder, tmp_path)
    assert result.exit_code == 1
    assert "Is a directory" in result.stderr


@pytest.mark.parametrize("link", [False, True])
def test_the_servers_own_file_is_not_merged_into_itself(folder: Path, tmp_path: Path, link: bool) -> None:
    own = folder / "admin.kubeconfig"
    before, target = own.read_bytes(), own
    if link:
        target = tmp_path / "link"
        target.symlink_to(own)
    result = run(folder, target)
    assert result.exit_code == 0
    assert result.stdout == f"{target} is the server's own file, which has the context already: nothing was changed\n"
    assert own.read_bytes() == before


def at_home(tmp_path: Path, *named: Path) -> dict[str, str]:
    """Return the environment of a user whose KUBECONFIG names these files."""
    return {"HOME": str(tmp_path / "home"), "KUBECONFIG": ":".join(map(str, named))}


def test_after_an_export_of_the_servers_own_file_the_context_goes_where_kubectl_looks_otherwise(
    folder: Path, tmp_path: Path
) -> None:
    own, target = folder / "admin.kubeconfig", tmp_path / "home" / ".kube" / "config"
    before = own.read_bytes()
    arguments = ["kubeconfig", "--data-dir", str(folder)]
    result = CliRunner().invoke(main, arguments, env=at_home(tmp_path, own))
    assert result.exit_code == 0, result.stderr
    assert result.stdout == (
        f"context steersman is in {target} and is the current context\n"
        f"KUBECONFIG names {own}, which kubectl reads in its place: `unset KUBECONFIG` to use {target}\n"
    )
    assert yaml.safe_load(target.read_text())["current-context"] == "steersman"
    assert own.read_bytes() == before
    other = tmp_path / "other"
    result = CliRunner().invoke(main, arguments, env=at_home(tmp_path, own, other))
    assert result.stdout == f"context steersman is in {other} and is the current context\n"


def test_a_relative_path_is_told_from_the_root_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(Path("data"), Path("config"))
    assert result.stdout == f"context steersman is in {tmp_path}/config and is the current context\n"
    assert f"{tmp_path}/none/admin.kubeconfig does not exist" in run(Path("none"), Path("config")).stderr


def test_the_context_is_taken_out_wherever_it_was_put_and_nothing_else(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, home = tmp_path / "first", tmp_path / "home" / ".kube" / "config"
    other: dict[str, Any] = {
        "clusters": [{"name": "work", "cluster": {"server": "https://work"}}],
        "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": "work", "context": {"cluster": "work", "user": "me"}}],
        "current-context": "work",
        "preferences": {"colors": True},
    }
    first.write_text(yaml.safe_dump(other))
    (tmp_path / "spoilt").write_text("[")
    for target, name in ((first, "lab"), (home, "steersman")):
        assert run(folder, target, "--name", name).exit_code == 0
    environment = at_home(tmp_path, tmp_path / "spoilt", first, folder / "admin.kubeconfig", tmp_path / "none")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    own = (folder / "admin.kubeconfig").read_bytes()
    assert list(remove_contexts(folder)) == [("lab", first), ("steersman", home)]
    assert yaml.safe_load(first.read_text()) == {**other, "apiVersion": "v1", "kind": "Config", "current-context": ""}
    assert yaml.safe_load(home.read_text())["contexts"] == []
    assert (folder / "admin.kubeconfig").read_bytes() == own
    assert not (tmp_path / "none").exists()
    before = first.stat().st_mtime_ns
    assert list(remove_contexts(folder)) == []
    assert first.stat().st_mtime_ns == before


def test_a_server_is_known_by_its_authority_wherever_it_listened() -> None:
    server = {"server": "https://127.0.0.1:1", "certificate-authority-data": "one"}
    admin = {**ADMIN, "clusters": [{"name": "steersman", "cluster": server}]}
    config = merge({}, admin, "a")
    assert without(config, {**server, "certificate-authority-data": "another"}) == (config, [])
    assert without(config, {**server, "server": "https://127.0.0.1:2"})[1] == ["a"]


def test_a_user_that_another_context_has_too_stays() -> None:
    config = merge({}, ADMIN, "a")
    config["clusters"].append({"name": "b", "cluster": {"server": "https://b"}})
    config["contexts"].append({"name": "b", "context": {"cluster": "b", "user": "a"}})
    config["current-context"] = "b"
    left, names = without(config, ADMIN["clusters"][0]["cluster"])
    assert names == ["a"]
    assert [each["name"] for each in left["users"]] == ["a"]
    assert (left["current-context"], [each["name"] for each in left["contexts"]]) == ("b", ["b"])


def test_a_context_without_a_name_is_refused(folder: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        main, ["kubeconfig", "--data-dir", str(folder), "--file", str(tmp_path / "config"), "--name", ""]
    )
    assert result.exit_code == 1
    assert "--name: the context needs a name" in result.stderr
    assert not (tmp_path / "config").exists()


def test_that_no_server_runs_is_told(folder: Path, tmp_path: Path) -> None:
    assert run(folder, tmp_path / "config").stderr == f"no server is running in {folder} now\n"
    claimed = claim(folder)
    assert claimed is not None
    with claimed:
        assert run(folder, tmp_path / "config").stderr == ""


def test_that_the_context_led_to_another_server_is_told(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "config"
    assert "led to" not in run(folder, target).stderr
    assert "led to" not in run(folder, target).stderr
    other = tmp_path / "other"
    other.mkdir()
    moved = yaml.safe_dump(ADMIN).replace("127.0.0.1:1", "127.0.0.1:2")
    (other / "admin.kubeconfig").write_text(moved)
    told = run(other, target)
    assert "the context was for https://127.0.0.1:1 before; use --name to keep a context for each server" in told.stderr
    assert "led to" not in run(folder, target, "--name", "second").stderr


def test_a_server_that_listens_elsewhere_is_no_other(folder: Path) -> None:
    before = yaml.safe_load(yaml.safe_dump(ADMIN))
    before["clusters"][0]["cluster"]["certificate-authority-data"] = "Y2E="
    config = merge({}, before, "a")
    after = yaml.safe_load(yaml.safe_dump(before))
    after["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:2"
    assert replaced_server(config, after, "a") == ""
    after["clusters"][0]["cluster"]["certificate-authority-data"] = "Y2I="
    assert replaced_server(config, after, "a") == "https://127.0.0.1:1"
    assert replaced_server(config, after, "b") == ""
