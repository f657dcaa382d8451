"""What an evaluation does that the rules of its cost do not tell before it is done.

A call is charged when it has come to an end, and by the size of its arguments alone: comparing two lists of two costs
the same whatever stands in them, and what stands in them may be the same list twice, forty times over. So whatever goes
through values, or makes new ones, says with each step how much it does. Beyond what every evaluation may do for nothing
this is charged too, at once: an evaluation ends there as one that costs too much, on the loop and elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local
from typing import Final, Protocol

from steersman.work.threads import give_way

TEXT_OF_A_STEP: Final = 32
"""Characters that are copied in the time of a step, which is some 0.3 us."""


class Worker(Protocol):
    """An evaluation."""

    def work(self, steps: int) -> None:
        """Counts steps. Raises CostLimitExceeded."""

    def afford(self, cost: int) -> None:
        """Raises CostLimitExceeded if so much cannot be charged any more."""


class Here(local):
    """The evaluation that this thread is at."""

    worker: Worker | None = None


HERE: Final = Here()


def spend(steps: int) -> None:
    """To be called before so many steps are taken, such as comparing so many items. Raises CostLimitExceeded.

    In the worker threads others may have their turn.
    """
    give_way()
    worker = HERE.worker
    if worker is not None:
        worker.work(steps)


def afford(cost: int) -> None:
    """To be called before what will be charged when it has come to an end, if it takes long in one piece. Raises
    CostLimitExceeded."""
    worker = HERE.worker
    if worker is not None:
        worker.afford(cost)


@contextmanager
def counted_by(worker: Worker) -> Iterator[None]:
    """Has what is done within counted by this one."""
    outer, HERE.worker = HERE.worker, worker
    try:
        yield
    finally:
        HERE.worker = outer


def spend_on_text(characters: int) -> None:
    """The same before so many characters are copied or looked at."""
    if characters >= TEXT_OF_A_STEP:
        spend(characters // TEXT_OF_A_STEP)
