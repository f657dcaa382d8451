"""Accounting for work in an evaluation that the cost rules do not cover in advance.

A call is only charged after it has ended, and only by the sizes of its arguments. For example, the cost of comparing
two lists of two items does not depend on the items, which may be the same list twice, nested forty times. Therefore
code that visits or creates values reports its steps. Steps beyond a free share are charged at once, so the evaluation
ends as one that costs too much, both on the event loop and elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local
from typing import Final, Protocol

from steersman.work.threads import give_way

TEXT_OF_A_STEP: Final = 32
"""The characters that are copied in the time of one step, which is about 0.3 us."""


class Worker(Protocol):
    """The interface of an evaluation for this."""

    def work(self, steps: int) -> None:
        """Count steps. Raises CostLimitExceeded."""

    def afford(self, cost: int) -> None:
        """Check that a cost can still be charged. Raises CostLimitExceeded."""


class Here(local):
    """The current evaluation of this thread."""

    worker: Worker | None = None


HERE: Final = Here()


def spend(steps: int) -> None:
    """Count steps before they are performed, such as comparing as many items. Raises CostLimitExceeded.

    In worker threads, this lets other threads run.
    """
    give_way()
    worker = HERE.worker
    if worker is not None:
        worker.work(steps)


def afford(cost: int) -> None:
    """Check that a later charge is affordable, before work that takes long without interruption. Raises
    CostLimitExceeded.
    """
    worker = HERE.worker
    if worker is not None:
        worker.afford(cost)


@contextmanager
def counted_by(worker: Worker) -> Iterator[None]:
    """Count the steps within the context for this evaluation."""
    outer, HERE.worker = HERE.worker, worker
    try:
        yield
    finally:
        HERE.worker = outer


def spend_on_text(characters: int) -> None:
    """Count the steps of copying or scanning characters, before that is done."""
    if characters >= TEXT_OF_A_STEP:
        spend(characters // TEXT_OF_A_STEP)
