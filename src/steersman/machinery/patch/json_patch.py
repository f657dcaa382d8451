"""JSON Patch (RFC 6902) on plain values, with the limits and messages of kube-apiserver's library.

That library (evanphx/json-patch v4) differs from the RFC: `replace` creates a missing member, `copy` of a missing
member gives null, an operation without `value` means null, and negative indices count from a list's end. An integer
does not equal a float (1 and 1.0), because the library compares the text of numbers. Two floats are compared by value,
because their text is not kept. Containers on the path of an operation get their members sorted, which clients see where
an error shows the result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from steersman.machinery.errors import status as errors
from steersman.work.offloading import ensure_offloaded, expect_offloading
from steersman.work.patterns import late_pattern
from steersman.work.threads import paced

MAX_OPERATIONS: Final = 10_000
MAX_COPY_BYTES: Final = 3 * 1024 * 1024
"""The most bytes of JSON that all copies of one patch may add to a document."""
_MANY_BYTES: Final = 64 * 1024
"""Copied bytes from which the work must run in a worker thread: twenty operations may turn a small document into
megabytes.
"""

Operation = Mapping[str, Any]

_MEMBERS: Final = ("op", "path", "from", "value")
_MISSING_VALUE: Final = "missing value"
_NO_DESTINATION: Final = "doc is missing destination path"


class PatchError(ValueError):
    """The error of a patch that cannot be applied; the document is unchanged.

    Only admission policies show the message to clients: kube-apiserver answers a plain 422.
    """


class FailedTest(PatchError):
    """The error of a failed test operation of the patch."""


def decode(patch: object, *, strict: bool) -> tuple[Sequence[Operation], list[str]]:
    """Return the operations of a decoded patch, and warnings about unknown members (only if `strict`).

    `strict` is for the field validation directives Warn and Strict, which check more. Raises StatusError: 400 for data
    that is not a patch, 413 for too many operations.
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
    """Return the name of a value's JSON type in Go's decoder."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def apply(document: Any, operations: Sequence[Operation], *, max_copy_bytes: int = MAX_COPY_BYTES) -> Any:
    """Return the document after all `operations`. The given document is unchanged and may share parts with the result.

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
    """The application of a patch. A container is copied when something in it is first changed."""

    __slots__ = ("_copied", "_copy_limit", "_owned", "root")

    def __init__(self, document: Any, copy_limit: int) -> None:
        self.root = document
        self._owned: dict[int, Any] = {}  # copied containers by id; the references keep the ids from being reused
        self._copied = 0
        self._copy_limit = copy_limit

    def result(self) -> Any:
        """Return the document after all operations, with the members of changed objects sorted."""
        for container in self._owned.values():
            if isinstance(container, dict):
                members = sorted(container.items())
                container.clear()
                container.update(members)
        return self.root

    def perform(self, operation: Operation) -> None:
        """Perform one operation. Raises PatchError."""
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
                # the library's message, with its mistake
                raise PatchError("replace operation value must be object or array: %!w(<nil>)")
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
        # looked up again, because making the path changeable may have replaced the value
        value = _get(holder, key, failure)
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
        """Return the container to which `path` leads and the key in it, after copying every shared container on the
        way.

        Returns None if there is no such container.
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
    """Return the JSON pointer in a member of an operation. Raises PatchError with `failure` if it is not text."""
    pointer = operation.get(name)
    if not isinstance(pointer, str):
        raise PatchError(f"{failure}: {_MISSING_VALUE}")
    return pointer


_escape: Final = late_pattern("~[01]")


def _unescape(name: str) -> str:
    """Return the key of a reference token (RFC 6901 section 4)."""
    return _escape.sub(lambda found: "/" if found[0] == "~1" else "~", name) if "~" in name else name


_number: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII).fullmatch


def _index(items: list[Any], key: str, *, limit: int | None = None) -> int | str:
    """Return the index in a list that `key` means, counted from 0, or an error message.

    Indexes must be below `limit`, by default the list's length.
    """
    if not _number(key):
        return f'strconv.Atoi: parsing "{key}": invalid syntax'
    index = int(key)
    size = len(items) if limit is None else limit
    if index >= size or index < -size:
        return f"Unable to access invalid index: {index}: invalid index referenced"
    return index + size if index < 0 else index


def _child(container: Any, key: str) -> Any:
    """Return a member, None if it does not exist."""
    if isinstance(container, dict):
        return container.get(key)
    index = _index(container, key)
    return None if isinstance(index, str) else container[index]


def _get(container: Any, key: str, failure: str) -> Any:
    """Return a member for reading: None for a missing member of an object. Raises PatchError for a missing list index."""
    if isinstance(container, dict):
        return container.get(key)
    index = _index(container, key)
    if isinstance(index, str):
        raise PatchError(f"{failure}: {index}")
    return container[index]


def _take(container: Any, key: str, failure: str) -> Any:
    """Remove a member and return it. Raises PatchError if it does not exist."""
    if isinstance(container, dict):
        if key not in container:
            raise PatchError(f"{failure}: Unable to remove nonexistent key: {key}: {_MISSING_VALUE}")
        return container.pop(key)
    index = _index(container, key)
    if isinstance(index, str):
        raise PatchError(f"{failure}: {index}")
    return container.pop(index)


def _put(container: Any, key: str, value: Any, failure: str) -> None:
    """Set a member of an object, or insert into a list (`-` appends). Raises PatchError."""
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
