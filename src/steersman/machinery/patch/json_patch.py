"""JSON Patch (RFC 6902) on plain values, with the limits and texts of the library that kube-apiserver uses for it.

That library (evanphx/json-patch v4) differs from the RFC: `replace` makes a missing member, `copy` of a missing member
gives null, an operation without `value` means null, and negative indices count from a list's end.
An integer is not equal to a float (1 to 1.0), as the library compares the text of numbers; of two floats, whose text is
not kept, the values are compared.
What an operation passes through has its members sorted, which clients see where an error shows the result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from steersman.machinery.errors import status as errors
from steersman.work.offloading import ensure_offloaded, expect_offloading
from steersman.work.threads import paced

MAX_OPERATIONS: Final = 10_000
MAX_COPY_BYTES: Final = 3 * 1024 * 1024
"""What all copies of one patch may add to a document, in bytes of JSON."""
_MANY_BYTES: Final = 64 * 1024
"""Of copies: a patch of twenty operations may make megabytes of a small document."""

Operation = Mapping[str, Any]

_MEMBERS: Final = ("op", "path", "from", "value")
_MISSING_VALUE: Final = "missing value"
_NO_DESTINATION: Final = "doc is missing destination path"


class PatchError(ValueError):
    """A patch does not apply; the document is as it was.

    Clients do not see the text, but for admission policies: kube-apiserver answers a plain 422.
    """


class FailedTest(PatchError):
    """A test that is part of the patch failed."""


def decode(patch: object, *, strict: bool) -> tuple[Sequence[Operation], list[str]]:
    """The operations in a decoded patch, and warnings on what it holds besides (only when `strict`).

    `strict` is for the field validation directives Warn and Strict, which look at more.
    Raises StatusError: 400 for what is no patch, 413 for more operations than are allowed.
    """
    if patch is None:
        return (), []
    if not isinstance(patch, list):
        raise _undecodable(patch, "value of type []handlers.jsonPatchOp" if strict else "value of type jsonpatch.Patch")
    unknown = []
    for index, operation in enumerate(patch):
        if operation is None:
            continue
        if not isinstance(operation, dict):
            kind = "value of type handlers.jsonPatchOp" if strict else "value of type jsonpatch.Operation"
            raise _undecodable(operation, kind, strict=strict)
        if strict:
            unknown += _unknown_members(operation, index)
    if len(patch) > MAX_OPERATIONS:
        text = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(patch)}"
        raise errors.request_entity_too_large(f"Request entity too large: {text}")
    return [operation or {} for operation in patch], unknown


def _unknown_members(operation: Operation, index: int) -> list[str]:
    unknown = []
    for name, value in operation.items():
        if name not in _MEMBERS:
            unknown.append(f'json patch unknown field "[{index}].{name}"')
        elif name != "value" and not isinstance(value, str | None):
            raise _undecodable(value, f"struct field jsonPatchOp.{name} of type string")
    return unknown


def _undecodable(value: object, target: str, *, strict: bool = True) -> errors.StatusError:
    text = f"json: cannot unmarshal {json_type(value)} into Go {target}"
    strict = strict and "jsonpatch." not in target
    return errors.bad_request(f"error decoding patch: {text}" if strict else text)


def json_type(value: object) -> str:
    """What Go's JSON decoder calls a value of this type."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def apply(document: Any, operations: Sequence[Operation], *, max_copy_bytes: int = MAX_COPY_BYTES) -> Any:
    """The document after all `operations`; the one given stays as it is and may share parts with the result.

    Raises PatchError at the first operation that fails.
    """
    expect_offloading()
    application = _Application(document, max_copy_bytes)
    try:
        for operation in paced(operations):
            application.perform(operation)
    except RecursionError:
        raise PatchError("the document or the patch is nested too deeply") from None
    return application.result()


class _Application:
    """A patch being applied: containers are copied the first time that something in them changes."""

    __slots__ = ("_copied", "_copy_limit", "_owned", "root")

    def __init__(self, document: Any, copy_limit: int) -> None:
        self.root = document
        self._owned: dict[int, Any] = {}  # by id; holding them keeps their ids from being used again
        self._copied = 0
        self._copy_limit = copy_limit

    def result(self) -> Any:
        """The document after the operations so far, which are the last."""
        for container in self._owned.values():
            if isinstance(container, dict):
                members = sorted(container.items())
                container.clear()
                container.update(members)
        return self.root

    def perform(self, operation: Operation) -> None:
        """Performs one operation. Raises PatchError."""
        match operation.get("op"):
            case "add":
                self._add(operation)
            case "remove":
                self._remove(operation)
            case "replace":
                self._replace(operation)
            case "move":
                self._move(operation)
            case "test":
                self._test(operation)
            case "copy":
                self._copy(operation)
            case kind:
                raise PatchError(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")

    def _add(self, operation: Operation) -> None:
        path = _pointer(operation, "path", "add operation failed to decode path")
        target, key = self._own(path) or _fail(f'add operation does not apply: doc is missing path: "{path}"')
        _put(target, key, operation.get("value"), f"error in add for path: '{path}'")

    def _remove(self, operation: Operation) -> None:
        path = _pointer(operation, "path", "remove operation failed to decode path")
        target, key = self._own(path) or _fail(f'remove operation does not apply: doc is missing path: "{path}"')
        _take(target, key, f"error in remove for path: '{path}'")

    def _replace(self, operation: Operation) -> None:
        path = _pointer(operation, "path", "replace operation failed to decode path: operation missing path field")
        value = operation.get("value")
        if path == "":
            if not isinstance(value, dict | list):
                raise PatchError("replace operation value must be object or array: %!w(<nil>)")  # as the library has it
            self.root = self._owned_copy(value)
            return
        target, key = self._own(path) or _fail(f"replace operation does not apply: doc is missing path: {path}")
        if isinstance(target, dict):
            target[key] = value
            return
        index = _index(target, key)
        if isinstance(index, str):
            _fail(f"replace operation does not apply: doc is missing key: {path}")
        else:
            target[index] = value

    def _move(self, operation: Operation) -> None:
        source = _pointer(operation, "from", "move operation failed to decode from: operation, missing from field")
        target, key = self._own(source) or _fail(f"move operation does not apply: doc is missing from path: {source}")
        value = _take(target, key, f"error in move for path: '{key}'")
        path = _pointer(operation, "path", "move operation failed to decode path: operation missing path field")
        target, key = self._own(path) or _fail(f"move operation does not apply: {_NO_DESTINATION}: {path}")
        _put(target, key, value, f"error in move for path: '{path}'")

    def _copy(self, operation: Operation) -> None:
        source = _pointer(operation, "from", "copy operation failed to decode from: operation, missing from field")
        holder, key = self._own(source) or _fail(f"copy operation does not apply: doc is missing from path: {source}")
        _get(holder, key, failure := f"error in copy for from: '{source}'")
        path = _pointer(operation, "path", "copy operation failed to decode path")
        target, to = self._own(path) or _fail(f"copy operation does not apply: {_NO_DESTINATION}: {path}")
        value = _get(holder, key, failure)  # which may be on the way there, and another now
        if value is not None:
            self._account(value)
            value = self._clone(value)  # a part shared by two places could change in both
        _put(target, to, value, "error while adding value during copy")

    def _clone(self, value: Any) -> Any:
        if isinstance(value, dict):
            members = sorted(value.items()) if id(value) in self._owned else value.items()
            return {key: self._clone(member) for key, member in members}
        if isinstance(value, list):
            return [self._clone(member) for member in value]
        return value

    def _account(self, value: Any) -> None:
        self._copied += len(msgspec.json.encode(value))
        if 0 < self._copy_limit < self._copied:
            raise PatchError(
                f"Unable to complete the copy, the accumulated size increase of copy is {self._copied}, "
                f"exceeding the limit {self._copy_limit}"
            )
        if self._copied > _MANY_BYTES:
            ensure_offloaded()

    def _test(self, operation: Operation) -> None:
        path = _pointer(operation, "path", "test operation failed to decode path: operation missing path field")
        if path == "":
            value = self.root
        else:
            holder, key = self._own(path) or _fail(f"test operation does not apply: is missing path: {path}")
            value = _get(holder, key, f"error in test for path: '{path}'")
        if not equal(value, operation.get("value")):
            raise FailedTest(f"testing value {path} failed: test failed")

    def _own(self, path: str) -> tuple[Any, str] | None:
        """The container that `path` leads to and the key in it, with every container on the way made safe to change.

        None if there is none.
        """
        _, *names = path.split("/")
        if not names:
            return None
        container = self.root = self._owned_copy(self.root)
        for name in names[:-1]:
            key = _unescape(name)
            child = _child(container, key)
            if not isinstance(child, dict | list):
                return None
            owned = self._owned_copy(child)
            if owned is not child:
                container[key if isinstance(container, dict) else int(key)] = owned
            container = owned
        return container, _unescape(names[-1])

    def _owned_copy(self, container: Any) -> Any:
        if id(container) in self._owned:
            return container
        copy = container.copy()
        self._owned[id(copy)] = copy
        return copy


def _fail(text: str) -> tuple[Any, str]:
    raise PatchError(f"{text}: {_MISSING_VALUE}")


def _pointer(operation: Operation, name: str, failure: str) -> str:
    """The JSON pointer in a member of an operation. Raises PatchError with `failure` if there is none."""
    pointer = operation.get(name)
    if not isinstance(pointer, str):
        raise PatchError(f"{failure}: {_MISSING_VALUE}")
    return pointer


_escape: Final = re.compile("~[01]")


def _unescape(name: str) -> str:
    """A reference token's key (RFC 6901 section 4)."""
    return _escape.sub(lambda found: "/" if found[0] == "~1" else "~", name) if "~" in name else name


_number: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII).fullmatch


def _index(items: list[Any], key: str, *, limit: int | None = None) -> int | str:
    """The place in a list that `key` names, counted from 0; what is wrong with it otherwise.

    Places run up to `limit`, the list's length unless given.
    """
    if not _number(key):
        return f'strconv.Atoi: parsing "{key}": invalid syntax'
    index = int(key)
    size = len(items) if limit is None else limit
    if index >= size or index < -size:
        return f"Unable to access invalid index: {index}: invalid index referenced"
    return index + size if index < 0 else index


def _child(container: Any, key: str) -> Any:
    """A member, None if there is none."""
    if isinstance(container, dict):
        return container.get(key)
    index = _index(container, key)
    return None if isinstance(index, str) else container[index]


def _get(container: Any, key: str, failure: str) -> Any:
    """A member to be read: None for one that an object lacks. Raises PatchError for a place that a list lacks."""
    if isinstance(container, dict):
        return container.get(key)
    index = _index(container, key)
    if isinstance(index, str):
        raise PatchError(f"{failure}: {index}")
    return container[index]


def _take(container: Any, key: str, failure: str) -> Any:
    """Removes a member and gives it. Raises PatchError if there is none."""
    if isinstance(container, dict):
        if key not in container:
            raise PatchError(f"{failure}: Unable to remove nonexistent key: {key}: {_MISSING_VALUE}")
        return container.pop(key)
    index = _index(container, key)
    if isinstance(index, str):
        raise PatchError(f"{failure}: {index}")
    return container.pop(index)


def _put(container: Any, key: str, value: Any, failure: str) -> None:
    """Sets a member of an object, or inserts into a list (`-`: at its end). Raises PatchError."""
    if isinstance(container, dict):
        container[key] = value
        return
    if key == "-":
        container.append(value)
        return
    index = _index(container, key, limit=len(container) + 1)
    if isinstance(index, str):
        improper = "" if index.startswith("Unable") else f"value was not a proper array index: '{key}': "
        raise PatchError(f"{failure}: {improper}{index}")
    container.insert(index, value)


def equal(left: Any, right: Any) -> bool:
    """Return True if two JSON values are equal; unlike Python's own comparison, neither true nor 1.0 is 1."""
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and len(left) == len(right)
            and all(key in right and equal(value, right[key]) for key, value in left.items())
        )
    if isinstance(left, list):
        return (
            isinstance(right, list)
            and len(left) == len(right)
            and all(equal(one, other) for one, other in zip(left, right, strict=True))
        )
    return type(left) is type(right) and bool(left == right)
