"""Dumps of /debug/api_priority_and_fairness/: levels, queues and requests as text (`apf_controller_debug.go`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from steersman.flowcontrol.fairness import Fairness, Flow
from steersman.flowcontrol.queue_set import Queue, QueueSet, Ticket
from steersman.flowcontrol.seat_seconds import as_text
from steersman.work.yielding import time_sliced

_LEVELS: Final = (
    "PriorityLevelName",
    "ActiveQueues",
    "IsIdle",
    "IsQuiescing",
    "WaitingRequests",
    "ExecutingRequests",
    "DispatchedRequests",
    "RejectedRequests",
    "TimedoutRequests",
    "CancelledRequests",
)
_QUEUES: Final = (
    "PriorityLevelName",
    "Index",
    "PendingRequests",
    "ExecutingRequests",
    "SeatsInUse",
    "NextDispatchR",
    "InitialSeatsSum",
    "MaxSeatsSum",
    "TotalWorkSum",
)
_REQUESTS: Final = (
    "PriorityLevelName",
    "FlowSchemaName",
    "QueueIndex",
    "RequestIndexInQueue",
    "FlowDistingsher",
    "ArriveTime",
    "InitialSeats",
    "FinalSeats",
    "AdditionalLatency",
    "StartTime",
)
_DETAILS: Final = ("UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource")
_LEAST_WIDTH: Final = 8
_MOST_WIDTH: Final = 256
"""Limit of a column's width: otherwise one long path would widen every line."""
_LONGEST: Final = 1024
"""Limit of characters of a cell."""
MOST_LINES: Final = 20_000
"""Limit of lines of a dump: a level may have ten million queues."""


class RequestDescription(NamedTuple):
    """Data of a request for a dump: its flow, and columns about its user and action."""

    flow: Flow
    details: tuple[str, ...]


DescribeRequest = Callable[[Any], RequestDescription]
"""Function that returns the data of a ticket's `about`."""
AsTime = Callable[[float], str]
"""Function that formats a time of the server's clock; negative for none."""


Row = tuple[str, ...]


def level_rows(fairness: Fairness) -> Iterator[Row]:
    """Yield a row for each level."""
    yield _LEVELS
    for name, level in sorted(fairness.levels.items()):
        seats = level.seats
        active = sum(1 for queue in seats.queues.values() if queue.waiting)
        yield (
            name,
            str(active),
            _truth(seats.is_idle),
            _truth(level.is_quiescing),
            str(seats.waiting),
            str(seats.executing),
            str(seats.dispatched),
            str(seats.rejected),
            "0",
            str(seats.cancelled),
        )


def queue_rows(fairness: Fairness) -> Iterator[Row]:
    """Yield a row for each queue."""
    yield _QUEUES
    for name, level in sorted(fairness.levels.items()):
        for index, queue in _queues(level.seats):
            waiting = queue.waiting
            yield (
                name,
                str(index),
                str(len(waiting)),
                str(len(queue.executing)),
                str(queue.seats),
                as_text(max(queue.next_r, 0)),
                str(sum(each.initial for each in waiting)),
                str(sum(each.width for each in waiting)),
                as_text(queue.work_waiting),
            )


def _queues(seats: QueueSet) -> Iterator[tuple[int, Queue]]:
    """Yield the queues of a level with their indexes, unused ones included, up to a limit."""
    for index in range(min(seats.queuing.queues, MOST_LINES)):
        yield index, seats.queues.get(index) or Queue(index)
    yield from ((index, queue) for index, queue in sorted(seats.queues.items()) if index >= seats.queuing.queues)


def request_rows(
    fairness: Fairness, describe: DescribeRequest, as_time: AsTime, *, with_details: bool
) -> Iterator[Row]:
    """Yield a row for each waiting or executing request."""
    yield (*_REQUESTS, *_DETAILS) if with_details else _REQUESTS
    for name, level in sorted(fairness.levels.items()):
        for queue, position, ticket in _tickets(level.seats):
            if ticket.about is None:  # the request has ended since the dump began
                continue
            about = describe(ticket.about)
            row = (
                name,
                about.flow.schema,
                str(queue),
                str(position),
                about.flow.distinguisher,
                as_time(ticket.arrived),
                str(ticket.initial),
                str(ticket.final),
                _duration(ticket.linger),
                as_time(ticket.started),
            )
            yield (*row, *about.details) if with_details else row


def _tickets(seats: QueueSet) -> Iterator[tuple[int, int, Ticket]]:
    for index, queue in sorted(seats.queues.items()):
        for position, ticket in enumerate(tuple(queue.waiting)):
            yield index, position, ticket
        for ticket in tuple(queue.executing):
            yield index, -1, ticket
    for ticket in tuple(seats.without_queue):
        yield -1, -1, ticket


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _duration(seconds: float) -> str:
    """Return a duration of whole microseconds as Go prints it."""
    if not seconds:
        return "0s"
    text = f"{seconds * 1000:.3f}".rstrip("0").rstrip(".")
    return f"{text}ms"


async def collect_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the rows, up to a limit, yielding to the event loop: there may be thousands, which change meanwhile."""
    found: list[Row] = []
    async for row in time_sliced(islice(rows, MOST_LINES)):
        found.append(tuple(map(_cut, row)))
    return found


def table(rows: Sequence[Row]) -> str:
    """Return the rows as aligned columns, as text/tabwriter aligns cells that end with a comma and a tab.

    Cells wider than the limit are not aligned. Callers offload the formatting of many rows.
    """
    lines: list[list[str]] = [[f"{cell}," for cell in row[:-1]] for row in rows]
    widths = [
        min(max(max(len(line[at]) for line in lines) + 1, _LEAST_WIDTH), _MOST_WIDTH)
        for at in range(max(map(len, lines), default=0))
    ]
    return "".join(
        "".join(f"{cell} ".ljust(width) for cell, width in zip(line, widths, strict=False)) + row[-1] + "\n"
        for line, row in zip(lines, rows, strict=True)
    )


def _cut(cell: str) -> str:
    return cell if len(cell) <= _LONGEST else f"{cell[:_LONGEST]}..."
