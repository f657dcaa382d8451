"""The functions of `authorizer`, with which expressions check the permissions of users (apiserver `cel/library` authz).

The functions are known to all expressions. Their values only exist where an authorizer is given as a variable: an
`Authorizer`, whose `judge` answers the `Check` of each call of `check`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from steersman.cel.environment import Library, Overload
from steersman.cel.types import BOOL, STRING, Type, object_type
from steersman.cel.values import EvaluationError, Extension
from steersman.machinery.go.strings import trim_space
from steersman.machinery.validation.object_meta import name_is_dns_label, name_is_dns_subdomain

AUTHORIZER: Final = object_type("kubernetes.authorization.Authorizer")
PATH_CHECK: Final = object_type("kubernetes.authorization.PathCheck")
GROUP_CHECK: Final = object_type("kubernetes.authorization.GroupCheck")
RESOURCE_CHECK: Final = object_type("kubernetes.authorization.ResourceCheck")
DECISION: Final = object_type("kubernetes.authorization.Decision")


class Check(Struct, frozen=True):
    """A question whether a user may perform an action on a path, if there is one, or else on a resource.

    `service_account` is the namespace and name of the user, None for the user of the request. The selectors are not
    parsed.
    """

    service_account: tuple[str, str] | None
    verb: str = ""
    path: str | None = None
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""


class Answer(Struct, frozen=True):
    """The authorizer's answer to a Check. `error` is empty if there was none."""

    allowed: bool
    reason: str = ""
    error: str = ""


Judge = Callable[[Check], Answer]
"""Answers a check; may raise other exceptions than evaluation errors to stop the evaluation."""


class Authorizer(Extension):
    """The user to check, and the function that answers."""

    __slots__ = ("check", "judge")
    cel_type = AUTHORIZER

    def __init__(self, judge: Judge, check: Check) -> None:
        self.judge: Final = judge
        self.check: Final = check

    def __eq__(self, other: object) -> bool:
        # as upstream, whose values of these types are not comparable
        raise EvaluationError("no such overload")

    __hash__ = Extension.__hash__


class PathCheck(Authorizer):
    """A check of a path without its verb."""

    __slots__ = ()
    cel_type = PATH_CHECK


class GroupCheck(Authorizer):
    """A check of a resource of which only the group is known."""

    __slots__ = ()
    cel_type = GROUP_CHECK


class ResourceCheck(Authorizer):
    """A check of a resource without its verb."""

    __slots__ = ()
    cel_type = RESOURCE_CHECK


class Decision(Extension):
    """The answer to a check."""

    __slots__ = ("answer",)
    cel_type = DECISION

    def __init__(self, answer: Answer) -> None:
        self.answer: Final = answer

    def __eq__(self, other: object) -> bool:
        raise EvaluationError("no such overload")

    __hash__ = Extension.__hash__


def authorizer(judge: Judge) -> Authorizer:
    """Return the variable `authorizer`, which checks the user of the request."""
    return Authorizer(judge, Check(None))


def request_resource(
    judge: Judge, *, group: str, resource: str, subresource: str, namespace: str, name: str
) -> ResourceCheck:
    """Return the variable `authorizer.requestResource`, which checks the resource of the request."""
    check = Check(None, group=group, resource=resource, subresource=subresource, namespace=namespace, name=name)
    return ResourceCheck(judge, check)


def _path(asked: Authorizer, path: str) -> PathCheck:
    if not trim_space(path):
        raise EvaluationError("path must not be empty")
    return PathCheck(asked.judge, replace(asked.check, path=path))


def _group(asked: Authorizer, group: str) -> GroupCheck:
    return GroupCheck(asked.judge, replace(asked.check, group=group))


def _service_account(asked: Authorizer, namespace: str, name: str) -> Authorizer:
    if name_is_dns_subdomain(name, False):
        raise EvaluationError("Invalid service account name")
    if name_is_dns_label(namespace, False):
        raise EvaluationError("Invalid service account namespace")
    return Authorizer(asked.judge, replace(asked.check, service_account=(namespace, name)))


def _resource(asked: GroupCheck, resource: str) -> ResourceCheck:
    if not trim_space(resource):
        raise EvaluationError("resource must not be empty")
    return ResourceCheck(asked.judge, replace(asked.check, resource=resource))


def _narrowed(narrow: Callable[[Check, str], Check]) -> Callable[[ResourceCheck, str], ResourceCheck]:
    return lambda asked, value: ResourceCheck(asked.judge, narrow(asked.check, value))


def _check(asked: PathCheck | ResourceCheck, verb: str) -> Decision:
    return Decision(asked.judge(replace(asked.check, verb=verb)))


def _member(id: str, args: tuple[Type, ...], result: Type, call: Callable[..., object]) -> tuple[Overload, ...]:
    return (Overload(id, args, result, call, member=True),)


_subresource: Final = _narrowed(lambda check, value: replace(check, subresource=value))
_namespace: Final = _narrowed(lambda check, value: replace(check, namespace=value))
_name: Final = _narrowed(lambda check, value: replace(check, name=value))
_field_selector: Final = _narrowed(lambda check, value: replace(check, field_selector=value))
_label_selector: Final = _narrowed(lambda check, value: replace(check, label_selector=value))

_ON_RESOURCE: Final = (RESOURCE_CHECK, STRING)

AUTHORIZATION: Final = Library(
    functions={
        "path": _member("authorizer_path", (AUTHORIZER, STRING), PATH_CHECK, _path),
        "group": _member("authorizer_group", (AUTHORIZER, STRING), GROUP_CHECK, _group),
        "serviceAccount": _member(
            "authorizer_serviceaccount", (AUTHORIZER, STRING, STRING), AUTHORIZER, _service_account
        ),
        "resource": _member("groupcheck_resource", (GROUP_CHECK, STRING), RESOURCE_CHECK, _resource),
        "subresource": _member("resourcecheck_subresource", _ON_RESOURCE, RESOURCE_CHECK, _subresource),
        "namespace": _member("resourcecheck_namespace", _ON_RESOURCE, RESOURCE_CHECK, _namespace),
        "name": _member("resourcecheck_name", _ON_RESOURCE, RESOURCE_CHECK, _name),
        "check": (
            *_member("pathcheck_check", (PATH_CHECK, STRING), DECISION, _check),
            *_member("resourcecheck_check", _ON_RESOURCE, DECISION, _check),
        ),
        "errored": _member("decision_errored", (DECISION,), BOOL, lambda decision: bool(decision.answer.error)),
        "error": _member("decision_error", (DECISION,), STRING, lambda decision: decision.answer.error),
        "allowed": _member("decision_allowed", (DECISION,), BOOL, lambda decision: decision.answer.allowed),
        "reason": _member("decision_reason", (DECISION,), STRING, lambda decision: decision.answer.reason),
        "fieldSelector": _member("authorizer_fieldselector", _ON_RESOURCE, RESOURCE_CHECK, _field_selector),
        "labelSelector": _member("authorizer_labelselector", _ON_RESOURCE, RESOURCE_CHECK, _label_selector),
    }
)
