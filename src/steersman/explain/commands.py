"""Command lines of suggestions, quoted for a shell."""

from __future__ import annotations

import shlex
from typing import Any

from steersman.explain.finding import Reference, Suggestion
from steersman.machinery.codec.serializer import encode_in_order
from steersman.machinery.go.strings import to_lower


def kubectl(*words: str, namespace: str = "") -> str:
    """Return a command line of kubectl."""
    return shlex.join(("kubectl", *words, *(("-n", namespace) if namespace else ())))


def why(subject: Reference) -> str:
    """Return the command that explains an object."""
    name = f"{to_lower(subject.kind)}/{subject.name}"
    return shlex.join(("steersman", "why", name, *(("-n", subject.namespace) if subject.namespace else ())))


def patch(text: str, subject: Reference, change: Any) -> Suggestion:
    """Return the suggestion of a merge patch of an object."""
    body = encode_in_order(change).decode()
    kind = to_lower(subject.kind)
    line = kubectl("patch", kind, subject.name, "--type=merge", "-p", body, namespace=subject.namespace)
    return Suggestion(text, line, patch=change)
