"""Makes what cases need beside their own objects on both servers, and waits until both have it."""

from __future__ import annotations

import atexit
import time
from collections.abc import Sequence
from typing import Final

from . import authorization, fairness, policies, webhooks
from .case import Generator
from .comparison import Normaliser, differences
from .custom import of_pool, pool
from .custom_definitions import COLLECTION, Defined
from .recording_hook import RecordingHook
from .server import Client

_PATIENCE: Final = 30.0
_APPLY_NOTHING: Final = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}
_CLUSTER_ROLES: Final = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
_AGGREGATED: Final = 5.0
"""Seconds in which a controller has put a ClusterRole together, if there is one."""
_COUNTED: Final = 6.0
"""Seconds in which a server knows how much is stored: upstream counts with --etcd-count-metric-poll-period=2s."""
_SETTLED: Final = 2.5
"""Seconds after which upstream does not make the first object of a definition wait any more."""


def custom_cases(clients: Sequence[Client], seed: int) -> Generator:
    """Cases about the objects of the definitions of a seed, which are made."""
    return of_pool(serve(clients, pool(seed)))


def webhook_cases(clients: Sequence[Client], seed: int) -> Generator:
    """Cases about webhooks, which are at hand."""
    for client in clients:
        client.hook = RecordingHook()
        atexit.register(client.hook.close)
    return webhooks.cases


def policy_cases(clients: Sequence[Client], seed: int) -> Generator:
    """Cases about policies. On both servers there are two that refer to ConfigMaps as parameters all the time: once
    upstream has had none that do, it does not see how these change any more."""
    nowhere = {
        "apiGroups": ["none.example.com"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["none"],
    }
    spec = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "matchConstraints": {"resourceRules": [nowhere]}}
    validating = spec | {"validations": [{"expression": "true"}]}
    mutating = spec | {"mutations": [_APPLY_NOTHING], "reinvocationPolicy": "Never"}
    bound = {"policyName": "always"}
    for client in clients:
        for which, policy, binding in (
            ("validating", validating, bound | {"validationActions": ["Deny"]}),
            ("mutating", mutating, bound),
        ):
            for what, body in (("policies", policy), ("policybindings", binding)):
                path = policies.COLLECTION.format(which, what)
                client.ask("POST", path, {"metadata": {"name": "always"}, "spec": body})
    return policies.cases


def authorization_cases(clients: Sequence[Client], seed: int) -> Generator:
    """Cases of authorization, with ClusterRoles that are put together where both servers have somebody who does so."""
    labels = {"differential": "aggregated"}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    whole = {"metadata": {"name": "aggregated"}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": labels}]}}
    part = {"metadata": {"name": "aggregated-part", "labels": labels}, "rules": [rule]}
    for client in clients:
        for body in (part, whole):
            client.ask("POST", _CLUSTER_ROLES, body)
    is_put_together = [_has_rules(client, f"{_CLUSTER_ROLES}/aggregated") for client in clients]
    return authorization.aggregated_cases if all(is_put_together) else authorization.cases


def fairness_cases(clients: Sequence[Client], seed: int) -> Generator:
    """Cases of priority and fairness, with objects that lists are made of and watches that writes are told to."""
    for client in clients:
        fairness.populate(client)
    time.sleep(_COUNTED)
    return fairness.cases


def _has_rules(client: Client, path: str) -> bool:
    """Wait some seconds for a role to get rules. Return True if it has."""
    end = time.monotonic() + _AGGREGATED
    while not client.ask("GET", path).body.get("rules"):
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def serve(clients: Sequence[Client], definitions: Sequence[Defined]) -> list[Defined]:
    """Creates definitions on both servers, tells where the answers differ, and returns those that both serve."""
    made = []
    for each in definitions:
        answers = [client.ask("POST", COLLECTION, each.body) for client in clients]
        one, other = (Normaliser().answer(answer) for answer in answers)
        lines = list(differences(one, other))
        for line in lines:
            print(f"definition {each.body['metadata']['name']}: {line}")
        if all(answer.code == 201 for answer in answers):
            made.append(each)
    for client in clients:
        for each in made:
            await_served(client, each, _PATIENCE)
    time.sleep(_SETTLED)
    return made


def await_served(client: Client, definition: Defined, patience: float) -> None:
    """Returns once all versions of a definition are served. Raises RuntimeError after `patience` seconds."""
    end = time.monotonic() + patience
    for version in definition.versions:
        path = definition.collection(version["name"], "default")
        while client.ask("GET", path).code != 200:
            if time.monotonic() > end:
                raise RuntimeError(f"{path} is not served")
            time.sleep(0.05)
