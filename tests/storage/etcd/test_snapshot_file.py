"""Files of etcd: one of a real member is read, and no damage makes the reader walk on or fail otherwise."""

from __future__ import annotations

import gzip
import random
import struct
from contextlib import suppress
from pathlib import Path

import pytest

from steersman.storage.etcd.snapshot_file import SnapshotError, is_snapshot, read_snapshot

MEMBER = gzip.decompress((Path(__file__).parent / "member.db.gz").read_bytes())
"""The file of a member of etcd 3.6 on which kube-apiserver has made namespaces, a Deployment and deleted a ConfigMap."""
MOST = 1 << 30


def file(folder: Path, data: bytes) -> Path:
    path = folder / "db"
    path.write_bytes(data)
    return path


def test_present_values_are_read(tmp_path: Path) -> None:
    assert is_snapshot(MEMBER[:32])
    found = read_snapshot(file(tmp_path, MEMBER), MOST)
    assert b"web" in found[b"/registry/deployments/team/web"].value
    assert found[b"/registry/pods/team/p"].value.startswith(b"k8s\0")
    assert b"/registry/configmaps/team/a" not in found  # it was deleted
    with pytest.raises(SnapshotError, match="more than 0 MiB"):
        read_snapshot(tmp_path / "db", 1000)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "empty"),
        (MEMBER[:4096], "not in the file"),
        (b"\0" * 8192, "no intact meta page"),
        (MEMBER[:40] + b"x" + MEMBER[41:4096] + b"\0" * 4096, "no intact meta page"),
    ],
    ids=["empty", "cut", "zeros", "changed"],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes, problem: str) -> None:
    with pytest.raises(SnapshotError, match=problem):
        read_snapshot(file(tmp_path, data), MOST)


def test_damage_is_an_error_or_harmless(tmp_path: Path) -> None:
    chance = random.Random(7)
    used = len(MEMBER.rstrip(b"\0"))
    for _ in range(40):
        data = bytearray(MEMBER[: used + 4096])
        for _ in range(200):
            data[chance.randrange(8192, used)] = chance.randrange(256)
        with suppress(SnapshotError):
            read_snapshot(file(tmp_path, bytes(data)), MOST)


def test_a_tree_of_circles_is_refused_at_once(tmp_path: Path) -> None:
    """Each of two branches has the other twice, so that a walk without memory would take 2 to the power of its depth."""
    data = bytearray(MEMBER)
    root = struct.unpack_from("<Q", data, 32)[0]
    for page, child in ((root, root + 1), (root + 1, root)):
        at = page * 4096
        struct.pack_into("<QHHI", data, at, page, 1, 2, 0)
        for element in range(2):
            struct.pack_into("<IIQ", data, at + 16 + element * 16, 0, 0, child)
    other = struct.unpack_from("<Q", data, 4096 + 32)[0]
    data[other * 4096 : other * 4096 + 32] = data[root * 4096 : root * 4096 + 32]
    with pytest.raises(SnapshotError, match="damaged"):
        read_snapshot(file(tmp_path, bytes(data)), MOST)


def test_elements_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    """A page of many elements, each with all of its bytes, would take the time of the square of its size."""
    data = bytearray(MEMBER)
    roots = {struct.unpack_from("<Q", data, meta + 32)[0] for meta in (0, 4096)}
    leaf = next(each for each in range(2, 100) if each not in roots)
    for page in roots:
        struct.pack_into("<QHHI", data, page * 4096, page, 2, 1, 0)
        struct.pack_into("<IIII3sQQ", data, page * 4096 + 16, 1, 16, 3, 16, b"key", leaf, 0)
    struct.pack_into("<QHHI", data, leaf * 4096, leaf, 2, 100, 0)
    for element in range(100):
        struct.pack_into("<IIII", data, leaf * 4096 + 16 + element * 16, 0, 1616 - 16 - element * 16, 17, 2000)
    data[leaf * 4096 + 1616 : leaf * 4096 + 4096] = b"\0" * 2480
    with pytest.raises(SnapshotError, match="damaged leaf"):
        read_snapshot(file(tmp_path, bytes(data)), MOST)
