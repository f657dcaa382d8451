"""Dumps: forms that are read, and bad ones that get a clear error."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from steersman.client.resources import CONFIG_MAPS
from steersman.dumps.errors import DumpError
from steersman.dumps.reading import MOST_BYTES
from steersman.explain.dump import load_dump

OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}}

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in pairwise("abcdefgh")
)


async def test_lists_documents_and_folders_are_read(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [OBJECT]}))
    (tmp_path / "deep").mkdir()
    typed = {"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"metadata": {"name": "b", "namespace": "n"}}]}
    (tmp_path / "deep" / "configmaps.json").write_text(json.dumps(typed))
    (tmp_path / "more.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: m}\n---\n")
    (tmp_path / "logs.txt").write_text("no object")
    world = load_dump(tmp_path)
    assert sorted(each.metadata.name for each in await world.list(CONFIG_MAPS)) == ["a", "b", "c"]
    assert [each.metadata.name for each in await world.list(CONFIG_MAPS, "m")] == ["c"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (BOMB, "aliasing"),
        ('{"kind":"List","items":' + "[" * 100_000, "max depth"),
        ('{"kind":"List","items":[{"kind":"A","apiVersion":"v1","a":' + "[" * 500 + "]" * 500 + "}]}", "max depth"),
        ('{"kind":"A","apiVersion":"v1","a":' + "[" * 500 + "]" * 500 + "}", "max depth"),
        ("a: [", "line"),
        ('{"kind": 3}', "Expected `str`"),
        ("just text", "Expected `object`"),
        ("", "no objects"),
    ],
    ids=["bomb", "deep", "deep item", "deep object", "syntax", "type", "text", "empty"],
)
def test_bad_dumps_get_one_line(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "dump"
    file.write_text(text)
    with pytest.raises(DumpError, match=problem):
        load_dump(file)


def test_too_large_dumps_are_refused_before_they_are_decoded(tmp_path: Path) -> None:
    file = tmp_path / "dump.json"
    with file.open("wb") as out:
        out.write(b"{")
        out.truncate(MOST_BYTES + 2)
    with pytest.raises(DumpError, match="at most 512 MiB"):
        load_dump(file)
    with file.open("r+b") as out:
        out.write(b"a")
        out.truncate((64 << 20) + 1)
    with pytest.raises(DumpError, match="MiB of YAML"):
        load_dump(file)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match="does not exist"):
        load_dump(tmp_path / "gone")
