"""Imports of servers that lie: an error of one line, or a file without values of Secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from steersman.cli import main
from tests.cli.lying_server import lying_server
from tests.lies import lies

VALUE: Final = "dmFsdWU="
SECRET: Final[dict[str, Any]] = {
    "metadata": {"name": "s", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": VALUE}},
    "data": {"key": VALUE},
    "stringData": {"key": VALUE},
}
PAGE: Final[dict[str, Any]] = {"metadata": {"resourceVersion": "7"}, "items": [SECRET]}
RESOURCE: Final = {
    "resource": "secrets",
    "responseKind": {"group": "", "version": "v1", "kind": "Secret"},
    "scope": "Namespaced",
    "verbs": ["get", "list", "watch"],
}
DISCOVERY: Final = {"items": [{"metadata": {"name": ""}, "versions": [{"version": "v1", "resources": [RESOURCE]}]}]}


@pytest.mark.slow
def test_no_page_of_secrets_breaks_an_import_or_brings_values(tmp_path: Path) -> None:
    said = b""

    def answer(path: str) -> tuple[int, str, bytes]:
        place = path.partition("?")[0]
        if place in ("/api", "/apis"):
            return 200, "application/json", json.dumps(DISCOVERY if place == "/api" else {"items": []}).encode()
        if place == "/api/v1/namespaces":
            return 200, "application/json", json.dumps({**PAGE, "items": []}).encode()
        if place == "/api/v1/secrets":
            return 200, "application/json", said
        return 404, "text/plain", b""

    file, imported = tmp_path / "import.json", 0
    with lying_server(tmp_path, answer) as kubeconfig:
        for said in (json.dumps(PAGE).encode(), *lies(PAGE)):
            result = CliRunner().invoke(main, ["import", "-o", str(file), "--kubeconfig", str(kubeconfig)])
            assert isinstance(result.exception, SystemExit | None), (said[:200], result.exception)
            assert "Traceback" not in result.output
            assert VALUE not in result.output
            if file.exists():
                text = file.read_text()
                assert VALUE not in text, said[:200]
                json.loads(text)
                imported += 1
                file.unlink()
            assert list(tmp_path.iterdir()) == [kubeconfig], "nothing stays of an import that failed"
    assert imported > 10
