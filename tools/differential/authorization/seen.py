"""Compared parts of verdicts: upstream iterates over bindings in the order of a map, which varies."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from tools.differential.server import Answer

_BINDING: Final = re.compile(r"RBAC: allowed by (?:Cluster)?RoleBinding .*", re.DOTALL)
_DEFAULT: Final = re.compile(r'RBAC: allowed by ClusterRoleBinding "system:.*', re.DOTALL)
_ERRORS: Final = re.compile(r"\[((?:[^\[\]]*not found(?:, )?)+)\]")


def bindings_aside(answer: Answer) -> Answer:
    """The answer without which of several bindings gives a right, and with roles that are missing in order."""
    return Answer(answer.code, _texts(answer.body), answer.warnings)


def defaults_aside(answer: Answer) -> Answer:
    """The answer without which of the default bindings gives a right; those of the case are told in full."""
    return Answer(answer.code, _texts(answer.body, _DEFAULT), answer.warnings)


def code_alone(answer: Answer) -> Answer:
    """Refusals in full, of other answers that there was one: their bodies are other tests' subject."""
    if answer.code in (401, 403):
        return bindings_aside(answer)
    return Answer(answer.code, None)


def rules_alone(answer: Answer) -> Answer:
    """The rules of a role: how often a controller has written it is its own affair."""
    return Answer(answer.code, answer.body.get("rules") if isinstance(answer.body, dict) else None)


def token_aside(answer: Answer) -> Answer:
    """Return an answer with an issued token replaced by a constant."""
    return Answer(answer.code, None) if answer.code == 201 else answer


def rules_in_order(answer: Answer) -> Answer:
    """A list of rules in one order, errors too."""
    body = _texts(answer.body)
    status = body.get("status") if isinstance(body, dict) else None
    if isinstance(status, dict):
        for name in ("resourceRules", "nonResourceRules"):
            if isinstance(status.get(name), list):
                status = {**status, name: sorted(status[name], key=lambda rule: json.dumps(rule, sort_keys=True))}
        if "evaluationError" in status:
            status = {**status, "evaluationError": sorted(re.split(r"[,\[\] ]+", status["evaluationError"]))}
        body = {**body, "status": status}
    return Answer(answer.code, body, answer.warnings)


def _texts(value: Any, aside: re.Pattern[str] = _BINDING) -> Any:
    if isinstance(value, dict):
        return {key: _texts(item, aside) for key, item in value.items()}
    if isinstance(value, list):
        return [_texts(item, aside) for item in value]
    if not isinstance(value, str):
        return value
    return _ERRORS.sub(_in_order, aside.sub("RBAC: allowed by a binding", value))


def _in_order(found: re.Match[str]) -> str:
    return f"[{', '.join(sorted(found[1].split(', ')))}]"
