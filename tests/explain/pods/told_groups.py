"""Groups of nodes in an explanation, compared with kube-scheduler's message about the same pod."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_PART: Final = re.compile(r"(\d+) (.+)")


def difference(details: Mapping[str, Any], message: str) -> str:
    """Return how the groups of a finding's details differ from a message about unavailable nodes, "" if they agree."""
    groups = details["groups"]
    if details["message"] != message:
        return f"the message is {details['message']!r}, and kube-scheduler's {message!r}"
    if sum(each["count"] for each in groups) != details["nodes"]:
        return f"the groups have other numbers than {details['nodes']} nodes: {groups}"
    told = message.partition(" nodes are available: ")[2].partition(". ")[0].rstrip(".")
    for part in told.split(", "):
        match = _PART.fullmatch(part)
        if match is None:
            return f"kube-scheduler's message has the part {part!r}"
        of_reason = [each["count"] for each in groups if match[2] in [one["message"] for one in each["reasons"]]]
        if sum(of_reason) < int(match[1]):
            return f"{match[2]}: {match[1]} nodes according to kube-scheduler, {of_reason} in the groups"
    return ""
