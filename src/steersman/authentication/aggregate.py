"""Several error texts as one, in the form that clients and logs know (apimachinery `util/errors.Aggregate`)."""

from __future__ import annotations

from collections.abc import Iterable


def aggregate(texts: Iterable[str]) -> str:
    """The distinct `texts` in order: nothing for none, the text itself for one, `[a, b]` for more."""
    distinct = list(dict.fromkeys(texts))
    if not distinct:
        return ""
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
