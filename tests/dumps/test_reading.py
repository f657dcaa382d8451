"""Files of dumps with several documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.dumps import reading
from steersman.dumps.errors import DumpError
from steersman.dumps.reading import read_dump

ONE = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"}}'


def _names(folder: Path, text: str) -> list[str]:
    (file := folder / "dump.json").write_text(text)
    return [each.name for each in read_dump(file).objects]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (ONE % "a" + ONE % "b" + "\n" + ONE % "c", ["a", "b", "c"]),
        ('{"apiVersion":"v1","kind":"List","items":[' + ONE % "a" + "]}\n" + ONE % "b", ["a", "b"]),
        (ONE % "a" + "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}", ["a", "b"]),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n" + ONE % "b", ["a", "b"]),
        ('{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a",},}', ["a"]),
    ],
)
def test_documents_are_read_as_kubectl_reads_them(tmp_path: Path, text: str, names: list[str]) -> None:
    assert _names(tmp_path, text) == names


@pytest.mark.parametrize("text", [ONE % "a" + ",", ONE % "a" + ONE % "b" + "\n---\n" + ONE % "c", ONE % "\\ud800"])
def test_what_is_neither_json_nor_yaml_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DumpError, match=r"dump\.json: "):
        _names(tmp_path, text)


def test_documents_that_are_divided_count_as_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_YAML_BYTES", len(ONE) * 2)
    assert _names(tmp_path, ONE % "a") == ["a"]
    with pytest.raises(DumpError, match="of YAML"):
        _names(tmp_path, (ONE % "a") * 3)
