"""Several error texts as one, in upstream's form (apimachinery `util/errors.Aggregate`)."""

from __future__ import annotations

from collections.abc import Iterable


def aggregate(texts: Iterable[str]) -> str:
    """Return the distinct `texts` in order: "" for none, the text itself for one, `[a, b]` for more."""
    distinct = list(dict.fromkeys(texts))
    if not distinct:
        return ""
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
