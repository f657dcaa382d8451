"""Archives of dumps: members are read within bounds, and nothing of them reaches the disk."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from steersman.dumps import archives, reading
from steersman.dumps.errors import DumpError
from steersman.dumps.reading import read_dump


def config_map(name: str) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}}).encode()


def tar(members: dict[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("link.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return out.getvalue()


MEMBERS = {
    "must-gather/../../a.json": config_map("a"),
    f"must-gather/{'deep/' * 60}b.yaml": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: ns}\n",
    "must-gather/logs.txt": b"x" * 100_000,
    "must-gather/version.json": b'{"gitVersion": "v1.34.2"}',
    "must-gather/custom.json": b"[" + config_map("c") + b"]",
}


def packed(kind: str) -> bytes:
    match kind:
        case "tar":
            return tar(MEMBERS)
        case "tar of GNU":
            return tar(MEMBERS, tarfile.GNU_FORMAT)
        case "tar.gz":
            return gzip.compress(tar(MEMBERS))
        case "parts":
            whole = tar(MEMBERS)
            return gzip.compress(whole[:5000]) + gzip.compress(whole[5000:])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in MEMBERS.items():
            archive.writestr(name, data)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["tar", "tar of GNU", "tar.gz", "parts", "zip"])
def test_objects_of_archives_are_read(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "bundle"
    file.write_bytes(packed(kind))
    assert sorted(each.name for each in read_dump(file).objects) == ["a", "b", "c"]
    assert [each.name for each in tmp_path.iterdir()] == ["bundle"]


def test_a_packed_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "dump.json.gz"
    file.write_bytes(gzip.compress(config_map("a")))
    assert [each.name for each in read_dump(file).objects] == ["a"]
    assert [each.name for each in read_dump(tmp_path).objects] == ["a"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (gzip.compress(tar(MEMBERS))[:-200], "ends early|damaged"),
        (tar(MEMBERS)[:4000], "ends early"),
        (b"\x1f\x8b\x08\x00rubbish that is no gzip data", "damaged gzip"),
        (b"PK\x03\x04rubbish", "damaged zip"),
    ],
    ids=["cut gzip", "cut tar", "no gzip", "no zip"],
)
def test_damaged_archives_are_named(tmp_path: Path, data: bytes, problem: str) -> None:
    file = tmp_path / "bundle"
    file.write_bytes(data)
    with pytest.raises(DumpError, match=problem) as caught:
        read_dump(file)
    assert str(file) in str(caught.value)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_UNPACKED", 1 << 20)
    monkeypatch.setattr(reading, "MOST_BYTES", 1 << 19)
    file = tmp_path / "bundle"
    zeros = b"0" * (3 << 20)
    file.write_bytes(gzip.compress(tar({"logs.txt": zeros})))
    with pytest.raises(DumpError, match="a member of 3145728 bytes"):
        read_dump(file)
    file.write_bytes(gzip.compress(tar({f"{each}.txt": zeros[: 1 << 19] for each in range(3)})))
    with pytest.raises(DumpError, match="unpacks to more than"):
        read_dump(file)
    file.write_bytes(gzip.compress(tar({"a.json": b"{" + zeros[: (1 << 19) + 1]})))
    with pytest.raises(DumpError, match=r"a\.json: a dump may have at most"):
        read_dump(file)


def test_a_malformed_object_among_other_files_is_named(tmp_path: Path) -> None:
    (tmp_path / "version.yaml").write_text("kind: 3\nother: data\n")
    (tmp_path / "bad.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: n}\n")
    with pytest.raises(DumpError, match=r"bad\.yaml: Expected `str`, got `bool` - at `\$\.metadata\.namespace`"):
        read_dump(tmp_path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_unpack_a_little_into_much_at_once_are_refused(tmp_path: Path, method: int) -> None:
    file = tmp_path / "bundle.zip"
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("a.json", config_map("a"))
    with pytest.raises(DumpError, match=r"a\.json: only deflated members"):
        read_dump(file)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damaged_zip_archives_are_refused_wherever_the_damage_is(tmp_path: Path, method: int) -> None:
    out, file = io.BytesIO(), tmp_path / "bundle.zip"
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("\u00e9.json", config_map("a" * 50))
    whole = out.getvalue()
    refused = 0
    for at in range(4, len(whole)):
        file.write_bytes(whole[:at] + bytes((whole[at] ^ 0xFF,)) + whole[at + 1 :])
        try:
            read_dump(file)
        except DumpError:
            refused += 1
    assert refused > 10


def test_members_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_MEMBERS", 2)
    file = tmp_path / "bundle"
    for kind in ("tar", "zip"):
        file.write_bytes(packed(kind))
        with pytest.raises(DumpError, match="more than 2 members"):
            read_dump(file)


def test_links_may_lead_to_files_of_the_same_folder_alone(tmp_path: Path) -> None:
    folder, other = tmp_path / "dump", tmp_path / "other.json"
    folder.mkdir()
    (folder / "a.txt").write_bytes(config_map("a"))
    (folder / "a.json").symlink_to("a.txt")
    (folder / "gone.json").symlink_to("nowhere")
    (folder / "loop.json").symlink_to("loop.json")
    (folder / "again").symlink_to(folder)
    assert [each.name for each in read_dump(folder).objects] == ["a"]
    other.write_bytes(config_map("b"))
    (folder / "b.json").symlink_to(other)
    with pytest.raises(DumpError, match=r"b\.json: a link that leads out"):
        read_dump(folder)
