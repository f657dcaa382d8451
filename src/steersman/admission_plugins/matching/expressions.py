"""Variables and authorizer calls for expressions of webhooks and policies. The import is slow, as it loads CEL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.admission.interface import Attributes
from steersman.admission_plugins.matching.request import admission_request
from steersman.admission_plugins.matching.rules import MatchedResource
from steersman.admission_rules.answers import AuthorizerAnswers
from steersman.admission_rules.evaluation import Inputs
from steersman.authentication.user import UserInfo, service_account_groups, service_account_username
from steersman.authorization.attributes import Attributes as Asked
from steersman.authorization.attributes import read_selectors
from steersman.authorization.interface import Authorizer, Verdict
from steersman.cel.library.authorizer import Answer, Check
from steersman.machinery.identity.action import Action

_ANY_VERSION: Final = "*"


def expression_inputs(
    attributes: Attributes, matched: MatchedResource, obj: Any, old: Any, namespace: Mapping[str, Any] | None = None
) -> Inputs:
    """Return the variables of a matched request; `obj` and `old` are plain data in the matched version, or None."""
    action = attributes.action
    request = admission_request(attributes, matched) | {"object": None, "oldObject": None}
    return Inputs(
        object=obj,
        old_object=old,
        request=request,
        resource_group=action.group,
        resource=action.resource,
        subresource=action.subresource,
        resource_namespace=action.namespace,
        name=attributes.name,
        namespace=namespace,
    )


def authorizer_answers(attributes: Attributes, authorizer: Authorizer) -> AuthorizerAnswers:
    """Return the authorizer's verdicts for expressions of one request. Each authorization check is made only once."""
    user = attributes.user

    def ask(check: Check) -> Any:
        question = question_of(check, user)
        verdict = authorizer.authorize(question)
        if isinstance(verdict, Verdict):
            return _answer(verdict)
        waiting = verdict

        async def wait_for_answer() -> Answer:
            return _answer(await waiting)

        return wait_for_answer()

    return AuthorizerAnswers(ask, attributes.authorizer_answers)


def _answer(verdict: Verdict) -> Answer:
    return Answer(verdict.allowed, verdict.reason, verdict.error)


def question_of(check: Check, user: UserInfo) -> Asked:
    """Return the request to authorize for a check of an expression, by the user or a service account."""
    if check.service_account is not None:
        namespace, name = check.service_account
        user = UserInfo(service_account_username(namespace, name), groups=service_account_groups(namespace))
    if check.path is not None:
        return Asked(user, Action(verb=check.verb), path=check.path)
    action = Action(
        verb=check.verb,
        group=check.group,
        version=_ANY_VERSION,
        resource=check.resource,
        subresource=check.subresource,
        namespace=check.namespace,
        name=check.name,
    )
    if not (check.field_selector or check.label_selector):
        return Asked(user, action)
    return Asked(user, action, limits=read_selectors(check.field_selector, check.label_selector))
