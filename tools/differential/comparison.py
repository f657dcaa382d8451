"""Answers made comparable, and what is different in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from .server import Answer

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ADDRESS: Final = re.compile(r"10\.0\.0\.\d{1,3}")
_PORT: Final = re.compile(r'([nN]odePort\\*"?:|\{TCP |\{UDP |Duplicate value: )(3[0-2]\d{3})')
_SELF: Final = re.compile(r"selfType\d+")
"""The name of a type in messages about rules, which is another one each time."""
_POINTER: Final = re.compile(r"0x[0-9a-f]{9,12}\b")
"""Pattern of a memory address that Go prints."""
_TYPE_VARIABLE: Final = re.compile(r"\b_var\d+\b")
"""Pattern of a type variable of CEL; Go numbers them in any order."""
_QUOTED_VERSION: Final = re.compile(r'(resourceVersion(?:\\*":\\*"|: "))(\d+)')
_HOOK: Final = re.compile(r"https://127\.0\.0\.1:\d+/case-")
_BUNDLE: Final = "caBundle"
_GENERATED: Final = re.compile(r"-gen-[a-z0-9]{5}")
_IN_RECORD: Final = re.compile(r"(ResourceVersion in (?:record|the precondition) \()(\d+)")
_LIST_IN_YAML: Final = re.compile(
    r'(\nmetadata:\n  continue: )[^\n]*\n  (?:remainingItemCount: \d+\n  )?resourceVersion: "\d*"\n'
)
_AGE: Final = re.compile(r"\d+s")
_DIFF: Final = "\n@@ -"
_EMPTY: Final = re.compile(r"(: ?)(\[\]|\{\})(?=[:,}])")
_QUOTED: Final = re.compile(r'"\{(?:[^"\\]|\\.)*\}"')
_COMPACT: Final = (",", ":")
_OF_WRITES: Final = ("managedFields", "resourceVersion")
_UNORDERED: Final = "The order in patch list:"
_UNKNOWN: Final = re.compile(r'unknown field "[^"]*"')
_UNDECLARED: Final = "field not declared in schema"
_AROUND: Final = 60
_WORDS: Final = re.compile(r"[,\[\] ]+")


class Normaliser:
    """Replaces what is a server's own choice by its place in the order of appearance, within one case."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}

    def answer(self, answer: Answer, *, conditions: bool = False) -> dict[str, Any]:
        """An answer as plain data, with what may differ taken out; with `conditions` a definition keeps its own."""
        without_versions = _without_versions(_status_in_yaml(answer.body))
        body = self._value(
            "", _with_conditions(without_versions) if conditions else _without_conditions(without_versions)
        )
        out: dict[str, Any] = {"code": answer.code, "body": body}
        if answer.warnings:
            # those about what a JSON patch has copied come in one order or another
            out["warnings"] = sorted(self._text(text) for text in answer.warnings)
        if isinstance(body, dict) and body.get("kind") == "Status":
            _order_causes(body)
        return out

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._value(key, item) for key, item in value.items()}
        if isinstance(value, list):
            items = [self._value(name, item) for item in value]
            # their order is that of their times, which may fall on either side of a second
            if name == "cells":
                return ["<age>" if isinstance(each, str) and _AGE.fullmatch(each) else each for each in items]
            return sorted(items, key=_identity) if name == "managedFields" else items
        if isinstance(value, str):
            if name == "resourceVersion" and value.isdigit():
                return self._place("version", value)
            return "<bundle>" if name == _BUNDLE else self._text(value)
        if name in ("nodePort", "healthCheckNodePort") and isinstance(value, int) and value:
            return self._place("port", str(value))
        return value

    def _text(self, text: str) -> str:
        text = _explained(_TIME.sub("<time>", text))
        text = _UID.sub(lambda match: self._place("uid", match[0]), text)
        text = _POINTER.sub("0x<pointer>", _TYPE_VARIABLE.sub("_var", _SELF.sub("selfType", text)))
        text = _HOOK.sub("https://<hook>/case-", text)
        text = _IN_RECORD.sub(lambda match: match[1] + self._place("version", match[2]), text)
        text = _LIST_IN_YAML.sub(r"\1", text)
        text = _GENERATED.sub("-gen-<random>", text)
        text = _ADDRESS.sub(lambda match: self._place("address", match[0]), text)
        text = _PORT.sub(lambda match: match[1] + self._place("port", match[2]), text)
        return _QUOTED_VERSION.sub(lambda match: match[1] + self._place("version", match[2]), text)

    def _place(self, kind: str, value: str) -> str:
        known = self._known.setdefault(kind, {})
        return known.setdefault(value, f"<{kind} {len(known) + 1}>")


def _identity(entry: Any) -> list[str]:
    """Return the parts that distinguish an entry of managedFields from others."""
    found = entry if isinstance(entry, dict) else {}
    return [str(found.get(name, "")) for name in ("operation", "manager", "apiVersion", "subresource")]


def _explained(text: str) -> str:
    """Takes out of a text what is known to differ, and why it may.

    A Pod that may not be changed so is answered with a diff of upstream's internal type, in which an empty list is not
    the same as none at all; a few other messages show which of them it was, too.
    """
    text = _EMPTY.sub(r"\1null", text)
    if _UNDECLARED in text:
        return f"{text.partition(':')[0]}: {_UNDECLARED}"  # Go's random order says what else was seen before it
    if "errors:\n" in text:  # they come in the order of a map
        text = "\n".join(sorted(text.split("\n")))
    text = _QUOTED.sub(_sorted, text)
    unknown = iter(sorted(_UNKNOWN.findall(text)))  # of what a JSON patch has copied they come in any order
    text = _UNKNOWN.sub(lambda _: next(unknown), text)
    if text.startswith(_UNORDERED):
        return _UNORDERED  # of several lists in a wrong order, upstream tells of any
    return text.partition(_DIFF)[0] + " <diff>" if _DIFF in text else text


def _sorted(quoted: re.Match[str]) -> str:
    """An object quoted in a message, its members sorted: what a JSON patch copies comes in one order or another."""
    try:
        return json.dumps(json.dumps(json.loads(json.loads(quoted[0])), sort_keys=True, separators=_COMPACT))
    except ValueError:
        return quoted[0]


def _status_in_yaml(found: Any) -> Any:
    """A Status as data, of which the order of causes does not matter."""
    return yaml.safe_load(found) if isinstance(found, str) and "\nkind: Status\n" in found else found


def _without_versions(found: Any) -> Any:
    """A list without what depends on all else that has been written to a server.

    Upstream gives a token to go on where more is stored, be it of other cases; here it says that more matches.
    """
    if isinstance(found, dict) and found.get("kind") == "APIResourceList":
        # custom resources come in the order of a map
        return {**found, "resources": sorted(found["resources"], key=lambda each: str(each["name"]))}
    if not isinstance(found, dict) or not ("items" in found or found.get("kind") == "Table"):
        return found
    metadata = {name: item for name, item in found["metadata"].items() if name not in ("resourceVersion", "continue")}
    return {**found, "metadata": metadata}


def _without_conditions(found: Any) -> Any:
    """A CustomResourceDefinition without what controllers write of it, which is there sooner or later."""
    if not isinstance(found, dict) or found.get("kind") != "CustomResourceDefinition":
        return found
    metadata = {name: item for name, item in found["metadata"].items() if name not in _OF_WRITES}
    status = {"storedVersions": found["status"]["storedVersions"]}
    return {**found, "metadata": metadata, "status": status}


def _with_conditions(found: Any) -> Any:
    """A CustomResourceDefinition whose conditions are in one order, without what each write of them leaves."""
    if not isinstance(found, dict) or found.get("kind") != "CustomResourceDefinition":
        return found
    metadata = {name: item for name, item in found["metadata"].items() if name not in _OF_WRITES}
    conditions = sorted(found["status"].get("conditions") or [], key=lambda each: str(each.get("type")))
    return {**found, "metadata": metadata, "status": {**found["status"], "conditions": conditions}}


def _order_causes(status: dict[str, Any]) -> None:
    """Puts what Go's maps have in random order into one: causes, and with more than one the words of the message."""
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    if not isinstance(causes, list) or len(causes) < 2:
        return
    causes.sort(key=str)
    status["message"] = " ".join(sorted(_WORDS.split(status.get("message", ""))))


def differences(a: Any, b: Any, path: str = "") -> Iterator[str]:
    """One line for every place where two values are not the same."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            below = f"{path}.{key}" if path else key
            if key not in b:
                yield f"{below}: only a has {_short(a[key])}"
            elif key not in a:
                yield f"{below}: only b has {_short(b[key])}"
            else:
                yield from differences(a[key], b[key], below)
    elif isinstance(a, list) and isinstance(b, list):
        for side, items, count in (("a", a, len(b)), ("b", b, len(a))):
            for index, item in enumerate(items[count:], count):
                yield f"{path}[{index}]: only {side} has {_short(item)}"
        for index, (left, right) in enumerate(zip(a, b, strict=False)):
            yield from differences(left, right, f"{path}[{index}]")
    elif isinstance(a, str) and isinstance(b, str):
        if a != b:
            yield f"{path}: {_parts(a, b)}"
    elif type(a) is not type(b) or a != b:
        yield f"{path}: a {_short(a)}, b {_short(b)}"


def _parts(a: str, b: str) -> str:
    """Return the first difference of two texts, with some of the text around it."""
    same = next((index for index, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    start = max(0, same - _AROUND)
    before = "..." if start else ""
    return "a {!r}, b {!r}".format(*(before + text[start : same + 4 * _AROUND] for text in (a, b)))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 700 else f"{text[:700]}..."
