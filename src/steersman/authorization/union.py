"""Chain of authorizers: the first one that allows or denies decides."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator
from typing import Final

from steersman.authentication.aggregate import aggregate
from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Authorizer, Decision, ResolvedRules, RuleResolver, Verdict
from steersman.tracing.trace import current_step

# a module constant, since reading an enum member costs more than the comparison
_UNDECIDED: Final = Decision.NO_OPINION
_NO_OPINION: Final = Verdict(_UNDECIDED)


class UnionAuthorizer:
    """Asks each authorizer in order until one allows or denies; otherwise joins all reasons and errors."""

    def __init__(self, authorizers: Iterable[Authorizer]) -> None:
        self._authorizers = tuple(authorizers)

    def put(self, authorizers: Iterable[Authorizer]) -> None:
        """Replace the authorizers for later requests."""
        self._authorizers = tuple(authorizers)

    def authorize(self, attributes: Attributes) -> Verdict | Awaitable[Verdict]:
        """Return the first verdict that allows or denies, else no opinion with the reasons of all authorizers.

        Returns an awaitable if an authorizer has to wait.
        """
        undecided: list[Verdict] = []
        rest = iter(self._authorizers)
        for each in rest:
            verdict = each.authorize(attributes)
            if not isinstance(verdict, Verdict):
                return self._resume(verdict, rest, attributes, undecided)
            if verdict.decision is not _UNDECIDED:
                if (opened := current_step()) is not None and opened.name == "authorization":
                    opened.set("authorizer", getattr(each, "name", type(each).__name__))
                return verdict
            undecided.append(verdict)
        return _joined(undecided)

    async def _resume(
        self,
        pending: Awaitable[Verdict],
        rest: Iterator[Authorizer],
        attributes: Attributes,
        undecided: list[Verdict],
    ) -> Verdict:
        """Continue with the awaitable answer of an authorizer, then with the remaining authorizers."""
        verdict = await pending
        while verdict.decision is Decision.NO_OPINION:
            undecided.append(verdict)
            following = next(rest, None)
            if following is None:
                return _joined(undecided)
            answer = following.authorize(attributes)
            verdict = answer if isinstance(answer, Verdict) else await answer
        return verdict


class UnionRuleResolver:
    """Concatenation of the rules of several resolvers."""

    def __init__(self, resolvers: Iterable[RuleResolver]) -> None:
        self._resolvers = tuple(resolvers)

    def put(self, resolvers: Iterable[RuleResolver]) -> None:
        """Replace the resolvers for later requests."""
        self._resolvers = tuple(resolvers)

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        """Return the rules of all resolvers; incomplete if those of any resolver are, with the errors of all."""
        answers = [await each.rules_for(user, namespace) for each in self._resolvers]
        if len(answers) == 1:
            return answers[0]
        return ResolvedRules(
            tuple(rule for answer in answers for rule in answer.resource_rules),
            tuple(rule for answer in answers for rule in answer.non_resource_rules),
            incomplete=any(answer.incomplete for answer in answers),
            error=aggregate(answer.error for answer in answers if answer.error),
        )


def _joined(undecided: list[Verdict]) -> Verdict:
    telling = [verdict for verdict in undecided if verdict.reason or verdict.error]
    if not telling:
        return _NO_OPINION
    if len(telling) == 1:
        return telling[0]
    return Verdict(
        Decision.NO_OPINION,
        "\n".join(verdict.reason for verdict in telling if verdict.reason),
        aggregate(verdict.error for verdict in telling if verdict.error),
    )
