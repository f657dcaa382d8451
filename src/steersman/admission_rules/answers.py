"""Where expressions are evaluated, and what the authorizer answers those that ask it.

Evaluation cannot wait. It stops where an answer is not there yet; that is waited for, and evaluation begins again, with
the answer remembered. It begins on the loop, unless the object is large; what costs more than is let pass there, or
has a regular expression that is not compiled yet, is begun again in the slow lane.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, ParamSpec, TypeVar

from steersman.cel.evaluator import Frame
from steersman.cel.library.authorizer import Answer, Check
from steersman.cel.library.kubernetes_costs import CHECK_COST
from steersman.machinery.lane.taking_long import TakesLong
from steersman.machinery.large_work.slow_lane import SlowLane, done

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

    def __init__(
        self, ask: Ask, slow_lane: Callable[[], SlowLane] | None = None, known: dict[Check, Answer] | None = None
    ) -> None:  # fmt: skip
        """`slow_lane` gives that of the user; without it everything is evaluated where it is begun. `known` are the
        answers that there are, which others of the same request may share and add to.
        """
        self._ask: Final = ask
        self._slow_lane: Final = slow_lane
        self._known: Final[dict[Check, Answer]] = {} if known is None else known
        self._waiting: Final[dict[Check, Awaitable[Answer]]] = {}
        self._on_loop = False
        self._allowance = 0
        self.frame: Frame | None = None
        """The evaluation that is under way where `is_hurried`."""

    @property
    def is_hurried(self) -> bool:
        """Whether only little may be evaluated, as the loop waits."""
        return self._on_loop and self._slow_lane is not None

    @property
    def allowance(self) -> int:
        """What evaluations may still cost here, where `is_hurried`."""
        return self._allowance

    def spend(self, cost: int) -> None:
        """Takes the cost of an evaluation from that. Raises TakesLong if it was more."""
        self._allowance -= cost
        if self._allowance < 0:
            raise TakesLong

    def begin(self, frame: Frame) -> None:
        """An evaluation begins where `is_hurried`."""
        self.frame = frame

    def judge(self, check: Check) -> Answer:
        """The answer, within `settled`. Raises Unanswered if it is not there yet."""
        if self.frame is not None:
            self.frame.limit = min(self.frame.limit + CHECK_COST, CALL_LIMIT)
        known = self._known.get(check)
        if known is not None:
            return known
        if not self._on_loop:
            raise Unanswered(check)
        answer = self._ask(check)
        if not isinstance(answer, Answer):
            self._waiting[check] = answer
            raise Unanswered(check)
        self._known[check] = answer
        return answer

    async def settled(
        self, lane: SlowLane | None, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> R:  # fmt: skip
        """What `work` gives when all that it asks is answered; it is run once if no answer has to be waited for.

        Where there is a lane, it is run in that. Raises what `work` raises.
        """
        self._allowance, self.frame = _ALLOWANCE, None
        while True:
            self._on_loop = lane is None
            try:
                return await done(lane, _called, work, args, kwargs)
            except TakesLong:
                assert self._slow_lane is not None
                lane, self.frame = self._slow_lane(), None
                continue
            except Unanswered as needed:
                check, self.frame = needed.check, None
            answer = self._waiting.pop(check, None) or self._ask(check)
            self._known[check] = answer if isinstance(answer, Answer) else await answer


def _called(work: Callable[..., R], args: tuple[object, ...], kwargs: dict[str, object]) -> R:
    return work(*args, **kwargs)
