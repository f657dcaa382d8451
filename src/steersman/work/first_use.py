"""Imports of modules at their first use, in a worker thread so that the event loop is not held."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from steersman.work.offloading import offload_if


async def import_offloaded(name: str) -> ModuleType:
    """Return the module `name`.

    If it is not imported yet, import it in a worker thread, as that may take tens of ms.
    """
    found = sys.modules.get(name)
    if found is None or getattr(found.__spec__, "_initializing", False):
        found = await offload_if(True, import_module, name)
    return found


def on_first_use(module: str, name: str) -> Callable[..., Awaitable[Any]]:
    """Return a coroutine function that calls the coroutine function `name` of `module`; its first call imports the
    module.
    """

    async def call(*args: Any, **kwargs: Any) -> Any:
        return await getattr(await import_offloaded(module), name)(*args, **kwargs)

    return call
