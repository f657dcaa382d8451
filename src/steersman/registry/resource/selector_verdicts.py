"""Checks of the selectors of claims and classes, made in worker threads before validation.

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
"""Verdicts by expression."""

NO_VERDICTS: Final[Verdicts] = {}


class SelectorInquiry(Inquiry[T]):
    """The base of inquiries that compile the selectors of an object."""

    def __init__(self, services: Services) -> None:
        """Create the inquiry; the services are not used."""

    async def check(self, ctx: Context, selectors: Iterable[DeviceSelector], *, stored: bool = False) -> None:
        """Store the verdicts on `selectors` for validation; see `check_selectors`."""
        ctx.inquiry_result = await check_selectors(selectors, stored=stored)


async def check_selectors(selectors: Iterable[DeviceSelector], *, stored: bool = False) -> Verdicts:
    """Return the verdicts on selectors of acceptable length; `stored` if they were accepted before.

    Each is checked in a task of its own, so that a claim with many does not keep a worker thread busy.
    """
    expressions = {each.cel.expression for each in selectors if each.cel is not None}
    wanted = sorted(each for each in expressions if byte_length(each) <= MAX_EXPRESSION)
    verdicts: dict[str, Verdict] = {}
    for each in wanted:
        verdicts |= await offload_if(True, check_expressions, (each,), stored=stored)
    return verdicts


def check_expressions(expressions: Iterable[str], *, stored: bool) -> Verdicts:
    """Return the verdicts on all expressions, computed in the calling thread."""
    # Imported on first use: the import is slow and not needed without selectors.
    from steersman.registry.resource.device_selectors import check_expression

    return {each: check_expression(each, stored=stored) for each in expressions}


def claim_selectors(claim: DeviceClaim) -> Iterator[DeviceSelector]:
    """Yield the selectors of a claim, except those in lists that validation refuses for their length."""
    requests = claim.requests or []
    if len(requests) > MAX_REQUESTS:
        return
    for request in requests:
        alternatives = request.first_available if len(request.first_available) <= MAX_ALTERNATIVES else []
        for each in (request.exactly, *alternatives):
            if each is not None and len(each.selectors) <= MAX_SELECTORS:
                yield from each.selectors
