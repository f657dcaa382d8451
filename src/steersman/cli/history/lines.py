"""Entries of history as text for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import Any, Final

from steersman.cli.terminal_text import coloured, printable
from steersman.cli.up.screen import GREEN, RED
from steersman.machinery.codec.serializer import encode_in_order

_SHOWN_CHANGES: Final = 3
_LONGEST_VALUE: Final = 40
_LONGEST_LINE: Final = 4_000
_DONE: Final = {"ADDED": "added", "MODIFIED": "modified", "DELETED": "deleted"}
_UNSHOWN: Final = ("managedFields", "resourceVersion")
_MOST_LINES: Final = 20_000
"""Lines of YAML up to which two objects are compared line by line, whose cost grows with their square."""
_MARKS: Final = {"added": "+", "removed": "-", "changed": "", "ordered": ""}


def table(entries: Sequence[dict[str, Any]], *, wide: bool, named: bool) -> Iterator[str]:
    """Yield a table of entries, in their order; `named` adds the objects' names."""
    rows = [_header(wide=wide, named=named)]
    rows += [_row(each, wide=wide, named=named) for each in entries]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip(" ")


def _header(*, wide: bool, named: bool) -> list[str]:
    wanted = ["REVISION", "TIME", *(["OBJECT"] if named else []), "VERB", "USER", "MANAGER"]
    return [*wanted, *(["USER-AGENT", "AUDIT-ID"] if wide else []), "CHANGE"]


def _row(entry: dict[str, Any], *, wide: bool, named: bool) -> list[str]:
    verb = verb_of(entry)
    if entry.get("subresource"):
        verb = f"{verb} {entry['subresource']}"
    texts = [entry["revision"], entry.get("time", "")[:19].replace("T", " ")]
    if named:
        texts.append("/".join(filter(None, (entry.get("namespace"), entry["name"]))))
    texts += [verb, entry.get("user", ""), ",".join(entry.get("managers") or ())]
    if wide:
        texts += [entry.get("userAgent", ""), entry.get("auditID", "")]
    cells = [printable(text, 60) or "-" for text in texts]
    return [*cells, change_text(entry, wide=wide)]


def verb_of(entry: dict[str, Any]) -> str:
    """Return the verb of a write, or what it did if the verb is not known."""
    return entry.get("verb") or _DONE[entry["type"]]


def change_text(entry: dict[str, Any], *, wide: bool = False) -> str:
    """Return one line about what a write has changed."""
    if entry.get("unreadable"):
        return printable(f"unreadable: {entry['unreadable']}")
    if entry["type"] != "MODIFIED":
        return "created" if entry["type"] == "ADDED" else "deleted"
    changes = entry.get("changes")
    if changes is None:
        return "unknown: the value before is not in history"
    more = entry.get("moreChanges", 0)
    shown = changes if wide else changes[:_SHOWN_CHANGES]
    texts = [change_line(each) for each in shown]
    if (left := len(changes) - len(shown) + more) > 0:
        texts.append(f"and {left} more")
    return ", ".join(texts) or "nothing but metadata"


def change_line(change: dict[str, Any]) -> str:
    """Return a change of a field as text of one line."""
    path = printable(change["path"], 100)
    if change.get("hidden"):
        return f"{_MARKS[change['op']]}{path} (hidden)"
    if change["op"] == "removed":
        return f"-{path}"
    if change["op"] == "added":
        return f"+{path}: {value_text(change.get('to'))}"
    if change["op"] == "ordered":
        return f"{path} in another order"
    return f"{path}: {value_text(change.get('from'))} -> {value_text(change.get('to'))}"


def value_text(value: Any) -> str:
    """Return a value as short text of one line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return printable(text, _LONGEST_VALUE) or '""'


def object_diff(before: dict[str, Any] | None, after: dict[str, Any] | None, names: tuple[str, str]) -> Iterator[str]:
    """Yield a unified diff of two objects in YAML, without members that every write changes."""
    old, new = _yaml_lines(before), _yaml_lines(after)
    if len(old) + len(new) > _MOST_LINES:
        yield f"{names[1]}: too long for a diff; -o json has the changes by path"
        return
    for line in unified_diff(old, new, printable(names[0]), printable(names[1]), lineterm=""):
        text = line[:1] + _shown_line(line[1:])
        yield coloured(text, GREEN if line[0] == "+" else RED if line[0] == "-" else "")


def _yaml_lines(obj: dict[str, Any] | None) -> list[str]:
    from steersman.machinery.codec.yaml import from_json

    if obj is None:
        return []
    metadata = {name: value for name, value in obj.get("metadata", {}).items() if name not in _UNSHOWN}
    return from_json(encode_in_order({**obj, "metadata": metadata})).decode().split("\n")[:-1]


def _shown_line(line: str) -> str:
    text = line.lstrip(" ")
    return line[: len(line) - len(text)] + printable(text, _LONGEST_LINE)
