"""Commands on servers that answer with something else than what the API promises: one line and exit code 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from steersman.cli import main
from tests.cli.lying_server import lying_server

COMMANDS: Final = (
    "trace --recent",
    "trace",
    "trace abcd1234",
    "history pods",
    "history pod/x",
    "history pod/x --at 7",
    "history pod/x --at 10m",
    "history pods --diff",
    "diff --from 1 pods",
    "diff --from 10m",
    "why pod/x",
    "why can-i get pods",
)
BODIES: Final[dict[str, bytes]] = {
    "a page": b"<html><body>login</body></html>",
    "nothing": b"",
    "null": b"null",
    "a list": b"[]",
    "text": b'"x"',
    "no UTF-8": b'{"items": ["\xff"], "requests": ["\xff"]}',
    "too deep": b"[" * 100_000,
    "nulls": b'{"items": [null], "requests": [null], "metadata": null, "revision": null, "steps": null}',
    "numbers": b'{"items": [1], "requests": [1], "metadata": {"resourceVersion": "x"}, "revision": "x", "steps": [1]}',
    "cut off": b'{"items": [',
}
RESOURCES: Final = {
    "items": [
        {
            "metadata": {"name": ""},
            "versions": [
                {
                    "version": "v1",
                    "resources": [
                        {
                            "resource": "pods",
                            "responseKind": {"kind": "Pod"},
                            "scope": "Namespaced",
                            "singularResource": "pod",
                            "verbs": ["get", "list", "watch"],
                        }
                    ],
                }
            ],
        }
    ]
}
ESCAPE: Final = "\x1b[31mred\x07\x9b"


def ran(kubeconfig: Path, command: str) -> Result:
    return CliRunner().invoke(main, [*command.split(" "), "--kubeconfig", str(kubeconfig)])


@pytest.mark.parametrize("served", [False, True], ids=["without discovery", "with discovery"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_other_json_than_promised_is_an_error_of_one_line(tmp_path: Path, body: bytes, served: bool) -> None:
    def answer(path: str) -> tuple[int, str, bytes]:
        found = json.dumps(RESOURCES).encode() if served and path in ("/api", "/apis") else body
        return 200, "application/json", found

    with lying_server(tmp_path, answer) as kubeconfig:
        for command in COMMANDS:
            result = ran(kubeconfig, command)
            assert isinstance(result.exception, SystemExit | None), (command, result.exception)
            assert "Traceback" not in result.output
            assert "hidden-token" not in result.output
            if result.exit_code:
                assert result.output.splitlines()[-1].startswith("steersman: "), (command, result.output)


def test_texts_of_a_server_do_not_control_the_terminal(tmp_path: Path) -> None:
    request = dict.fromkeys(
        ("verb", "method", "path", "apiGroup", "resource", "subresource", "namespace", "name", "user", "sourceIP"),
        ESCAPE,
    )
    request |= {"userAgent": ESCAPE, "id": f"{ESCAPE}abcd", "time": ESCAPE}
    whole: dict[str, Any] = {**request, "milliseconds": 1e300, "code": 200, "bytes": None, "dropped": 1}
    whole["steps"] = [{"name": ESCAPE, "start": -1e300, "milliseconds": 1e300, "attributes": {ESCAPE: ESCAPE}}]

    def answer(path: str) -> tuple[int, str, bytes]:
        if path.startswith("/debug/requests/"):
            return 200, "application/json", json.dumps(whole).encode()
        return 200, "application/json", json.dumps({"requests": [whole, {"dropped": 3}]}).encode()

    with lying_server(tmp_path, answer) as kubeconfig:
        for command in ("trace --recent", "trace --recent -o wide", "trace abcd", "trace abcd -o wide"):
            result = ran(kubeconfig, command)
            assert result.exit_code == 0, (command, result.output, result.exception)
            assert not set(result.output) & set("\x1b\x07\x9b")


def test_a_number_of_the_server_is_a_number(tmp_path: Path) -> None:
    def answer(path: str) -> tuple[int, str, bytes]:
        return 200, "application/json", json.dumps({"requests": [{"dropped": ESCAPE}]}).encode()

    with lying_server(tmp_path, answer) as kubeconfig:
        result = ran(kubeconfig, "trace --recent")
    assert result.exit_code == 1
    assert "\x1b" not in result.output


def test_pages_without_end_are_an_error(tmp_path: Path) -> None:
    def answer(path: str) -> tuple[int, str, bytes]:
        if path in ("/api", "/apis"):
            return 200, "application/json", json.dumps(RESOURCES).encode()
        return 200, "application/json", b'{"records": true, "items": [], "continue": "1"}'

    with lying_server(tmp_path, answer) as kubeconfig:
        assert ran(kubeconfig, "history pods").exit_code == 0


def test_a_status_of_another_shape_is_shown_as_text(tmp_path: Path) -> None:
    status = {"kind": "Status", "message": 5, "reason": [], "code": "x", "details": 7}

    def answer(path: str) -> tuple[int, str, bytes]:
        return 500, "application/json", json.dumps(status).encode()

    with lying_server(tmp_path, answer) as kubeconfig:
        for command in COMMANDS:
            result = ran(kubeconfig, command)
            assert result.exit_code == 1
            assert result.output.startswith("steersman: "), result.output
