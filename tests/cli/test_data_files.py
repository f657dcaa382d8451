"""Files of a data folder that are links or another user's: every command refuses them and writes nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from steersman.cli import main
from steersman.cli.envtest import etcd
from steersman.controlplane.data_files import FILE, FILES
from steersman.controlplane.data_folder import make_data_folder
from steersman.controlplane.options import Options, OptionsError
from steersman.machinery.private_files import make_folders, open_own
from steersman.testing import ServerProcess

NOBODY = 65534
NAMES = (*FILES, FILE, f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal", f"{FILE}.lock", f"{FILE}.new")
PRECIOUS = "precious"

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")


def link(path: Path) -> None:
    target = path.parent.parent / "precious"
    target.write_text(PRECIOUS)
    path.symlink_to(target)


def dangling(path: Path) -> None:
    path.symlink_to(path.parent.parent / "precious")


def foreign(path: Path) -> None:
    path.write_text(PRECIOUS)
    path.chmod(0o666)
    os.chown(path, NOBODY, NOBODY)


SPOILT = [
    pytest.param(link, id="link"),
    pytest.param(dangling, id="dangling-link"),
    pytest.param(foreign, id="foreign", marks=as_root),
]


def serve(folder: Path) -> str:
    with pytest.raises(OptionsError) as refused:
        make_data_folder(Options(data_dir=folder))
    return str(refused.value)


def command(*arguments: str) -> Callable[[Path], str]:
    def run(folder: Path) -> str:
        result = CliRunner().invoke(main, [*arguments, "--data-dir", str(folder)])
        assert result.exit_code == 1, result.output
        return result.output

    return run


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(serve, id="serve"),
        pytest.param(command("up", "--secure-port=0"), id="up"),
        pytest.param(command("up", "--secure-port=0", "--detach"), id="up-detached"),
        pytest.param(command("status"), id="status"),
        pytest.param(command("down"), id="down"),
        pytest.param(command("reset", "--yes"), id="reset"),
        pytest.param(command("storage", "check"), id="check"),
        pytest.param(command("storage", "save", "/nowhere/snapshot"), id="save"),
        pytest.param(command("storage", "restore", "/nowhere/snapshot"), id="restore"),
    ],
)
@pytest.mark.parametrize("spoil", SPOILT)
def test_each_file_is_refused_by_each_command(
    tmp_path: Path, spoil: Callable[[Path], None], refusal: Callable[[Path], str]
) -> None:
    for number, name in enumerate(NAMES):
        folder = tmp_path / str(number) / "data"
        folder.mkdir(mode=0o700, parents=True)
        spoil(folder / name)
        refused = refusal(folder)
        assert name in refused
        assert "is not followed" in refused or f"another user (uid {NOBODY})" in refused, refused
        assert os.listdir(folder) == [name]
        target = folder.parent / "precious"
        assert not target.exists() or target.read_text() == PRECIOUS


@pytest.mark.parametrize("name", ["etcd.lock", "etcd.claim"])
@pytest.mark.parametrize("spoil", SPOILT)
def test_the_etcd_of_envtest_refuses_its_files_too(tmp_path: Path, spoil: Callable[[Path], None], name: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    spoil(folder / name)
    with pytest.raises(etcd.Refused):
        etcd.hold(str(folder))
    target = tmp_path / "precious"
    assert not target.exists() or target.read_text() == PRECIOUS


@as_root
@pytest.mark.parametrize("through_link", [False, True])
def test_a_folder_that_another_user_has_prepared_is_refused(tmp_path: Path, through_link: bool) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o777)
    if through_link:
        (tmp_path / "link").symlink_to(folder)
        os.chown(tmp_path / "link", NOBODY, NOBODY, follow_symlinks=False)
        folder = tmp_path / "link"
    else:
        os.chown(folder, NOBODY, NOBODY)
    for refusal in (serve, command("up", "--secure-port=0"), command("down"), command("status")):
        assert f"{folder} belongs to another user (uid {NOBODY})" in refusal(folder)
    if not through_link:
        with pytest.raises(etcd.Refused, match="another user"):
            etcd.hold(str(folder))
    assert os.listdir(folder) == []


def test_the_list_has_all_that_lies_in_a_folder(make_server: Callable[..., ServerProcess]) -> None:
    server = make_server()
    server.start()
    names = os.listdir(server.folder)
    server.stop()
    assert {name for name in names if name not in FILES and not name.startswith(FILE)} == set()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_folders_that_are_made_are_for_their_owner_only(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        make_folders(tmp_path / "a" / "b" / "c")
        etcd.hold(str(tmp_path / "d" / "e"))
        make_data_folder(Options(data_dir=tmp_path / "f" / "g"))
        os.close(open_own(tmp_path / "file", os.O_RDWR | os.O_CREAT))
    finally:
        os.umask(before)
    made = [each for each in tmp_path.rglob("*") if each.is_dir()]
    assert len(made) == 7
    assert {stat.S_IMODE(each.stat().st_mode) for each in made} == {0o700}
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600
