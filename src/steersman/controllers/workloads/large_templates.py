"""Work on pod templates: it visits every value of a template, so it is offloaded for large ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from steersman.api.core.v1 import PodTemplateSpec
from steersman.machinery.codec.serializer import encode
from steersman.machinery.large_work.sizes import is_large
from steersman.work.offloading import offload_if

P = ParamSpec("P")
R = TypeVar("R")


async def offload_if_large(template: PodTemplateSpec, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return the result of `work(*args, **kwargs)`, in a worker thread if `template`, its largest argument, is large.

    Raises what `work` raises.
    """
    return await offload_if(is_large(encode(template)), work, *args, **kwargs)
