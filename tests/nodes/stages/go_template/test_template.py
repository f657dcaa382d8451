"""Templates, evaluated as Go's text/template does.

`recorded.json` has the result of Go 1.26 for each template and its data: a text, or an error in Go's own words.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from steersman.nodes.stages.go_template.template import MOST_SOURCE, Template, data_of
from steersman.nodes.stages.go_template.values import TemplateError

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("recorded.json").read_text())
DATA = json.dumps(RECORDED["data"])


@pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda case: case["template"][:40])
def test_a_template_makes_what_go_makes_of_it(case: dict[str, str]) -> None:
    if "text" in case:
        assert Template(case["template"], {}).render(data_of(DATA)) == case["text"]
        return
    with pytest.raises(TemplateError):
        Template(case["template"], {}).render(data_of(DATA))


@pytest.mark.parametrize(
    ("template", "reported"),
    [
        ("a\n{{ none }}", 'line 2: function "none" not defined'),
        ("{{ $x }}", 'line 1: undefined variable "$x"'),
        ("\n\n{{ .s.x }}", "line 3: can't evaluate field x in type string"),
        ("{{ index .l 9 }}", "line 1: error calling index: index out of range: 9"),
        ("{{ if .s }}", "line 1: unexpected EOF"),
        ("{{ not }}", "line 1: wrong number of args for not: want 1 got 0"),
        ("{{ .s ! }}", "line 1: unexpected '!' in an action"),
    ],
)
def test_errors_are_reported_with_their_line(template: str, reported: str) -> None:
    with pytest.raises(TemplateError) as refused:
        Template(template, {}).render(data_of(DATA))
    assert str(refused.value) == reported


def test_functions_of_ones_own_take_values_and_give_one() -> None:
    template = Template("{{ twice .l | len }} {{ name }}", {"twice": lambda each: each * 2, "name": lambda: "a"})
    assert template.render(data_of(DATA)) == "6 a"
    assert template.render(data_of(DATA), {"name": lambda: "b"}) == "6 b"


@pytest.mark.parametrize(
    "template",
    [
        "{{ range 1000000000 }}{{ end }}",
        "{{ range 100000 }}" + "x" * 1000 + "{{ end }}",
        '{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}',
        '{{ define "a" }}{{ template "a" }}{{ template "a" }}{{ end }}{{ range 9999 }}{{ template "a" }}{{ end }}',
        "{{ range 1000 }}{{ range 1000 }}{{ range 1000 }}{{ end }}{{ end }}{{ end }}",
        '{{ printf "%999999999d" 1 }}',
        "(" * 10_000,
        "{{" + "(" * 10_000 + "}}",
        "{{ if 1 }}" * 10_000,
        "x" * (MOST_SOURCE + 1) + "{{",
    ],
)
def test_what_would_have_no_end_ends_soon(template: str) -> None:
    started_at = time.process_time()
    if template == "(" * 10_000:
        assert Template(template, {}).render(None) == template
    else:
        with pytest.raises(TemplateError):
            Template(template, {}).render(None)
    assert time.process_time() - started_at < 2


def test_numbers_stay_as_they_are_written() -> None:
    data = data_of('{"a": 12345678901234567890, "b": 1.50, "c": 1e3}')
    assert Template("{{ .a }} {{ .b }} {{ .c }}", {}).render(data) == "12345678901234567890 1.50 1e3"
