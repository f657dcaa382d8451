"""Path items of v3 and v2 documents, built from operations.

Parameters that all operations of a path share are listed once in the path item, as kube-openapi's builders do. Keys are
sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Final

import orjson

from steersman.openapi.operations import Body, Operation
from steersman.openapi.parameters import Parameter, head, in_order
from steersman.openapi.sources import Tree

_SHARED: Final = Path(__file__).parent / "data" / "shared_parameters.json"
_UNAUTHORIZED: Final = {"description": "Unauthorized"}
_TEXT: Final = {"type": "string"}
_V3: Final = "#/components/schemas/"
_V2: Final = "#/definitions/"


def paths_v3(operations: Iterable[Operation]) -> Tree:
    """Return the path items of a v3 document."""
    return _paths(operations, _operation_v3, _parameter_v3)


def paths_v2(operations: Iterable[Operation]) -> Tree:
    """Return the path items of a v2 document; the parameters to which they refer are in `parameters_v2`."""
    return _paths(operations, _operation_v2, _parameter_v2)


def _paths(
    operations: Iterable[Operation],
    describe: Callable[[Operation, list[Parameter]], Tree],
    write: Callable[[Parameter], Tree],
) -> Tree:
    by_path: dict[str, list[Operation]] = {}
    for each in operations:
        by_path.setdefault(each.path, []).append(each)
    return {path: _item(by_path[path], describe, write) for path in sorted(by_path)}


def _item(
    operations: list[Operation],
    describe: Callable[[Operation, list[Parameter]], Tree],
    write: Callable[[Parameter], Tree],
) -> Tree:
    first, *others = operations
    common = set(first.parameters).intersection(*(each.parameters for each in others))
    item: Tree = {
        each.method: describe(each, in_order(own for own in each.parameters if own not in common))
        for each in operations
    }
    if common:
        item["parameters"] = [write(each) for each in in_order(common)]
    return dict(sorted(item.items()))


def _operation_v3(operation: Operation, parameters: list[Parameter]) -> Tree:
    found: Tree = {"operationId": operation.id}
    if parameters:
        found["parameters"] = [_parameter_v3(each) for each in parameters]
    if operation.body is not None:
        content = _content(operation.consumes, {"$ref": _V3 + operation.body.schema})
        found["requestBody"] = {"content": content} | ({"required": True} if operation.body.required else {})
    schema = {"$ref": _V3 + operation.answer} if operation.answer else _TEXT
    content = _content(operation.produces, schema)
    found["responses"] = {
        str(int(code)): {"content": content, "description": code.phrase} for code in operation.codes
    } | {"401": _UNAUTHORIZED}
    return found | _ends(operation)


def _content(media_types: tuple[str, ...], schema: Tree) -> Tree:
    return {each: {"schema": schema} for each in sorted(media_types)}


def _ends(operation: Operation) -> Tree:
    found: Tree = {"tags": [operation.tag]}
    if operation.action:
        found["x-kubernetes-action"] = operation.action
    if operation.kind is not None:
        found["x-kubernetes-group-version-kind"] = {
            "group": operation.kind.group,
            "kind": operation.kind.kind,
            "version": operation.kind.version,
        }
    return found


def _parameter_v3(parameter: Parameter) -> Tree:
    return {**head(parameter), "schema": {"type": parameter.type, "uniqueItems": True}}


def _operation_v2(operation: Operation, parameters: list[Parameter]) -> Tree:
    found: Tree = {"consumes": list(operation.consumes)} if operation.consumes else {}
    found["operationId"] = operation.id
    written = [(each.name, _parameter_v2(each)) for each in parameters]
    if operation.body is not None:
        written.append(("body", _body_v2(operation.body)))
    if written:
        found["parameters"] = [each for _, each in sorted(written, key=_by_name)]
    found["produces"] = list(operation.produces)
    schema = {"$ref": _V2 + operation.answer} if operation.answer else _TEXT
    found["responses"] = {
        str(int(code)): {"description": code.phrase, "schema": schema} for code in operation.codes
    } | {"401": _UNAUTHORIZED}
    found["schemes"] = ["https"]
    return found | _ends(operation)


def _by_name(written: tuple[str, Tree]) -> str:
    return written[0]


def _parameter_v2(parameter: Parameter) -> Tree:
    name = _shared().get(key_of(parameter))
    return {"$ref": f"#/parameters/{name}"} if name is not None else _whole_v2(parameter)


def _whole_v2(parameter: Parameter) -> Tree:
    return {**head(parameter), "type": parameter.type, "uniqueItems": True}


def _body_v2(body: Body) -> Tree:
    name = _shared().get(body.schema)
    return {"$ref": f"#/parameters/{name}"} if name is not None else _whole_body_v2(body)


def _whole_body_v2(body: Body) -> Tree:
    found: Tree = {"in": "body", "name": "body"}
    if body.required:
        found["required"] = True
    return found | {"schema": {"$ref": _V2 + body.schema}}


def parameters_v2(operations: Iterable[Operation]) -> dict[str, Tree]:
    """Return the parameters that these operations share with others, by name."""
    found: dict[str, Tree] = {}
    shared = _shared()
    for operation in operations:
        for each in operation.parameters:
            if (name := shared.get(key_of(each))) is not None:
                found[name] = _whole_v2(each)
        body = operation.body
        if body is not None and (name := shared.get(body.schema)) is not None:
            found[name] = _whole_body_v2(body)
    return found


def key_of(parameter: Parameter) -> str:
    """Return the key under which a parameter's name is recorded: "meta.v1.ListOptions limit", "path namespace"."""
    return f"{parameter.options or parameter.place} {parameter.name}"


@cache
def _shared() -> dict[str, str]:
    """Return the names of shared parameters in upstream's v2 document, which end in a digest of upstream's text."""
    names: dict[str, str] = orjson.loads(_SHARED.read_bytes())
    return names
