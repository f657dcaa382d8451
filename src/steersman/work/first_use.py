"""Modules that are imported when they are first needed, without holding the event loop meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from steersman.work.offloading import offload_if


async def loaded(name: str) -> ModuleType:
    """Return a module, imported in a worker thread if it is not there yet: that may take tens of milliseconds."""
    found = sys.modules.get(name)
    if found is None or getattr(found.__spec__, "_initializing", False):
        found = await offload_if(True, import_module, name)
    return found


def on_first_use(module: str, name: str) -> Callable[..., Awaitable[Any]]:
    """Return a coroutine function that stands for the one of that name in a module, which its first call imports."""

    async def call(*args: Any, **kwargs: Any) -> Any:
        return await getattr(await loaded(module), name)(*args, **kwargs)

    return call
