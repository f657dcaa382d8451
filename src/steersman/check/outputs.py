"""Reports for programs: JSON, SARIF 2.1.0 and JUnit XML."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote
from xml.etree import ElementTree

import msgspec

from steersman import __version__
from steersman.check.finding import DESCRIPTIONS, Finding, Level, Report, Rule, Subject
from steersman.machinery.codec.xml_text import xml_text

_SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_HOME: Final = "https://steersman.dev/"


def shown(finding: Finding) -> str:
    """Return the message of a finding, with its field unless the message names it."""
    if not finding.field or finding.field in finding.message:
        return finding.message
    return f"{finding.field}: {finding.message}"


def as_json(report: Report) -> bytes:
    """Return a report as JSON: the findings, the number of objects, of errors and of warnings."""
    plain = {
        "objects": len(report.objects),
        "errors": report.count(Level.ERROR),
        "warnings": report.count(Level.WARNING),
        "findings": report.findings,
    }
    return msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n"


def as_sarif(report: Report) -> bytes:
    """Return a report as SARIF, which code hosts show beside the changed lines."""
    rules = [{"id": each.value, "shortDescription": {"text": DESCRIPTIONS[each]}} for each in Rule]
    driver = {"name": "steersman check", "version": __version__, "informationUri": _HOME, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": list(map(_result, report.findings)),
    }
    plain = {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n"


def _result(finding: Finding) -> dict[str, Any]:
    location = {
        "artifactLocation": {"uri": quote(finding.file, errors="surrogateescape")},
        "region": {"startLine": finding.line},
    }
    return {
        "ruleId": finding.rule.value,
        "ruleIndex": list(Rule).index(finding.rule),
        "level": finding.level.value,
        "message": {"text": f"{finding.object}: {shown(finding)}".removeprefix(": ")},
        "locations": [{"physicalLocation": location}],
    }


def as_junit(report: Report) -> bytes:
    """Return a report as JUnit XML: a suite for each file, a test case for each object. Warnings are system-out."""
    findings: dict[tuple[str, Subject], list[Finding]] = {}
    for each in report.findings:
        findings.setdefault((each.file, each.object), []).append(each)
    cases: dict[str, dict[Subject, list[Finding]]] = {}
    for checked in report.objects:
        cases.setdefault(checked.file, {})[checked.object] = findings.pop((checked.file, checked.object), [])
    for (file, subject), rest in findings.items():  # documents that are no objects
        cases.setdefault(file, {})[subject] = rest
    failed = sum(_has_error(each) for here in cases.values() for each in here.values())
    total = str(sum(map(len, cases.values())))
    root = ElementTree.Element("testsuites", name="steersman check", tests=total, failures=str(failed))
    for file, here in cases.items():
        failures = str(sum(map(_has_error, here.values())))
        suite = ElementTree.SubElement(root, "testsuite", name=xml_text(file), tests=str(len(here)), failures=failures)
        for subject, found in here.items():
            name = xml_text(str(subject) or "document")
            case = ElementTree.SubElement(suite, "testcase", classname=xml_text(file), name=name, file=xml_text(file))
            _describe(case, found)
    ElementTree.indent(root)
    text: str = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


def _has_error(findings: list[Finding]) -> bool:
    return any(each.level is Level.ERROR for each in findings)


def _describe(case: ElementTree.Element, findings: list[Finding]) -> None:
    errors = [each for each in findings if each.level is Level.ERROR]
    if errors:
        case.set("line", str(errors[0].line))
        failure = ElementTree.SubElement(case, "failure", message=xml_text(shown(errors[0])), type=errors[0].rule.value)
        failure.text = xml_text("\n".join(f"{each.file}:{each.line}: {shown(each)}" for each in errors))
    warnings = [each for each in findings if each.level is Level.WARNING]
    if warnings:
        out = ElementTree.SubElement(case, "system-out")
        out.text = xml_text("\n".join(f"{each.file}:{each.line}: warning: {shown(each)}" for each in warnings))


FORMS: Final[dict[str, Callable[[Report], bytes]]] = {"json": as_json, "sarif": as_sarif, "junit": as_junit}
"""Encoders of reports by the name of their form."""
