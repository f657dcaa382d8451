"""Status errors: code, reason, message and details as a client reads them."""

from typing import Any

import pytest

from steersman.machinery.errors import field
from steersman.machinery.errors import status as errors
from steersman.machinery.errors.status import Cause
from steersman.machinery.identity.schema import NO_RESOURCE, GroupKind, GroupResource

PODS = GroupResource("", "pods")
DEPLOYMENTS = GroupResource("apps", "deployments")
DEPLOYMENT_DETAILS = {"name": "a", "group": "apps", "kind": "deployments"}


@pytest.mark.parametrize(
    ("error", "code", "reason", "message", "details"),
    [
        (errors.not_found(PODS, "a"), 404, "NotFound", 'pods "a" not found', {"name": "a", "kind": "pods"}),
        (
            errors.not_found(DEPLOYMENTS, 'a"b'),
            404,
            "NotFound",
            'deployments.apps "a\\"b" not found',
            {"name": 'a"b', "group": "apps", "kind": "deployments"},
        ),
        (
            errors.already_exists(DEPLOYMENTS, "a"),
            409,
            "AlreadyExists",
            'deployments.apps "a" already exists',
            DEPLOYMENT_DETAILS,
        ),
        (
            errors.generate_name_conflict(PODS, "a"),
            409,
            "AlreadyExists",
            'pods "a" already exists, the server was not able to generate a unique name for the object',
            {"name": "a", "kind": "pods", "retryAfterSeconds": 1},
        ),
        (errors.unauthorized(), 401, "Unauthorized", "Unauthorized", None),
        (errors.unauthorized(""), 401, "Unauthorized", "not authorized", None),
        (
            errors.forbidden(DEPLOYMENTS, "a", "no"),
            403,
            "Forbidden",
            'deployments.apps "a" is forbidden: no',
            DEPLOYMENT_DETAILS,
        ),
        (errors.forbidden(PODS, "", "no"), 403, "Forbidden", "pods is forbidden: no", {"kind": "pods"}),
        (errors.forbidden(NO_RESOURCE, "", "no"), 403, "Forbidden", "forbidden: no", {}),
        (
            errors.conflict(DEPLOYMENTS, "a", errors.OPTIMISTIC_LOCK),
            409,
            "Conflict",
            'Operation cannot be fulfilled on deployments.apps "a": the object has been modified; '
            "please apply your changes to the latest version and try again",
            DEPLOYMENT_DETAILS,
        ),
        (
            errors.apply_conflict("Apply failed", [Cause("FieldManagerConflict", "with x", ".spec")]),
            409,
            "Conflict",
            "Apply failed",
            {"causes": [{"reason": "FieldManagerConflict", "message": "with x", "field": ".spec"}]},
        ),
        (errors.gone("away"), 410, "Gone", "away", None),
        (errors.expired("old"), 410, "Expired", "old", None),
        (errors.bad_request("what"), 400, "BadRequest", "what", None),
        (errors.too_many_requests("later", 3), 429, "TooManyRequests", "later", {"retryAfterSeconds": 3}),
        (errors.service_unavailable("not yet"), 503, "ServiceUnavailable", "not yet", None),
        (
            errors.method_not_supported(DEPLOYMENTS, "delete"),
            405,
            "MethodNotAllowed",
            'delete is not supported on resources of kind "deployments.apps"',
            {"group": "apps", "kind": "deployments"},
        ),
        (
            errors.server_timeout(PODS, "list", 2),
            500,
            "ServerTimeout",
            "The list operation against pods could not be completed at this time, please try again.",
            {"name": "list", "kind": "pods", "retryAfterSeconds": 2},
        ),
        (
            errors.internal(ValueError("oh")),
            500,
            "InternalError",
            "Internal error occurred: oh",
            {"causes": [{"message": "oh"}]},
        ),
        (errors.plain_internal("oh"), 500, None, "oh", None),
        (errors.timeout("Timeout: slow"), 504, "Timeout", "Timeout: slow", {}),
        (
            errors.too_large_resource_version(9, 5),
            504,
            "Timeout",
            "Timeout: Too large resource version: 9, current: 5",
            {
                "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
                "retryAfterSeconds": 1,
            },
        ),
        (
            errors.request_entity_too_large("Request entity too large: limit is 5"),
            413,
            "RequestEntityTooLarge",
            "Request entity too large: limit is 5",
            None,
        ),
        (errors.not_acceptable("no"), 406, "NotAcceptable", "no", None),
        (errors.unsupported_media_type("no"), 415, "UnsupportedMediaType", "no", None),
        (
            errors.generic_server_response(404),
            404,
            "NotFound",
            "the server could not find the requested resource",
            {},
        ),
        (
            errors.generic_server_response(422, message="hidden"),
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
            {},
        ),
        (
            errors.generic_server_response(415, message="415: Unsupported Media Type"),
            415,
            "UnsupportedMediaType",
            "415: Unsupported Media Type",
            {},
        ),
        (
            errors.generic_server_response(409, "POST", DEPLOYMENTS, "a"),
            409,
            "AlreadyExists",
            "the server reported a conflict (post deployments.apps a)",
            DEPLOYMENT_DETAILS,
        ),
        (
            errors.generic_server_response(500, "GET", PODS, message="boom", retry_after=2, unexpected=True),
            500,
            "InternalError",
            'an error on the server ("boom") has prevented the request from succeeding (get pods)',
            {
                "kind": "pods",
                "causes": [{"reason": "UnexpectedServerResponse", "message": "boom"}],
                "retryAfterSeconds": 2,
            },
        ),
        (
            errors.generic_server_response(418),
            418,
            None,
            "the server responded with the status code 418 but did not return more information",
            {},
        ),
    ],
)
def test_status(error: Any, code: int, reason: str | None, message: str, details: Any) -> None:
    status = error.status()
    assert {key: status[key] for key in ("kind", "apiVersion", "metadata", "status", "code")} == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "code": code,
    }
    assert (status.get("reason"), status["message"], status.get("details")) == (reason, message, details)


def test_members_stand_in_upstreams_order() -> None:
    status = errors.generic_server_response(500, "GET", DEPLOYMENTS, "a", retry_after=1, unexpected=True).status()
    assert list(status) == ["kind", "apiVersion", "metadata", "status", "message", "reason", "details", "code"]
    assert list(status["details"]) == ["name", "group", "kind", "causes", "retryAfterSeconds"]


def test_invalid_tells_each_text_once_but_every_cause() -> None:
    same = field.invalid(field.Path("metadata", "uid"), "x", "field is immutable")
    other = field.required(field.Path("spec"))
    status = errors.invalid(GroupKind("", "ConfigMap"), "a", [same, same, other]).status()
    assert status["message"] == (
        'ConfigMap "a" is invalid: [metadata.uid: Invalid value: "x": field is immutable, spec: Required value]'
    )
    uid = {
        "reason": "FieldValueInvalid",
        "message": 'Invalid value: "x": field is immutable',
        "field": "metadata.uid",
    }
    spec = {"reason": "FieldValueRequired", "message": "Required value", "field": "spec"}
    assert status["details"] == {"name": "a", "kind": "ConfigMap", "causes": [uid, uid, spec]}


def test_invalid_without_errors_or_kind() -> None:
    assert errors.invalid(GroupKind("apps", "Deployment"), "a", []).message == 'Deployment.apps "a" is invalid'
    assert errors.invalid(GroupKind("", ""), "", []).message == ' "" is invalid'


def test_continue_token_stands_in_the_metadata() -> None:
    error = errors.expired("old")
    error.continue_token = "next"
    assert error.status()["metadata"] == {"continue": "next"}


def test_errors_are_exceptions_of_their_own() -> None:
    with pytest.raises(errors.StatusError, match=r"^away$"):
        raise errors.gone("away")
    assert len({errors.gone("x"), errors.gone("x")}) == 2
