"""Tests of the examples in docs/library.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import steersman
from tests.docs.markdown_documents import ROOT, Document

GUIDE = Document(ROOT / "docs" / "library.md")
EXAMPLES = GUIDE.blocks("python")[1:]
"""All examples but the program that serves, which tests/e2e/test_library_tutorial.py runs."""


SERVED = """
import asyncio, sys
from steersman import Server
declared = [each for each in list(globals().values()) if "__steersman_resource__" in getattr(each, "__dict__", ())]
assert declared

async def serve():
    async with Server(*declared, data_dir=sys.argv[1], storage="memory", listen=False):
        pass

asyncio.run(serve())
"""
"""Code that serves the resources that the program above it declares."""


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_what_an_example_declares_is_served(number: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXAMPLES[number] + SERVED, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    if "print([" in EXAMPLES[number]:
        assert done.stdout == "[2]\n"


TYPED = """
from collections.abc import Iterator
from typing import Annotated

import msgspec
import steersman
from steersman import (
    Aggregation, Event, FieldError, Getter, Lister, ObjectMeta, ObjectsClient, Path, PrinterColumn, Request, Rule,
    Scale, Server, StatusError, definition_of, definition_yaml, resource,
)


class Shelf:
    async def get(self, request: Request["Book"]) -> "Book | None":
        return None

    async def list(self, request: Request["Book"]) -> list["Book"]:
        return []


@resource("e.x/v1", printer_columns=[PrinterColumn("Pages", ".pages", "integer")], scale=Scale(), storage=Shelf())
class Book(msgspec.Struct):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    pages: Annotated[int, Rule("self > 0")] = 1

    @steersman.prepare
    def fill(self, request: Request["Book"]) -> None:
        self.pages = self.pages or 1

    @steersman.validate
    def judge(self, request: Request["Book"]) -> Iterator[FieldError]:
        yield steersman.invalid(Path("pages"), self.pages, "never")

    @steersman.admit(status=True)
    async def allow(self, request: Request["Book"]) -> None:
        async for book in request.objects(Book).every():
            if book.pages == self.pages:
                raise request.forbid("no")


reads: Getter[Book] = Shelf()
lists: Lister[Book] = Shelf()
manifest: dict[str, object] = definition_of(Book)
text: str = definition_yaml(Book)


async def use(server: Server) -> int:
    books: ObjectsClient[Book] = server.objects(Book)
    try:
        found: Book = await books.get("a", "default")
    except StatusError as error:
        return error.code
    async for event in books.watch():
        told: Event[Book] = event
        print(told.object.pages)
    return found.pages


Server(Book, aggregation=Aggregation(service="books")).run()
"""
"""A program with most of the public names, as its author would have it checked."""


@pytest.mark.slow
def test_programs_with_the_public_names_are_checked_strictly(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(TYPED)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(program)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": ""},
    )
    assert done.stdout == "Success: no issues found in 1 source file\n", done.stdout + done.stderr


def test_every_name_that_is_public_is_told_of() -> None:
    assert [name for name in steersman.__all__ if not re.search(rf"\b{name}\b", GUIDE.text)] == []


def test_every_public_name_is_there() -> None:
    assert [name for name in steersman.__all__ if not hasattr(steersman, name)] == []


def test_the_package_imports_nothing_before_it_is_asked() -> None:
    program = "import sys, steersman; print([each for each in sys.modules if each.startswith('steersman.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
