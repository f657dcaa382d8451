"""Flags, metrics and YAML of docs/serve.md: they exist, and the server and Prometheus can read them."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import yaml

from steersman.audit.policy_file import read_policy
from steersman.authentication.jwt.configuration import read_configuration
from steersman.controlplane.options import FLAGS
from steersman.testing import Environment
from tests.docs.markdown_documents import ROOT, Document

DOCUMENT = Document(ROOT / "docs" / "serve.md")
OF_PROMETHEUS = {"up"}
"""Metrics that Prometheus makes itself."""


def block_with(text: str) -> str:
    """The only YAML block with a text."""
    (found,) = [block for block in DOCUMENT.blocks("yaml") if text in block]
    return found


async def _scraped() -> str:
    async with Environment() as environment:
        return (await environment.client().request("GET", "/metrics")).body.decode()


def test_ten_flags_are_told_to_be_set_and_the_server_has_all_that_are_named() -> None:
    rows = DOCUMENT.table("Before you expose it")
    assert len(rows) == 10
    assert set(re.findall(r"`?--([a-z][a-z0-9-]*)", "".join(map("".join, rows)))) <= set(FLAGS)


def test_blocks_of_yaml_can_be_parsed() -> None:
    assert [list(yaml.safe_load_all(block)) for block in DOCUMENT.blocks("yaml")]


def test_the_audit_policy_is_valid() -> None:
    assert read_policy(block_with("kind: Policy").encode()).rules


def test_anonymous_requests_are_allowed_for_health_checks_alone() -> None:
    anonymous = read_configuration(block_with("kind: AuthenticationConfiguration").encode()).anonymous
    assert anonymous is not None
    assert [each.path for each in anonymous.conditions] == ["/livez", "/readyz"]


def test_five_alerts_are_about_metrics_that_a_server_has() -> None:
    (group,) = yaml.safe_load(block_with("alert:"))["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    assert len(rules) == 5
    served = set(re.findall(r"^# TYPE (\S+) ", asyncio.run(_scraped()), re.MULTILINE))
    for rule in rules:
        named = set(re.findall(r"\b(?:up|[a-z]+_[a-z_]+)(?=[{\[) ])", re.sub(r"by \([^)]*\)", "", rule["expr"])))
        assert named, rule
        assert named <= served | OF_PROMETHEUS, rule
