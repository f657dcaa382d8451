"""CustomResourceDefinition of Faults."""

from __future__ import annotations

import logging
from typing import Any, Final

import msgspec

from steersman.api.meta.v1 import Condition
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.plain_object import PlainObject
from steersman.cluster.definitions import NotServed, install, manifest
from steersman.cluster.node_pools.pool import GROUP_NAME, VERSION
from steersman.faults.fault import MOST_PATTERN, MOST_PATTERNS, Injection
from steersman.machinery.errors.status import StatusError

logger = logging.getLogger(__name__)

KIND: Final = "Fault"
PLURAL: Final = "faults"
_DURATION: Final = r"^([0-9]{1,9}(\.[0-9]{1,9})?(ns|us|ms|s|m|h))+$"
_MOST_COUNT: Final = 10**9

Schema = dict[str, Any]


class FaultObject(PlainObject):
    """A Fault."""


FAULTS: Final[APIResource[FaultObject]] = APIResource(GROUP_NAME, VERSION, PLURAL, KIND, FaultObject, namespaced=False)


class FaultStatus(msgspec.Struct, frozen=True, rename="camel"):
    """Status of a Fault: counts of requests, the last ones that it has hit, conditions."""

    observed_generation: int = 0
    matched: int = 0
    injected: int = 0
    last: list[Injection] = []
    conditions: list[Condition] = []


async def install_faults(client: Client) -> bool:
    """Install the definition. Return False if stored objects prevent it, such as another definition or a webhook.

    These may prevent Faults, but not the start of a server.
    """
    try:
        await install(client, [definition()])
    except (StatusError, NotServed) as error:
        logger.error("there are no Faults: %s", error)
        return False
    return True


def definition() -> Schema:
    """Return the definition as a manifest."""
    columns = [
        {"name": "Active", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Active")].status'},
        {"name": "Matched", "type": "integer", "jsonPath": ".status.matched"},
        {"name": "Injected", "type": "integer", "jsonPath": ".status.injected"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    return manifest(GROUP_NAME, VERSION, KIND, PLURAL, _schema(), columns=columns)


def _schema() -> Schema:
    spec = _object(
        "Requests, and what happens to them.",
        {"match": _match(), "when": _when(), "effect": _effect()},
        required=["effect"],
    )
    return _object(
        "Something that happens to requests: an error, a wait, a lost answer, a watch that ends or stalls.",
        {"spec": spec, "status": _status()},
        required=["spec"],
    )


def _match() -> Schema:
    texts = {
        "users": "Names of users.",
        "groups": "Groups, of which a user needs one.",
        "userAgents": "User agents.",
        "verbs": "Verbs: get, list, watch, create, update, patch, delete, deletecollection.",
        "resources": "Resources as in RBAC rules, also with their group: pods, pods/status, deployments.apps.",
        "namespaces": "Namespaces.",
        "names": "Names in the path of the request.",
        "webhooks": "Calls of admission webhooks: CONFIGURATION, WEBHOOK or CONFIGURATION/WEBHOOK.",
        "conversions": "Calls of conversion webhooks: names of definitions.",
        "nodes": "Kubelets: names of simulated nodes.",
        "apiServices": "Calls of the servers behind APIServices: names of APIServices.",
        "authenticationWebhooks": "Calls of the webhook that authenticates tokens: default.",
        "authorizationWebhooks": "Calls of webhooks that authorize: names in the configuration, default for flags.",
    }
    patterns = {
        "type": "array",
        "maxItems": MOST_PATTERNS,
        "items": {"type": "string", "maxLength": MOST_PATTERN},
    }
    return _object(
        "Requests that fit each list that is not empty; * in a pattern stands for any text.",
        {name: {**patterns, "description": text} for name, text in texts.items()},
    )


def _when() -> Schema:
    return _object(
        "Choice among the requests that match.",
        {
            "skip": _count("Number of requests that pass first."),
            "times": _count("Number of requests that are hit; 0 for all."),
            "probability": {
                "type": "number",
                "minimum": 0,
                "maximum": 1,
                "default": 1,
                "description": "Chance of a hit.",
            },
            "seed": {"type": "integer", "format": "int64", "description": "Seed of chance."},
            "for": _duration("Time after which the fault ends."),
        },
    )


def _effect() -> Schema:
    flag = {"type": "boolean"}
    text = {"type": "string", "maxLength": 1024}
    status = _object(
        "Error in place of the answer; reason and message are the usual ones of the code by default.",
        {
            "code": {"type": "integer", "minimum": 400, "maximum": 599},
            "reason": text,
            "message": text,
            "retryAfterSeconds": {"type": "integer", "minimum": 0, "maximum": 3600},
        },
        required=["code"],
    )
    watch = _object(
        "Effects on an open watch.",
        {
            "closeAfter": _duration("Time after which the watch ends."),
            "closeAfterEvents": _count("Number of events after which the watch ends."),
            "expire": {**flag, "description": "The last event is the error 410 Expired."},
            "delay": _duration("Delay of each event."),
            "hold": {**flag, "description": "Events are held back while the fault lasts."},
            "withholdBookmarks": {**flag, "description": "No bookmarks are sent."},
        },
    )
    delay = _object(
        "Waits.",
        {
            "before": _duration("Wait before the request is carried out."),
            "after": _duration("Wait before the answer."),
        },
    )
    return _object(
        "Effects on a request.",
        {
            "status": status,
            "delay": delay,
            "cut": {**flag, "description": "The connection is cut before the request is carried out."},
            "loseAnswer": {**flag, "description": "The connection is cut after the request is carried out."},
            "hang": {**flag, "description": "The request waits while the fault lasts."},
            "garbage": {**flag, "description": "The answer is HTML."},
            "refuse": {**flag, "description": "The connection of a call is refused."},
            "watch": watch,
            "node": _object(
                "Effects on a kubelet.",
                {
                    "silent": {**flag, "description": "The kubelet does not report, and does not answer."},
                    "delay": _duration("Time by which the kubelet sees each change of a pod later."),
                },
            ),
            "stale": _object(
                "Reads from an older state, as of a cache that lags behind; needs one of by, for and hold.",
                {
                    "by": _count("Age of the state in revisions."),
                    "for": _duration("Age of the state."),
                    "hold": {**flag, "description": "The state is that of the fault's beginning."},
                    "evenBehindShown": {
                        **flag,
                        "description": "The state may be older than the one that the connection was shown.",
                    },
                    "evenConsistent": {**flag, "description": "Also reads without a resourceVersion."},
                },
            ),
            "clock": _object(
                "Effects on the cluster's clock.",
                {"advance": _duration("Leap of the clock at each request that is hit; needs when.times.")},
            ),
        },
    )


def _status() -> Schema:
    text, number = {"type": "string"}, {"type": "integer", "format": "int64"}
    hit = _object("", dict.fromkeys(("time", "user", "verb", "resource", "namespace", "name"), text))
    condition = _object(
        "",
        {
            **dict.fromkeys(("type", "status", "reason", "message"), text),
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": number,
        },
        required=["type", "status"],
    )
    return _object(
        "Counts of requests, and the last ones that were hit.",
        {
            "observedGeneration": number,
            "matched": number,
            "injected": number,
            "last": {"type": "array", "items": hit},
            "conditions": {"type": "array", "items": condition},
        },
    )


def _object(description: str, properties: Schema, *, required: list[str] | None = None) -> Schema:
    found: Schema = {"type": "object", "properties": properties}
    if description:
        found["description"] = description
    if required:
        found["required"] = required
    return found


def _count(description: str) -> Schema:
    return {"type": "integer", "format": "int64", "minimum": 0, "maximum": _MOST_COUNT, "description": description}


def _duration(description: str) -> Schema:
    return {"type": "string", "maxLength": 64, "pattern": _DURATION, "description": description}
