"""What is wrong with the selectors of a claim or class, found out before it is validated and beside the event loop.

An expression takes half a millisecond to compile, one of 10 KiB a hundred times that, and a claim may have thousands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from steersman.api.resource.v1 import DeviceClaim, DeviceSelector
from steersman.machinery.validation.formats import byte_length
from steersman.registry.resource.limits import MAX_ALTERNATIVES, MAX_EXPRESSION, MAX_REQUESTS, MAX_SELECTORS
from steersman.registry.services import Services
from steersman.rest.allocator import Inquiry
from steersman.rest.context import Context
from steersman.work.offloading import offload_if

if TYPE_CHECKING:
    from steersman.registry.resource.device_selectors import Verdict

T = TypeVar("T")

Verdicts = Mapping[str, "Verdict"]
"""By expression."""

NO_VERDICTS: Final[Verdicts] = {}


class SelectorInquiry(Inquiry[T]):
    """Compiles the selectors of what is written."""

    def __init__(self, services: Services) -> None:
        """Take `services` as every inquiry does; this one asks nothing of them."""

    async def judge(self, ctx: Context, selectors: Iterable[DeviceSelector], *, stored: bool = False) -> None:
        """Keeps the verdicts on them for validation; see `judge_selectors`."""
        ctx.inquiry_result = await judge_selectors(selectors, stored=stored)


async def judge_selectors(selectors: Iterable[DeviceSelector], *, stored: bool = False) -> Verdicts:
    """The verdicts on those that are not refused for their length; `stored` if they were accepted before.

    They are judged one by one, so that a claim of many does not keep a worker thread to itself.
    """
    expressions = {each.cel.expression for each in selectors if each.cel is not None}
    wanted = sorted(each for each in expressions if byte_length(each) <= MAX_EXPRESSION)
    verdicts: dict[str, Verdict] = {}
    for each in wanted:
        verdicts |= await offload_if(True, judge_all, (each,), stored=stored)
    return verdicts


def judge_all(expressions: Iterable[str], *, stored: bool) -> Verdicts:
    """The verdicts on all of them, now."""
    # Slow to import, and not needed where no devices are selected.
    from steersman.registry.resource.device_selectors import judge

    return {each: judge(each, stored=stored) for each in expressions}


def claim_selectors(claim: DeviceClaim) -> Iterator[DeviceSelector]:
    """The selectors of a claim that are looked at: not those of lists that are refused for their length."""
    requests = claim.requests or []
    if len(requests) > MAX_REQUESTS:
        return
    for request in requests:
        alternatives = request.first_available if len(request.first_available) <= MAX_ALTERNATIVES else []
        for each in (request.exactly, *alternatives):
            if each is not None and len(each.selectors) <= MAX_SELECTORS:
                yield from each.selectors
