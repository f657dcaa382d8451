"""Modules that are imported at their first use: in a thread, once, and under names that exist wherever they are
declared.
"""

from __future__ import annotations

import ast
import sys
import threading
from importlib import import_module
from pathlib import Path

import pytest

import steersman
from steersman.work.first_use import import_offloaded, on_first_use
from steersman.work.offloading import Account, bound
from steersman.work.threads import WorkerThreads

MODULE = "a_module_for_first_use"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / f"{MODULE}.py").write_text(
        "import threading\nIMPORTED_IN = threading.current_thread()\nasync def twice(x, *, more=0): return 2 * x + more\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    return MODULE


async def test_the_first_use_imports_it_in_a_thread(module: str) -> None:
    threads = WorkerThreads()
    with bound(Account(threads, "alice")):
        assert module not in sys.modules
        call = on_first_use(module, "twice")
        assert await call(21, more=1) == 43
        found = await import_offloaded(module)
        assert found.IMPORTED_IN is not threading.current_thread()
        assert await import_offloaded(module) is found
    threads.close()
    del sys.modules[module]


def test_what_is_declared_is_there() -> None:
    """Each `on_first_use(module, name)` of the project names an existing coroutine function."""
    found = []
    for path in Path(steersman.__file__).parent.rglob("*.py"):
        text = path.read_text()
        if "on_first_use(" not in text or path.name == "first_use.py":
            continue
        own = import_module(
            ".".join(("steersman", *path.relative_to(Path(steersman.__file__).parent).with_suffix("").parts))
        )
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "on_first_use":
                where, name = map(ast.unparse, node.args)
                module = getattr(own, where) if where.isidentifier() else ast.literal_eval(where)
                found.append(getattr(import_module(module), ast.literal_eval(name)))
    assert len(found) >= 7
    assert all(map(callable, found))
