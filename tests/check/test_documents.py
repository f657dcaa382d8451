"""Reading of documents, and the lines of fields in them."""

from __future__ import annotations

import io
import os
import sys
import time
from pathlib import Path

import pytest

from steersman.check import documents
from steersman.check.documents import InputError, read
from steersman.machinery.codec.yaml_positions import lines_of, steps_of

TWO = "# first\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n---\nkind: ConfigMap\napiVersion: v1\n"


def test_documents_have_their_lines_and_numbers(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(TWO)
    found, findings = read([str(file)])
    assert [(each.line, each.number, each.name) for each in found] == [(2, 0, "a"), (7, 2, "")]
    assert findings == []


def test_lists_are_taken_apart_and_json_documents_may_follow_each_other(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    one = '{"apiVersion": "v1", "kind": "Secret"}'
    file.write_text(f'{{"apiVersion": "v1", "kind": "List", "items": [{one}, {one}]}}\n\n{one}')
    found, findings = read([str(file)])
    assert [(each.kind, each.path, each.line) for each in found] == [
        ("Secret", ("items", "0"), 1),
        ("Secret", ("items", "1"), 1),
        ("Secret", (), 3),
    ]
    assert findings == []


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("apiVersion: v1\nkind: [", 3, "while parsing a flow node"),
        ("apiVersion: v1\nkind: a\n---\nx: 1", 4, "the document has no kind and apiVersion"),
        ("kind: Pod", 1, "the document has no apiVersion"),
        ("metadata: {name: {{ .Release.Name }}}", 1, "templates are read with the folder of their chart"),
        ("[1]", 1, "the document has no kind and apiVersion"),
        ("a: \xff\x00", 1, "control characters"),
        ('{"apiVersion": "v1", "kind": NaN, ]}', 1, "NaN is no number of JSON"),
        ('{"a":' * 20_000, 1, "exceeded max depth"),
        ("{a: " * 20_000, 1, "exceeded max depth"),
        ("a: &a [x]\nb: *c", 1, "unknown anchor"),
    ],
)
def test_what_is_no_document_is_a_finding(tmp_path: Path, text: str, line: int, message: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    findings = read([str(file)])[1]
    assert [each.rule.value for each in findings] == ["Unreadable"]
    assert (findings[0].line, message in findings[0].message) == (line, True), findings[0]


def test_keys_that_are_repeated_do_not_hide_the_document(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("apiVersion: v1\nkind: Secret\nkind: ConfigMap\n")
    found, _ = read([str(file)])
    assert [(each.kind, each.problems) for each in found] == [
        ("ConfigMap", ['line 3: key "kind" already set in map']),
    ]


def test_other_files_of_a_folder_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "a.yaml").write_text(TWO)
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.yml").write_text(TWO)
    found, findings = read([str(tmp_path)])
    assert {each.source.name for each in found} == {str(tmp_path / "deep" / "a.yml")}
    assert findings == []


def test_documents_of_folders_that_are_almost_objects_are_findings(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: Secret\nmetadata: {name: a}\n---\napiVersion: v1\nmetadata: {name: b}\n")
    (tmp_path / "values.yaml").write_text("kind: Deployment\nreplicas: 3\n")
    assert [(each.line, each.message) for each in read([str(tmp_path)])[1]] == [
        (1, "the document has no apiVersion"),
        (4, "the document has no kind"),
    ]


def test_an_empty_standard_input_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n---\n")))
    with pytest.raises(InputError, match="standard input has no documents"):
        read(["-"])


def test_a_folder_without_manifests_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    with pytest.raises(InputError, match=f"{tmp_path} has no manifests"):
        read([str(tmp_path)])
    assert read([str(tmp_path)], needs_all=False) == ([], []), "there may have been none before"


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TWO.encode())))
    assert [each.source.name for each in read(["-"])[0]] == ["stdin", "stdin"]


@pytest.mark.parametrize(("file", "tool"), [("Chart.yaml", "helm"), ("kustomization.yaml", "kustomize")])
def test_charts_and_kustomizations_are_rendered_by_their_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, tool: str
) -> None:
    folder, tools = tmp_path / "app", tmp_path / "tools"
    folder.mkdir()
    tools.mkdir()
    (folder / file).write_text("")
    monkeypatch.setenv("PATH", str(tools))
    with pytest.raises(InputError, match="not installed: pipe its output into `steersman check -`"):
        read([str(folder)])
    program = tools / tool
    program.write_text(f"#!/bin/sh\necho 'apiVersion: v1'\necho 'kind: {tool}'\necho \"metadata: {{name: $1}}\"\n")
    program.chmod(0o755)
    found, _ = read([str(folder)])
    assert [(each.kind, each.name) for each in found] == [(tool, "template" if tool == "helm" else "build")]
    program.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    with pytest.raises(InputError, match=rf"{tool} .*: broken"):
        read([str(folder)])


def test_charts_and_kustomizations_in_folders_are_rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("helm", "kustomize"):
        (tools / tool).write_text(f"#!/bin/sh\nprintf 'apiVersion: v1\\nkind: {tool}\\n'\n")
        (tools / tool).chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    deploy = tmp_path / "deploy"
    for file, text in (
        ("a.yaml", TWO),
        ("chart/Chart.yaml", ""),
        ("chart/templates/a.yaml", "{{ if .Values.a }}"),
        ("chart/charts/b/Chart.yaml", ""),
        ("overlay/kustomization.yaml", ""),
        ("overlay/patch.yaml", TWO),
        ("part/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"),
    ):
        (deploy / file).parent.mkdir(parents=True, exist_ok=True)
        (deploy / file).write_text(text)
    found, findings = read([str(deploy)])
    assert [each.kind for each in found] == ["ConfigMap", "ConfigMap", "helm", "kustomize"]
    assert findings == []
    assert [each.kind for each in read([str(deploy / "part")])[0]] == ["kustomize"]


def test_a_tool_that_prints_without_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Chart.yaml").write_text("")
    program = tmp_path / "helm"
    program.write_text("#!/bin/sh\nyes error >&2 &\nexec yes\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(InputError, match=r"helm template .*: a file may have at most 64 MiB"):
        read([str(tmp_path)])


def test_pipes_and_links_to_nowhere_in_folders_are_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / ".#a.yaml").symlink_to("jane@host.1")
    (tmp_path / "a.yaml").write_text("apiVersion: v1\nkind: A\nmetadata: {name: a}\n")
    assert [each.kind for each in read([str(tmp_path)])[0]] == ["A"]


@pytest.mark.parametrize(
    ("name", "read_as"),
    [
        (r"\ud800", "\ufffd"),
        (r"\udc00\ud800", "\ufffd\ufffd"),
        (r"\ud83d\ude00", "\U0001f600"),
        (r"\\ud800", r"\ud800"),
    ],
)
def test_halves_of_surrogate_pairs_are_replaced(tmp_path: Path, name: str, read_as: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(f'{{"apiVersion": "v1", "kind": "A", "metadata": {{"name": "{name}"}}}}')
    assert [each.name for each in read([str(file)])[0]] == [read_as]


def test_paths_that_cannot_be_read_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"nowhere\.yaml does not exist"):
        read([str(tmp_path / "nowhere.yaml")])
    large = tmp_path / "large.yaml"
    large.touch()
    os.truncate(large, documents.MOST_BYTES + 1)
    with pytest.raises(InputError, match="a file may have at most 64 MiB"):
        read([str(large)])
    monkeypatch.setattr(documents, "MOST_FILES", 2)
    for name in "abc":
        (tmp_path / f"{name}.yaml").touch()
    with pytest.raises(InputError, match="has more than 2 files"):
        read([str(tmp_path)])


def test_steps_of_paths() -> None:
    assert steps_of("spec.containers[0].image") == ("spec", "containers", "0", "image")
    assert steps_of("metadata.annotations[a.b/c].x") == ("metadata", "annotations", "a.b/c", "x")
    assert steps_of('spec.hard["cpu"]') == ("spec", "hard", "cpu")
    assert steps_of("") == ()
    assert len(steps_of("a." * 10_000)) == 100


def test_lines_of_fields_are_those_of_their_keys_or_nearest_parents() -> None:
    text = b"""a:
  b:
  - c: 1
  - d: {e: 2,
        f: 3}
? [x, y]
: z
---
a: &k
  b: 1
g: *k
"""
    fields = [
        (0, ("a", "b", "1", "d", "f")),
        (0, ("a", "b", "1", "d", "missing")),
        (0, ("a", "b", "7")),
        (0, ()),
        (1, ("g", "b")),
        (1, ("a", "b")),
        (2, ("a",)),
    ]
    assert lines_of(text, fields) == {0: 5, 1: 4, 2: 2, 3: 1, 4: 11, 5: 10}


def test_text_with_an_error_has_lines_up_to_it() -> None:
    assert lines_of(b"a:\n  b: 1\nc: [", [(0, ("a", "b")), (0, ("c", "0"))]) == {0: 2, 1: 3}


def test_lines_take_time_in_proportion_to_text_and_fields() -> None:
    def seconds(number: int) -> float:
        text = b"".join(b"---\na:\n  b: 1\n" for _ in range(number))
        begin = time.process_time()
        found = lines_of(text, [(each, ("a", "b")) for each in range(number)])
        assert len(found) == number
        return time.process_time() - begin

    seconds(100)
    assert seconds(4_000) < 16 * max(seconds(1_000), 0.005)
