"""CustomResourceDefinitions from files: which are found, and how long the tests wait for them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from steersman.testing.blocking_client import BlockingClient
from steersman.testing.definitions import NotEstablished, establish, read

BOATS = {"kind": "CustomResourceDefinition", "metadata": {"name": "boats"}, "status": {"conditions": []}}


class Server(BlockingClient):
    """A client that gives prepared responses one after the other, and records its requests."""

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.answers = list(answers)
        self.sent: list[tuple[str, str, Any]] = []

    def request(self, method: str, path: str, body: Any = None, headers: Any = None) -> tuple[int, bytes]:
        self.sent.append((method, path, body))
        status, answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return status, json.dumps(answer).encode()


def with_conditions(**conditions: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": status} for kind, status in conditions.items()]}}


def test_definitions_are_found_in_files_and_folders_and_other_documents_passed_over(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("kind: CustomResourceDefinition\nx: 1\n---\n---\nkind: ConfigMap\n---\n- 1\n")
    (tmp_path / "a.json").write_text('{"kind": "CustomResourceDefinition", "x": 2}')
    (tmp_path / "c.yml").write_text("kind: CustomResourceDefinition\nx: 3\n")
    (tmp_path / "notes.txt").write_text("kind: CustomResourceDefinition\nx: 4\n")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "d.yaml").write_text("kind: CustomResourceDefinition\nx: 5\n")
    assert [each["x"] for each in read([tmp_path])] == [2, 1, 3]
    assert [each["x"] for each in read([str(tmp_path / "c.yml"), tmp_path / "below"])] == [3, 5]


@pytest.mark.parametrize("content", ["kind: ConfigMap", "", "a: [", "a: \x00"])
def test_a_file_without_definitions_or_with_errors_is_reported(content: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(content)
    with pytest.raises(ValueError, match=re.escape(str(path))):
        read([path])


def test_a_path_without_definitions_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read([tmp_path / "a.yaml"])
    with pytest.raises(ValueError, match="holds no CustomResourceDefinition"):
        read([tmp_path])


def test_all_are_applied_before_any_is_waited_for() -> None:
    created: tuple[int, dict[str, Any]] = (201, {})
    server = Server(created, created, (200, {}), (200, with_conditions(Established="True")))
    establish(server, [BOATS, {**BOATS, "metadata": {"name": "ships"}}])
    assert [(method, path.rpartition("/")[2].partition("?")[0]) for method, path, _ in server.sent] == [
        ("PATCH", "boats"),
        ("PATCH", "ships"),
        ("GET", "boats"),
        ("GET", "boats"),
        ("GET", "ships"),
    ]
    assert "status" not in json.loads(server.sent[0][2])


def test_a_refused_definition_is_reported() -> None:
    with pytest.raises(NotEstablished, match=r"^boats: 422 is invalid$"):
        establish(Server((422, {"message": "is invalid"})), [BOATS])


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ((200, with_conditions(NamesAccepted="False")), "NamesAccepted is False: "),
        ((200, {}), "it has no conditions"),
        ((404, {"message": "not found"}), "not found"),
    ],
)
def test_a_definition_not_established_in_time_is_reported_with_the_reason(found: tuple[int, Any], why: str) -> None:
    with pytest.raises(NotEstablished, match=f"^boats: not established after 0.02 s: {why}"):
        establish(Server((201, {}), found), [BOATS], timeout=0.02)
