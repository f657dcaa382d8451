"""Documents for tests of checks."""

from __future__ import annotations

from pathlib import Path

from steersman.check.documents import Document, read
from steersman.check.finding import Finding, Report
from steersman.check.judge import Settings, check

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx
        resources: {requests: {cpu: 200m}, limits: {cpu: 200m}}
"""
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, maximum: 10}
              colour: {type: string}
            x-kubernetes-validations:
            - rule: "!has(self.size) || self.size > 0"
              message: size must be positive
"""
WIDGET = """
apiVersion: example.com/v1
kind: Widget
metadata: {name: small}
spec:
  size: 3
  colour: red
"""


def documents(folder: Path, *texts: str) -> list[Document]:
    """Return the documents of texts, which go to one file, `all.yaml`."""
    file = folder / "all.yaml"
    file.write_text("---".join(texts))
    found, unreadable = read([str(file)])
    assert unreadable == []
    return found


async def report(folder: Path, *texts: str, old: str = "", settings: Settings | None = None) -> Report:
    """Return the report on some documents."""
    before: list[Document] = []
    if old:
        (folder / "old").mkdir()
        before = documents(folder / "old", old)
    return await check(documents(folder, *texts), before, settings)


def told(report: Report) -> list[tuple[str, str, str, str]]:
    """Return the findings as rows: level, rule, object and message."""
    return [row(each) for each in report.findings]


def row(each: Finding) -> tuple[str, str, str, str]:
    """Return a finding as a row."""
    return each.level.value, each.rule.value, str(each.object), each.message
