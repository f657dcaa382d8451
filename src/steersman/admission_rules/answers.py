"""What the authorizer answers expressions that ask it, where an answer may have to be waited for.

Evaluation cannot wait. It stops where an answer is not there yet; that is waited for, and evaluation begins again, with
the answer remembered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, ParamSpec, TypeVar

from steersman.cel.library.authorizer import Answer, Check
from steersman.machinery.large_work.slow_lane import SlowLane, done

P = ParamSpec("P")
R = TypeVar("R")

Ask = Callable[[Check], Answer | Awaitable[Answer]]
"""Asks the authorizer, on the loop. Raises nothing: what goes wrong is in the answer."""


class Unanswered(Exception):
    """Stops an evaluation that asks what is not answered yet."""

    def __init__(self, check: Check) -> None:
        super().__init__("the authorizer was asked by code that cannot wait for its answer")
        self.check = check


class Answers:
    """The answers that the expressions about one request have been given; each question is asked once."""

    def __init__(self, ask: Ask) -> None:
        self._ask: Final = ask
        self._known: Final[dict[Check, Answer]] = {}
        self._waiting: Final[dict[Check, Awaitable[Answer]]] = {}
        self._on_loop = False

    def judge(self, check: Check) -> Answer:
        """The answer, within `settled`. Raises Unanswered if it is not there yet."""
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
        while True:
            self._on_loop = lane is None
            try:
                return await done(lane, _called, work, args, kwargs)
            except Unanswered as needed:
                check = needed.check
            answer = self._waiting.pop(check, None) or self._ask(check)
            self._known[check] = answer if isinstance(answer, Answer) else await answer


def _called(work: Callable[..., R], args: tuple[object, ...], kwargs: dict[str, object]) -> R:
    return work(*args, **kwargs)
