"""One case: rules are made, and then they are asked about and tried."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, Final

from tools.differential.case import NAME, NAMESPACE, Case, Step

from . import attempts, nodes, reviews, rules, subjects
from .seen import rules_alone, token_aside

_SEEN: Final = 0.15
"""Seconds in which upstream finds out about roles and bindings."""
_ACCOUNTS: Final = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"


def cases(random: Random) -> Case:
    """A case of one of the sorts that kube-apiserver alone can answer."""
    sort = random.random()
    if sort < 0.5:
        return _of_roles(random)
    if sort < 0.65:
        return _of_policies(random)
    return _of_impersonation(random) if sort < 0.8 else nodes.cases(random)


def _of_roles(random: Random) -> Case:
    """Roles and bindings, questions about them, requests, and attempts to give more than one has."""
    count = random.choice((1, 1, 2, 3))
    made = [rules.role(random, number) for number in range(count)]
    roles = [each for _, each in made]
    bound = [rules.binding(random, number, roles) for number in range(count)]
    is_exact = count == 1
    steps = [*(step for step, _ in made), *bound]
    steps[-1] = replace(steps[-1], pause=_SEEN)
    for _ in range(random.randint(4, 10)):
        who = subjects.of_case(random)
        what = random.random()
        if what < 0.55:
            steps.append(reviews.review(random, who, is_exact=is_exact))
        elif what < 0.8:
            steps.append(attempts.attempt(random, who))
        elif what < 0.92:
            steps.append(attempts.granted(random, who, roles))
        else:
            steps.append(attempts.changed(random, who, random.choice(roles)))
    return Case("roles and bindings", steps, cleanup=_taken_away([*(step for step, _ in made), *bound]))


def aggregated_cases(random: Random) -> Case:
    """Return a case of aggregated ClusterRoles and others, for servers beside which a controller manager runs.

    The case has no nodes, as kubelets would write too.
    """
    return random.choice((_of_aggregation, _of_aggregation, _of_roles, _of_impersonation))(random)


def _of_aggregation(random: Random) -> Case:
    """A ClusterRole of others by their labels; one of these comes, changes or goes later."""
    labels = {"case": NAME}
    made = [rules.labelled(random, number, labels) for number in range(random.randint(1, 3))]
    whole, (kind, name) = rules.aggregated(9, labels)
    bound = rules.binding(random, 0, [(kind, name)], [{"kind": "User", "name": f"{NAME}-u0", "apiGroup": rules.API}])
    path = f"{rules.BASE}/clusterroles/{name}"
    steps = [*made, whole, bound, Step("GET", path, until=_of_all(made), seen=rules_alone)]
    steps += [_asked_soon(random) for _ in range(random.randint(2, 5))]
    gone = random.choice(made)
    left = [each for each in made if each is not gone]
    steps.append(Step("DELETE", f"{gone.path}/{gone.body['metadata']['name']}", pause=_SEEN))
    steps.append(Step("GET", path, until=_of_all(left), seen=rules_alone))
    steps += [_asked_soon(random) for _ in range(random.randint(2, 5))]
    return Case("roles of others", steps, cleanup=_taken_away([*made, whole, bound]))


def _asked_soon(random: Random) -> Step:
    return reviews.review(random, subjects.Subject(f"{NAME}-u0"), is_exact=False)


def _of_all(roles: list[Step]) -> Callable[[Any], bool]:
    """Return a check that a role has as many distinct rules as `roles` have together."""
    wanted = {json.dumps(rule, sort_keys=True) for role in roles for rule in role.body["rules"]}
    return lambda found: isinstance(found, dict) and len(found.get("rules") or ()) == len(wanted)


def _of_policies(random: Random) -> Case:
    """The policies of the file."""
    steps = []
    for _ in range(random.randint(4, 10)):
        who = subjects.of_policies(random)
        make = random.choice((reviews.review, attempts.attempt))
        steps.append(make(random, who, is_exact=True) if make is reviews.review else attempts.attempt(random, who))
    return Case("policies of the file", steps)


def _of_impersonation(random: Random) -> Case:
    """A service account with rights to act as others does so."""
    account = Step("POST", _ACCOUNTS, {"metadata": {"name": f"{NAME}-s0"}})
    token = Step("POST", f"{_ACCOUNTS}/{NAME}-s0/token", {"spec": {}})
    given = [rules.impersonation_rule(random) for _ in range(random.randint(1, 3))]
    role, found = rules.role(random, 0, rules=given)
    bound = rules.binding(
        random, 0, [found], [{"kind": "ServiceAccount", "name": f"{NAME}-s0", "namespace": NAMESPACE}]
    )
    other, another = rules.role(random, 1)
    also = rules.binding(random, 1, [another])
    made = [account, role, bound, other, also]
    asked = [attempts.by_account(random, subjects.wanted(random)) for _ in range(random.randint(3, 7))]
    steps = [*made, replace(token, pause=_SEEN, seen=token_aside), *asked]
    return Case("acting as others", steps, cleanup=_taken_away(made))


def _taken_away(made: list[Step]) -> list[Step]:
    return [Step("DELETE", f"{step.path}/{step.body['metadata']['name']}") for step in made]
