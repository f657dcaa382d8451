"""Commands that show more about a pod."""

from __future__ import annotations

import shlex

from steersman.explain.finding import Reference, Suggestion


def logs_of(pod: Reference, container: str, *, previous: bool = False) -> tuple[Suggestion, ...]:
    """Return the suggestion to read a container's log; with `previous`, that of the container before the restart."""
    command = ["kubectl", "logs", "-n", pod.namespace, pod.name, "-c", container, *(["--previous"] if previous else [])]
    return (Suggestion("read its log", shlex.join(command)),)
