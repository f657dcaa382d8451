"""Normalisation of answers, which replaces values that differ from run to run by symbols, and comparison of answers."""

from __future__ import annotations

import json
import re
from typing import Any, Final

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_AGE: Final = re.compile(r"^(\d+[smhdy])+$")
_AGO: Final = re.compile(r"\(\S+ ago\)")
_JWT: Final = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+")
_QUOTED_RV: Final = re.compile(r'(resourceVersion\\*"?: ?\\*")\d+')  # in JSON or YAML inside a text
_FINGERPRINT: Final = re.compile(r"X509SHA256=[0-9a-f]{64}")
_CLUSTER_IP: Final = re.compile(r"\b10\.0\.0\.\d{1,3}\b")
_SERVER: Final = re.compile(r"127\.0\.0\.1:\d+")
_AGE_COLUMNS: Final = ("Age", "Last Seen", "First Seen", "Duration")
_LONGEST_SHOWN: Final = 300


class Normaliser:
    """Replacement of values that differ from run to run by symbols, the same symbol for the same value.

    A value saved in `variables` becomes its name in braces.
    """

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}
        self._symbols: dict[tuple[str, str], str] = {}
        self._columns: list[dict[str, Any]] = []

    def text(self, value: str) -> str:
        """Return a text with its times, uids, addresses and saved values replaced."""
        if whole := self._saved(value):
            return whole
        value = _FINGERPRINT.sub("X509SHA256=<hash>", value)
        value = _QUOTED_RV.sub(r"\1<rv>", _TIME.sub("<time>", _JWT.sub("<jwt>", value)))
        value = _UUID.sub(lambda match: self._saved(match[0]) or self._symbol("uid", match[0]), value)
        value = _CLUSTER_IP.sub(lambda match: self._saved(match[0]) or "<cluster ip>", value)
        for name, known in self.variables.items():
            if name != "ns" and len(known) > 2:
                value = _replace(name, known, value)
        return _AGO.sub("(<age> ago)", _SERVER.sub("<server>", value))

    def walk(self, value: Any, key: str = "", *, is_object: bool = True) -> Any:
        """Return the normalised JSON value of `key`. `is_object` is True if metadata in the value is an object's own."""
        if isinstance(value, dict):
            if value.get("kind") == "Table" and "columnDefinitions" in value:
                return self._table(value)
            return self._members(value, key, is_object=is_object)
        if isinstance(value, list):
            return [self.walk(each, key) for each in value]
        if type(value) is int and value > 1024 and self._is_port(value):
            return "<port>"
        return self.text(value) if isinstance(value, str) else value

    def _members(self, value: dict[str, Any], key: str, *, is_object: bool) -> dict[str, Any]:
        listing = "items" in value or value.get("kind") in ("Status", "Table")
        out: dict[str, Any] = {}
        for name, each in value.items():
            if key == "annotations" and name.startswith("apiserver.latency.k8s.io/"):
                continue  # of slow requests, in audit events
            if name == "resourceVersion" and isinstance(each, str):
                out[name] = self._version(each, loose=key == "metadata" and not is_object)
            elif name == "continue" and each:
                out[name] = "<continue>"
            elif name == "nodePort" and isinstance(each, int) and each:
                out[name] = "<node port>"
            elif name == "metadata":
                bookmark = isinstance(each, dict) and "name" not in each and "generateName" not in each
                out[name] = self.walk(each, "metadata", is_object=not (listing or bookmark))
            else:
                out[self.text(name) if _UUID.search(name) else name] = self.walk(each, name)
        return out

    def _version(self, value: str, *, loose: bool) -> str:
        if not value:
            return value
        if loose:
            return "<rv>"
        known = [name for name, saved in self.variables.items() if saved == value]
        return "{" + known[0] + "}" if known else self._symbol("rv", value)

    def _table(self, value: dict[str, Any]) -> dict[str, Any]:
        columns = value["columnDefinitions"] or self._columns  # a watch sends them with its first event only
        self._columns = columns
        ages = {
            index
            for index, column in enumerate(columns)
            if "date" in (column.get("format"), column.get("type")) or column["name"] in _AGE_COLUMNS
        }
        rest = {key: each for key, each in value.items() if key not in ("rows", "columnDefinitions", "metadata")}
        out = {key: self.walk(each, key) for key, each in rest.items()}
        out["metadata"] = self.walk(value.get("metadata"), "metadata", is_object=False)
        out["columnDefinitions"] = value["columnDefinitions"] and [
            {key: each for key, each in column.items() if key != "description"} for column in columns
        ]
        out["rows"] = [
            self.walk({key: each for key, each in row.items() if key != "cells"})
            | {"cells": [self._cell(cell, aged=index in ages) for index, cell in enumerate(row["cells"])]}
            for row in value.get("rows") or []
        ]
        return out

    def _cell(self, cell: Any, *, aged: bool) -> Any:
        if isinstance(cell, str) and (aged or _AGE.match(cell)) and cell != "<none>":
            return "<age>"
        return self.walk(cell)

    def _symbol(self, kind: str, value: str) -> str:
        number = sum(each == kind for each, _ in self._symbols) + 1
        return self._symbols.setdefault((kind, value), f"<{kind} {number}>")

    def _saved(self, value: str) -> str | None:
        """Return the name, in braces, of the variable that was saved with this value; None if there is none."""
        names = (name for name, known in self.variables.items() if known == value and name != "ns" and len(known) > 2)
        return next(("{" + name + "}" for name in names), None)

    def _is_port(self, value: int) -> bool:
        return any(name.endswith(".port") and known == str(value) for name, known in self.variables.items())


def _replace(name: str, known: str, value: str) -> str:
    """Return `value` with the saved value `known` replaced by its name, except inside of a longer word."""
    if name.endswith(".port"):
        before = r"(:)"
    elif known.isdigit():
        before = r"((?:[vV]ersion|current|record|meta)\W{1,4})"
    else:
        before = r"(^|(?<![\w.-]))"
    return re.sub(before + re.escape(known) + r"(?![\w-])", lambda match: match[1] + "{" + name + "}", value)


def dig(value: Any, path: str) -> Any:
    """Return the value at a dotted path, None if there is none; a number indexes a list, a backslash protects a dot."""
    for key in (part.replace("\\.", ".") for part in re.split(r"(?<!\\)\.", path)):
        if isinstance(value, list) and key.lstrip("-").isdigit() and -len(value) <= int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, dict) and key in value:
            value = value[key]
        else:
            return None
    return value


def drop(value: Any, path: str) -> None:
    """Remove the value at a dotted path."""
    parent, _, last = path.rpartition(".")
    holder = dig(value, parent) if parent else value
    if isinstance(holder, dict):
        holder.pop(last, None)


def put_in_order(body: dict[str, Any]) -> None:
    """Sort the causes of a Status and the words of its message, which servers may give in any order."""
    causes = dig(body, "details.causes") or []
    if len(causes) > 1:
        body["message"] = " ".join(sorted(re.split(r"[\s,\[\]]+", body["message"])))
        causes.sort(key=lambda each: json.dumps(each, sort_keys=True))


def differences(want: Any, have: Any, path: str = "") -> list[str]:
    """Return a line for each difference between two JSON values, with its path."""
    if isinstance(want, dict) and isinstance(have, dict):
        lines = []
        for key in sorted(want.keys() | have.keys(), key=str):
            where = f"{path}.{key}" if path else str(key)
            if key not in have:
                lines.append(f"{where}: missing, want {_brief(want[key])}")
            elif key not in want:
                lines.append(f"{where}: unexpected {_brief(have[key])}")
            else:
                lines += differences(want[key], have[key], where)
        return lines
    if isinstance(want, list) and isinstance(have, list):
        if path.endswith("managedFields"):  # the server orders them by the second they were written in
            want, have = sorted(want, key=_manager), sorted(have, key=_manager)
        lines = [] if len(want) == len(have) else [f"{path}: {len(have)} items, want {len(want)}"]
        for index, (one, other) in enumerate(zip(want, have, strict=False)):
            lines += differences(one, other, f"{path}[{index}]")
        return lines
    same = want == have and type(want) is type(have)
    return [] if same else [f"{path}: {_brief(have)}, want {_brief(want)}"]


def _manager(entry: dict[str, Any]) -> list[str]:
    return [str(entry.get(key)) for key in ("manager", "operation", "subresource", "apiVersion")]


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"
