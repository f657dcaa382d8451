"""Documents to check: objects in files, in folders, and in what Helm and kustomize make of theirs."""

from __future__ import annotations

import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from steersman.check.finding import Finding, Level, Rule, Subject
from steersman.machinery.codec.document_streams import pieces
from steersman.machinery.codec.yaml import YAMLError, located_documents
from steersman.machinery.go.strings import trim_space
from steersman.net.ascii import is_digits
from steersman.work.patterns import late_pattern

MOST_BYTES: Final = 64 << 20
"""Most bytes of one file, or of one tool's output."""
MOST_FILES: Final = 100_000
"""Most files and folders in a folder."""
_MOST_VALUES: Final = 8_000_000
_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_COMPONENT: Final = late_pattern(rb"^kind: *[\"']?Component\b", re.MULTILINE)
_CHART: Final = "Chart.yaml"
_TEMPLATE: Final = b"{{"
_TOOL_SECONDS: Final = 120.0
_STDIN: Final = "-"
_ESCAPE: Final = late_pattern(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""Escape in a string of JSON; the group is half of a surrogate pair."""
_MOST_SHOWN: Final = 2000
"""Bytes of a tool's errors that are shown."""
_PIECE: Final = 1 << 16
"""Bytes that are read at a time."""


class InputError(ValueError):
    """The error for a path that cannot be checked; the message names it."""


@dataclass(frozen=True, slots=True)
class Source:
    """Text with documents: a file, standard input, or the output of a tool."""

    name: str
    data: bytes
    is_named: bool = True
    """True if the user has named it, False for a file of a folder, which may be something else than manifests."""


@dataclass(frozen=True, slots=True)
class Document:
    """An object, with its place: the number of the document in its source, and the path to it in a List."""

    plain: dict[str, Any]
    source: Source
    line: int
    number: int = 0
    path: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)
    """Messages about keys that are given twice."""

    @property
    def kind(self) -> str:
        """Kind of the object."""
        return str(self.plain["kind"])

    @property
    def api_version(self) -> str:
        """Group and version of the object's kind."""
        return str(self.plain["apiVersion"])

    @property
    def group(self) -> str:
        """Group of the object's kind, "" for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata of the object, empty if it has none or malformed ones."""
        return mapping(self.plain.get("metadata"))

    @property
    def name(self) -> str:
        """Name of the object, or the beginning of the one that the server will generate."""
        return text(self.metadata.get("name")) or text(self.metadata.get("generateName"))

    @property
    def namespace(self) -> str:
        """Namespace that the object names, "" if it names none."""
        return text(self.metadata.get("namespace"))

    def subject(self, namespace: str | None = None) -> Subject:
        """Return the object for reports; `namespace` is the one it goes to."""
        place = self.namespace if namespace is None else namespace
        return Subject(self.kind, self.name, place, self.api_version)


def mapping(value: Any) -> dict[str, Any]:
    """Return a JSON object, empty for any other value."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """Return a JSON list, empty for any other value."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    """Return a JSON string, empty for any other value."""
    return value if isinstance(value, str) else ""


def read(paths: Iterable[str], *, needs_all: bool = True) -> tuple[list[Document], list[Finding]]:
    """Return the objects of files and folders, `-` for standard input, and findings about unreadable documents.

    Of each folder with a chart or a kustomization the output of `helm template` or `kustomize build` is read. Raises
    InputError for a path that does not exist or is too large, for tools that are missing or fail, for an empty standard
    input, and if `needs_all` for a folder without manifests.
    """
    documents: list[Document] = []
    findings: list[Finding] = []
    for path in paths:
        before = len(documents) + len(findings)
        for source in _sources(path):
            _read_source(source, documents, findings)
        if len(documents) + len(findings) > before:
            continue
        if path == _STDIN:  # the program before the pipe has failed
            raise InputError("standard input has no documents")
        if needs_all and Path(path).is_dir():  # the path of another folder was meant
            raise InputError(f"{path} has no manifests")
    return documents, findings


def _sources(path: str) -> Iterator[Source]:
    if path == _STDIN:
        yield Source("stdin", _bounded(sys.stdin.buffer.read(MOST_BYTES + 1), "stdin"))
        return
    place = Path(path)
    if not place.is_dir():
        yield _file(place)
        return
    seen = 0
    for folder, folders, names in os.walk(place):
        tool = _tool_for(Path(folder), is_named=folder == str(place))
        if tool is not None:
            folders.clear()  # they belong to the chart or kustomization
            if tool:
                yield _output(Path(folder), *tool, folder)
            continue
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted(names):
            seen += 1
            if seen > MOST_FILES:
                raise InputError(f"{place} has more than {MOST_FILES} files")
            file = Path(folder) / name
            if file.suffix in _SUFFIXES and file.is_file():  # no pipe, and no link to nowhere, as editors make them
                yield _file(file, is_named=False)


def _tool_for(folder: Path, *, is_named: bool) -> tuple[str, ...] | None:
    """Return the command that renders the chart or kustomization in a folder, None if it has none.

    A component, which is a part of other kustomizations, is rendered if the user has named it; else the command is ().
    """
    if (folder / _CHART).is_file():
        return ("helm", "template", folder.name or "release")
    found = next((folder / each for each in _KUSTOMIZATIONS if (folder / each).is_file()), None)
    if found is None:
        return None
    if not is_named and _COMPONENT.search(_file(found).data):
        return ()
    return ("kustomize", "build") if shutil.which("kustomize") else ("kubectl", "kustomize")


def _file(path: Path, *, is_named: bool = True) -> Source:
    try:
        if not path.exists():
            raise InputError(f"{path} does not exist")
        with path.open("rb") as file:
            return Source(str(path), _bounded(file.read(MOST_BYTES + 1), str(path)), is_named)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


def _bounded(data: bytes, name: str) -> bytes:
    if len(data) > MOST_BYTES:
        raise InputError(f"{name}: a file may have at most {MOST_BYTES >> 20} MiB")
    return data


def _output(place: Path, *command: str) -> Source:
    program = shutil.which(command[0])
    if program is None:
        raise InputError(
            f"{place} is for {command[0]}, which is not installed: pipe its output into `steersman check -`"
        )
    shown = " ".join(command)
    try:
        code, output, errors = _run([program, *command[1:]])
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{shown}: {error}") from None
    output = _bounded(output, shown)
    if code:
        raise InputError(f"{shown}: {trim_space(errors.decode(errors='replace'))}")
    return Source(f"{place} ({command[0]})", output)


def _run(command: list[str]) -> tuple[int, bytes, bytes]:
    """Return the exit code of a program, its output up to one byte more than allowed, and the begin of its errors.

    A program that prints more is killed, with its children. Raises OSError, subprocess.TimeoutExpired.
    """
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    ends = time.monotonic() + _TOOL_SECONDS
    with (
        selectors.DefaultSelector() as selector,
        subprocess.Popen(command, stdin=null, stdout=pipe, stderr=pipe, start_new_session=True) as process,
    ):
        output, errors = bytearray(), bytearray()
        assert process.stdout is not None
        assert process.stderr is not None
        selector.register(process.stdout, selectors.EVENT_READ, (output, MOST_BYTES + 1))
        selector.register(process.stderr, selectors.EVENT_READ, (errors, _MOST_SHOWN))
        try:
            while selector.get_map() and len(output) <= MOST_BYTES:
                ready = selector.select(ends - time.monotonic())
                if not ready:
                    raise subprocess.TimeoutExpired(command, _TOOL_SECONDS)
                for key, _ in ready:
                    kept, most = key.data
                    piece = os.read(key.fd, _PIECE)
                    kept += piece[: most - len(kept)]
                    if not piece:
                        selector.unregister(key.fileobj)
            if not selector.get_map():
                process.wait(max(ends - time.monotonic(), 0.0))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        return process.wait(), bytes(output), bytes(errors)


def _read_source(source: Source, documents: list[Document], findings: list[Finding]) -> None:
    number = line = 0
    try:
        for number, (value, line, repeated) in enumerate(_values(source)):
            if value is not None:
                _add(Document({}, source, line, number, (), repeated), value, documents, findings)
    except (YAMLError, ValueError) as error:
        hint = "; templates are read with the folder of their chart" if _TEMPLATE in source.data else ""
        findings.append(_unreadable(source, _line_of(str(error)) or line + 1, f"{error}{hint}"))


def _values(source: Source) -> Iterator[tuple[Any, int, list[str]]]:
    """Yield the values of a source's documents, each with its line and messages about repeated keys."""
    for piece in pieces(source.data):
        if piece.is_json:
            yield _of_json(piece.data.decode()), piece.line, []
        else:
            yield from piece.read(partial(located_documents, most_values=_MOST_VALUES))


def _of_json(content: str) -> Any:
    return json.loads(_ESCAPE.sub(_without_half, content) if "\\u" in content else content)


def _without_half(escape: re.Match[str]) -> str:
    """Return an escape of JSON; U+FFFD for half of a surrogate pair, as in Go."""
    return escape[0] if escape[1] is None else "\\ufffd"


def _add(place: Document, value: Any, documents: list[Document], findings: list[Finding]) -> None:
    if not isinstance(value, dict) or not text(value.get("kind")) or not text(value.get("apiVersion")):
        if place.source.is_named or _is_almost_object(value):
            missing = [each for each in ("kind", "apiVersion") if not text(mapping(value).get(each))]
            findings.append(_unreadable(place.source, place.line, f"the document has no {' and '.join(missing)}"))
        return
    if value["kind"].endswith("List") and isinstance(value.get("items"), list):
        for index, each in enumerate(value["items"]):
            inner = Document({}, place.source, place.line, place.number, (*place.path, "items", str(index)))
            _add(inner, each, documents, findings)
        return
    documents.append(Document(value, place.source, place.line, place.number, place.path, place.problems))


def _is_almost_object(value: Any) -> bool:
    """Return True for a document with metadata and either a kind or an apiVersion, which is meant to be an object."""
    plain = mapping(value)
    return bool(text(plain.get("kind")) or text(plain.get("apiVersion"))) and isinstance(plain.get("metadata"), dict)


def _unreadable(source: Source, line: int, message: str) -> Finding:
    return Finding(Level.ERROR, Rule.UNREADABLE, message, source.name, line, object=Subject())


def _line_of(message: str) -> int:
    """Return the line that a parser's message begins with, 0 without one."""
    begin, _, rest = message.partition(" ")
    number = rest[:9].split(":")[0].split(",")[0]
    return int(number) if begin == "line" and is_digits(number) else 0
