"""The functions of `authorizer`, by which expressions ask what a user may do (apiserver `cel/library` authz).

Only signatures: the functions are known wherever expressions are, but the values they work on only where an
authorizer is given as a variable.
"""

from __future__ import annotations

from typing import Final

from steersman.cel.environment import Library, Overload
from steersman.cel.types import BOOL, STRING, Type, object_type

AUTHORIZER: Final = object_type("kubernetes.authorization.Authorizer")
PATH_CHECK: Final = object_type("kubernetes.authorization.PathCheck")
GROUP_CHECK: Final = object_type("kubernetes.authorization.GroupCheck")
RESOURCE_CHECK: Final = object_type("kubernetes.authorization.ResourceCheck")
DECISION: Final = object_type("kubernetes.authorization.Decision")


def _member(id: str, args: tuple[Type, ...], result: Type) -> Overload:
    return Overload(id, args, result, member=True)


AUTHORIZATION: Final = Library(
    functions={
        "path": (_member("authorizer_path", (AUTHORIZER, STRING), PATH_CHECK),),
        "group": (_member("authorizer_group", (AUTHORIZER, STRING), GROUP_CHECK),),
        "serviceAccount": (_member("authorizer_serviceaccount", (AUTHORIZER, STRING, STRING), AUTHORIZER),),
        "resource": (_member("groupcheck_resource", (GROUP_CHECK, STRING), RESOURCE_CHECK),),
        "subresource": (_member("resourcecheck_subresource", (RESOURCE_CHECK, STRING), RESOURCE_CHECK),),
        "namespace": (_member("resourcecheck_namespace", (RESOURCE_CHECK, STRING), RESOURCE_CHECK),),
        "name": (_member("resourcecheck_name", (RESOURCE_CHECK, STRING), RESOURCE_CHECK),),
        "check": (
            _member("pathcheck_check", (PATH_CHECK, STRING), DECISION),
            _member("resourcecheck_check", (RESOURCE_CHECK, STRING), DECISION),
        ),
        "errored": (_member("decision_errored", (DECISION,), BOOL),),
        "error": (_member("decision_error", (DECISION,), STRING),),
        "allowed": (_member("decision_allowed", (DECISION,), BOOL),),
        "reason": (_member("decision_reason", (DECISION,), STRING),),
        "fieldSelector": (_member("authorizer_fieldselector", (RESOURCE_CHECK, STRING), RESOURCE_CHECK),),
        "labelSelector": (_member("authorizer_labelselector", (RESOURCE_CHECK, STRING), RESOURCE_CHECK),),
    }
)
