"""Private names of the package that tests use."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache

_PRIVATE = re.compile(r"_(?!_)(?!replace\b)\w+")
"""Private names. `_replace` is a public method of named tuples."""
_LIKELY = re.compile(r"\._[a-zA-Z]|\bimport\b.*\b_[a-zA-Z]|^    _\w+,$|[\"']_[a-zA-Z]", re.MULTILINE)
"""Text that may have a private name: parsing all files takes long."""
_PATCHED = re.compile(r"steersman\.[\w.]*\._(?!_)\w+")


@lru_cache(maxsize=1)
def _nodes(text: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a module that may have private names, and none of other modules."""
    return tuple(ast.walk(ast.parse(text))) if _LIKELY.search(text) else ()


def _own(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that a module defines itself."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
            names.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {"self", "cls"}


def _is_ours(node: ast.expr) -> bool:
    """Return True for a test's own object, and for a module of Python's standard library."""
    return _is_self(node) or (isinstance(node, ast.Name) and node.id in sys.stdlib_module_names)


def read(text: str) -> Iterator[str]:
    """Yield the private names that a module imports from the package, or reads from another module's object."""
    nodes = _nodes(text)
    own = _own(nodes)
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "steersman":
            yield from (f"{node.module}.{alias.name}" for alias in node.names if _PRIVATE.fullmatch(alias.name))
        elif isinstance(node, ast.Attribute) and node.attr not in own and not _is_ours(node.value):
            yield from filter(_PRIVATE.fullmatch, [node.attr])


def patched(text: str) -> Iterator[str]:
    """Yield the private names that a module replaces by `monkeypatch.setattr` or `setitem`."""
    for node in _nodes(text):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr not in {"setattr", "setitem", "delattr"}:
            continue
        for argument in node.args[:2]:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                name = argument.value
                if _PATCHED.fullmatch(name) or _PRIVATE.fullmatch(name):
                    yield name
