"""Tests of the built page's files."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

from steersman.inspector import page_files
from tests.inspector.front_client import ScriptedAnswer, ScriptedServer, Visit


async def test_the_page_and_all_that_it_names_are_served(visit: Visit) -> None:
    visitor = await visit(ScriptedServer(ScriptedAnswer()))
    page = await visitor.send("GET", "/", headers={})
    assert page.status == 200
    assert page.header("cache-control") == "no-store"
    names = re.findall(r'(?:src|href)="/([^"]+)"', page.body.decode())
    assert {each.rpartition(".")[2] for each in names} >= {"js", "css"}
    types = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
    for name in names:
        found = await visitor.send("GET", f"/{name}", headers={})
        assert found.status == 200
        assert found.header("content-type") == types[name.rpartition(".")[2]]
        assert found.header("cache-control") == "private, max-age=31536000, immutable"
        assert found.header("x-content-type-options") == "nosniff"


async def test_nothing_is_loaded_from_outside(visit: Visit) -> None:
    visitor = await visit(ScriptedServer(ScriptedAnswer()))
    page = await visitor.send("GET", "/", headers={})
    policy = dict(each.strip().partition(" ")[::2] for each in page.header("content-security-policy").split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert page.header("referrer-policy") == "no-referrer"
    assert not re.search(rb"""(src|href)=["']?(https?:)?//""", page.body)
    assert b"<script>" not in page.body


async def test_a_missing_build_says_how_to_build_it(
    visit: Visit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    visitor = await visit(ScriptedServer(ScriptedAnswer()))
    page_files.page_files.cache_clear()
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)
    answer = await visitor.send("GET", "/", headers={"accept": "text/html"})
    monkeypatch.undo()
    page_files.page_files.cache_clear()
    assert answer.status == 503
    assert b"make inspector" in answer.body


def test_every_built_file_has_a_type_and_all_are_small() -> None:
    files = page_files.page_files()
    assert "index.html" in files
    assert sum(map(len, files.values())) < 1 << 20
