"""Tests of the search in the published files of a project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools.published import charts_of, documents, files_of, folder_of

LIST = b"""
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: b, creationTimestamp: 2026-01-02T03:04:05Z}}
---
{apiVersion: v1, kind: Secret, metadata: {name: c}}
---
{kind: no version}
"""
HELM = """\
#!/bin/sh
test "$3" = "$BROKEN" && exit 1
echo "rendered: $3"
"""


def test_objects_are_found_in_lists_and_beside_other_documents() -> None:
    assert [each["metadata"]["name"] for each in documents(LIST)] == ["a", "b", "c"]
    assert not list(documents(b"kind: [ {{ if }}"))


def test_a_folder_is_its_own_source_without_templates_and_test_data(tmp_path: Path) -> None:
    (tmp_path / "testdata").mkdir()
    for name, text in (("a", LIST), ("b", b"kind: {{ .Kind }}"), ("c", b"other"), ("testdata/d", LIST)):
        (tmp_path / f"{name}.yaml").write_bytes(text)
    assert folder_of(str(tmp_path)) == tmp_path
    assert list(files_of(tmp_path, b"kind:")) == [(tmp_path / "a.yaml", LIST)]


def test_charts_that_say_something_of_it_are_rendered_where_there_is_a_helm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helm = tmp_path / "helm"
    helm.write_text(HELM)
    helm.chmod(0o755)
    for name, text in (("one", "wanted"), ("two", "wanted"), ("three", "other")):
        (tmp_path / name / "templates").mkdir(parents=True)
        (tmp_path / name / "Chart.yaml").write_text("name: x")
        (tmp_path / name / "templates" / "a.yaml").write_text(text)
    monkeypatch.setenv("STEERSMAN_HELM", str(helm))
    monkeypatch.setenv("BROKEN", str(tmp_path / "two"))
    [found] = charts_of(tmp_path, b"wanted")
    assert found == (tmp_path / "one" / "Chart.yaml", f"rendered: {tmp_path / 'one'}\n".encode())
    monkeypatch.delenv("STEERSMAN_HELM")
    monkeypatch.setenv("PATH", os.devnull)
    assert not list(charts_of(tmp_path, b"wanted"))
