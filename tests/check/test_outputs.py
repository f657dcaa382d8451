"""Reports for programs."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from steersman.check.finding import CheckedObject, Finding, Level, Report, Rule, Subject
from steersman.check.outputs import as_json, as_junit, as_sarif, shown

POD = Subject("Pod", "a", "default", "v1")
FINE = Subject("ConfigMap", "b", "default", "v1")
ERROR = Finding(Level.ERROR, Rule.INVALID, "Required value", "a.yaml", 7, "spec.containers", POD)
WARNING = Finding(Level.WARNING, Rule.WARNING, "old\x1b<&\ud800", "a.yaml", 3, object=POD)
UNREADABLE = Finding(Level.ERROR, Rule.UNREADABLE, "no YAML", "b.yaml", 1)
REPORT = Report([UNREADABLE, WARNING, ERROR], [CheckedObject("a.yaml", 1, POD), CheckedObject("a.yaml", 9, FINE)])


def test_messages_name_their_fields_once() -> None:
    assert shown(ERROR) == "spec.containers: Required value"
    assert (
        shown(Finding(Level.ERROR, Rule.UNKNOWN_FIELD, 'unknown field "a.b"', "a", 1, "a.b")) == 'unknown field "a.b"'
    )


def test_json() -> None:
    report = Report([ERROR], REPORT.objects)
    assert json.loads(as_json(report)) == {
        "objects": 2,
        "errors": 1,
        "warnings": 0,
        "findings": [
            {
                "level": "error",
                "rule": "Invalid",
                "message": "Required value",
                "file": "a.yaml",
                "line": 7,
                "field": "spec.containers",
                "object": {"kind": "Pod", "name": "a", "namespace": "default", "apiVersion": "v1"},
            }
        ],
    }


def test_sarif() -> None:
    run = json.loads(as_sarif(Report([ERROR], [])))["runs"][0]
    driver = run["tool"]["driver"]
    (result,) = run["results"]
    assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "Invalid"
    assert (result["level"], result["message"]["text"]) == ("error", "Pod default/a: spec.containers: Required value")
    assert result["locations"] == [
        {"physicalLocation": {"artifactLocation": {"uri": "a.yaml"}, "region": {"startLine": 7}}}
    ]


def test_names_of_sources_are_references_of_uris() -> None:
    report = Report([Finding(Level.ERROR, Rule.INVALID, "a", "a b/c (helm):d.yaml", 1)], [])
    location = json.loads(as_sarif(report))["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"] == {"uri": "a%20b/c%20%28helm%29%3Ad.yaml"}


def test_junit() -> None:
    root = ElementTree.fromstring(as_junit(REPORT))
    assert (root.get("tests"), root.get("failures")) == ("3", "2")
    assert [(each.get("name"), each.get("tests"), each.get("failures")) for each in root] == [
        ("a.yaml", "2", "1"),
        ("b.yaml", "1", "1"),
    ]
    pod, other = root[0]
    failure, out = pod
    assert (pod.get("name"), pod.get("line"), failure.get("type")) == ("Pod default/a", "7", "Invalid")
    assert failure.get("message") == "spec.containers: Required value"
    assert out.text == "a.yaml:3: warning: old\ufffd<&\ufffd"
    assert list(other) == []
