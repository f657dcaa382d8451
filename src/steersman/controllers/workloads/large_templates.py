"""Work on pod templates: beside the loop where they are large, as it walks every value of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from steersman.api.core.v1 import PodTemplateSpec
from steersman.machinery.codec.serializer import encode
from steersman.machinery.large_work.sizes import is_large
from steersman.work.offloading import offload_if

P = ParamSpec("P")
R = TypeVar("R")


async def on_template(template: PodTemplateSpec, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return what `work` makes of its arguments, of which `template` is the largest part. Raises what `work` raises."""
    return await offload_if(is_large(encode(template)), work, *args, **kwargs)
