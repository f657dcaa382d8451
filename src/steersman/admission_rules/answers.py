"""Where expressions are evaluated, and what the authorizer answers those that ask it.

Evaluation cannot wait. It stops where an answer is not there yet; that is waited for, and evaluation begins again, with
the answer remembered. It begins on the loop, unless the object is large; what costs more than is let pass there, or
has a regular expression that is not compiled yet, is begun again in the worker threads.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, ParamSpec, TypeVar

from steersman.cel.library.authorizer import Answer, Check
from steersman.cel.library.kubernetes_costs import CHECK_COST
from steersman.cel.steps import Frame
from steersman.work.offloading import can_move_to_thread, ensure_offloaded, offload

P = ParamSpec("P")
R = TypeVar("R")

CALL_LIMIT: Final = 1_000_000
"""What one evaluation may cost."""
_ALLOWANCE: Final = 5_000
"""What expressions about one request may cost on the loop: some milliseconds."""

Ask = Callable[[Check], Answer | Awaitable[Answer]]
"""Asks the authorizer, on the loop. Raises nothing: what goes wrong is in the answer."""


class Unanswered(Exception):
    """Stops an evaluation that asks what is not answered yet."""

    def __init__(self, check: Check) -> None:
        super().__init__("the authorizer was asked by code that cannot wait for its answer")
        self.check = check


class Answers:
    """The answers that the expressions about one request have been given; each question is asked once.

    It is for one evaluation at a time.
    """

    def __init__(self, ask: Ask, known: dict[Check, Answer] | None = None) -> None:
        """`known` are the answers that there are, which others of the same request may share and add to."""
        self._ask: Final = ask
        self._known: Final[dict[Check, Answer]] = {} if known is None else known
        self._waiting: Final[dict[Check, Awaitable[Answer]]] = {}
        self._is_hurried = False
        self._allowance = 0
        self.frame: Frame | None = None
        """The evaluation that is under way where `can_move_to_thread`."""

    @property
    def can_move_to_thread(self) -> bool:
        """Whether only little may be evaluated, as the loop waits."""
        return self._is_hurried

    @property
    def allowance(self) -> int:
        """What evaluations may still cost here, where `can_move_to_thread`."""
        return self._allowance

    def spend(self, cost: int) -> None:
        """Takes the cost of an evaluation from that. If it was more, work goes on in the worker threads."""
        self._allowance -= cost
        if self._allowance < 0:
            ensure_offloaded()

    def begin(self, frame: Frame) -> None:
        """An evaluation begins where `can_move_to_thread`."""
        self.frame = frame

    def judge(self, check: Check) -> Answer:
        """The answer, within `settled`. Raises Unanswered if it is not there yet."""
        if self.frame is not None:
            self.frame.limit = min(self.frame.limit + CHECK_COST, CALL_LIMIT)
        known = self._known.get(check)
        if known is not None:
            return known
        if not self._is_hurried:
            raise Unanswered(check)
        answer = self._ask(check)
        if not isinstance(answer, Answer):
            self._waiting[check] = answer
            raise Unanswered(check)
        self._known[check] = answer
        return answer

    async def settled(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what `work` gives when all that it asks is answered; it is run once if no answer is waited for.

        Raises what `work` raises.
        """
        self._allowance, self.frame = _ALLOWANCE, None
        while True:
            try:
                return await offload(self._begin, partial(work, *args, **kwargs))
            except Unanswered as needed:
                check = needed.check
            answer = self._waiting.pop(check, None) or self._ask(check)
            self._known[check] = answer if isinstance(answer, Answer) else await answer

    def _begin(self, work: Callable[[], R]) -> R:
        self._is_hurried, self.frame = can_move_to_thread(), None
        return work()
