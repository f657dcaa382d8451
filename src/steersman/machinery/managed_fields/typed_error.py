"""The error of a value that does not fit its schema for field ownership."""

from __future__ import annotations

from collections.abc import Sequence


class TypedError(ValueError):
    """One or more places where a value does not fit its schema, with structured-merge-diff's message."""

    def __init__(self, *errors: str) -> None:
        self.errors: Sequence[str] = errors
        super().__init__(errors[0] if len(errors) == 1 else "\n".join(["errors:", *(f"  {each}" for each in errors)]))
