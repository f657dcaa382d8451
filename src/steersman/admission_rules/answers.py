"""Evaluation of expressions that call the authorizer.

An evaluation is synchronous and cannot wait. It stops at an authorization check whose answer is missing, the answer is
awaited and cached, and the evaluation starts again. An evaluation starts on the event loop, unless the object is large.
It starts again in a worker thread if it exceeds the cost allowance of the event loop, or needs a regular expression
that is not compiled yet.
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
"""Cost limit of one evaluation."""
_ALLOWANCE: Final = 5_000
"""Cost that the expressions of one request may have on the event loop: some milliseconds."""

Ask = Callable[[Check], Answer | Awaitable[Answer]]
"""Function that asks the authorizer, on the event loop. It raises nothing: the answer includes an error."""


class Unanswered(Exception):
    """Stops an evaluation at an authorization check whose answer is missing."""

    def __init__(self, check: Check) -> None:
        super().__init__("the authorizer was asked by code that cannot wait for its answer")
        self.check = check


class AuthorizerAnswers:
    """Runs evaluations for one request and caches the authorizer's answers; each check is made once.

    Only one evaluation may run at a time.
    """

    def __init__(self, ask: Ask, cached: dict[Check, Answer] | None = None) -> None:
        """Create a runner; `cached` is a cache of answers that other runners of the same request share."""
        self._ask: Final = ask
        self._cached: Final[dict[Check, Answer]] = {} if cached is None else cached
        self._waiting: Final[dict[Check, Awaitable[Answer]]] = {}
        self._is_hurried = False
        self._allowance = 0
        self.frame: Frame | None = None
        """Frame of the current evaluation, if `can_move_to_thread`."""

    @property
    def can_move_to_thread(self) -> bool:
        """Return True if the evaluation runs on the event loop, where its cost is limited to `allowance`."""
        return self._is_hurried

    @property
    def allowance(self) -> int:
        """Return the cost that evaluations may still have on the event loop."""
        return self._allowance

    def spend(self, cost: int) -> None:
        """Subtract the cost of an evaluation from the allowance. If it is exceeded, restart in a worker thread."""
        self._allowance -= cost
        if self._allowance < 0:
            ensure_offloaded()

    def enter(self, frame: Frame) -> None:
        """Note the frame of an evaluation on the event loop."""
        self.frame = frame

    def answer(self, check: Check) -> Answer:
        """Return the answer to a check, called by code that `run` runs. Raises Unanswered if it is missing."""
        if self.frame is not None:
            self.frame.limit = min(self.frame.limit + CHECK_COST, CALL_LIMIT)
        cached = self._cached.get(check)
        if cached is not None:
            return cached
        if not self._is_hurried:
            raise Unanswered(check)
        answer = self._ask(check)
        if not isinstance(answer, Answer):
            self._waiting[check] = answer
            raise Unanswered(check)
        self._cached[check] = answer
        return answer

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run `work` until all its authorization checks are answered, and return its result.

        It is run only once if no answer has to be awaited. Raises what `work` raises.
        """
        self._allowance, self.frame = _ALLOWANCE, None
        while True:
            try:
                return await offload(self._run_once, partial(work, *args, **kwargs))
            except Unanswered as needed:
                check = needed.check
            answer = self._waiting.pop(check, None) or self._ask(check)
            self._cached[check] = answer if isinstance(answer, Answer) else await answer

    def _run_once(self, work: Callable[[], R]) -> R:
        self._is_hurried, self.frame = can_move_to_thread(), None
        return work()
