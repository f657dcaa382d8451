"""Requests and their steps as lines of text."""

from __future__ import annotations

from typing import Any

from steersman.cli.traced import request_line, step_lines

REQUEST: dict[str, Any] = {
    "id": "8a2c7a5e-1b1d-4bd4-9d53-00000000002a",
    "time": "2026-11-29T03:12:02.224648Z",
    "milliseconds": 12.345,
    "verb": "create",
    "method": "POST",
    "path": "/apis/apps/v1/namespaces/default/deployments",
    "apiGroup": "apps",
    "apiVersion": "v1",
    "resource": "deployments",
    "subresource": "",
    "namespace": "default",
    "name": "web",
    "user": "alice",
    "userAgent": "kubectl/v1.36.3 (linux/amd64)",
    "sourceIP": "127.0.0.1",
    "protocol": "HTTP/2.0",
    "code": 201,
    "bytes": 12_345,
}
STEPS: dict[str, Any] = {
    **REQUEST,
    "dropped": 2,
    "steps": [
        {"name": "authentication", "start": 0.0, "milliseconds": 0.1, "attributes": {"user": "alice"}},
        {
            "name": "Create",
            "start": 2.0,
            "milliseconds": 10.0,
            "events": [{"name": "Conversion done", "at": 3.0}],
            "steps": [{"name": "decode", "start": 2.0, "milliseconds": 1.0, "attributes": {"url": "/x"}}],
        },
    ],
}


def test_a_line_has_time_code_duration_object_user_and_the_end_of_the_id() -> None:
    words = request_line(REQUEST, wide=False).split()
    assert words[1:] == [
        "201",
        "12.35",
        "ms",
        "create",
        "deployments.apps",
        "default/web",
        "alice",
        "12",
        "KiB",
        "kubectl/v1.36.3",
        "0000002a",
    ]
    assert REQUEST["id"] in request_line(REQUEST, wide=True)


def test_a_request_that_is_not_about_a_resource_shows_its_path() -> None:
    line = request_line({**REQUEST, "resource": "", "path": "/version", "user": "", "bytes": None}, wide=False)
    assert "/version" in line
    assert " - " in line


def test_text_of_clients_cannot_control_the_terminal() -> None:
    hostile = "\x1b]0;owned\x07\u202e\n" + "x" * 5_000
    line = request_line({**REQUEST, "name": hostile, "userAgent": hostile, "user": hostile}, wide=True)
    assert line.isprintable()
    steps = [{"name": hostile, "start": 0.0, "milliseconds": 1.0, "attributes": {hostile: hostile}}]
    for each in step_lines({**STEPS, "steps": steps, "path": hostile}, wide=True):
        assert each.isprintable() or not each


def test_what_a_slow_reader_has_missed_is_told() -> None:
    assert request_line({"dropped": 3}, wide=False) == "3 requests are left out: this reader was too slow"


def test_steps_are_indented_with_durations_and_bars() -> None:
    lines = list(step_lines(STEPS, wide=False))
    assert lines[0] == "create deployments.apps default/web by alice: 201 after 12.35 ms, 12 KiB"
    first, second, third = (line.split("|") for line in lines[4:7])
    assert (first[0].split(), first[2]) == (["authentication", "0.10", "ms"], "  user=alice")
    assert second[0].split() == ["Create", "10.00", "ms"]
    assert third[0].startswith("  decode")
    assert third[2] == "", "attributes that repeat the head are left out"
    assert len(second[1].strip()) > len(third[1].strip())
    assert lines[-1] == "2 more steps were not recorded"
    assert not any("Conversion done" in line for line in lines)


def test_wide_has_events_and_all_attributes() -> None:
    text = "\n".join(step_lines(STEPS, wide=True))
    assert "* Conversion done" in text
    assert "url=/x" in text
