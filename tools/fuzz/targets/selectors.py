"""Selectors of labels and fields, and continue tokens: what a list's query holds."""

from __future__ import annotations

from typing import Final

from steersman.machinery.errors.status import StatusError
from steersman.machinery.selectors import fields, labels
from steersman.store import continue_token
from tools.fuzz.target import Target, same

_LABELS: Final[tuple[dict[str, str], ...]] = ({}, {"a": "b"}, {"app": "x", "example.com/a": "1", "b": ""})
_LONG: Final = 1100
"""Characters from which on a selector is looked at for being a simple one first."""


def label_selector(data: bytes) -> str:
    """Check that a printed selector selects the same objects, also when it is parsed as a long one."""
    text = data.decode("utf-8", "replace")
    selector = labels.parse(text)
    again = labels.parse(str(selector))
    same(str(again), str(selector), "what is printed of a selector")
    longer = labels.parse(",".join([text] * (_LONG // max(1, len(text)) + 1))) if text.strip(" \t\r\n\0") else selector
    for each in _LABELS:
        same(again.matches(each), selector.matches(each), "a selector and what is printed of it")
        same(longer.matches(each), selector.matches(each), "a selector and many times the same")
    return f"{min(str(selector).count(','), 5)}"


def field_selector(data: bytes) -> str:
    """Check that a printed selector selects the same objects; its terms are sorted as upstream's."""
    selector = fields.parse(data.decode("utf-8", "replace"))
    again = fields.parse(str(selector))
    same(sorted(str(again)), sorted(str(selector)), "what is printed of a selector")
    for each in ({}, {"metadata.name": "a"}, {"a": "b", "spec.nodeName": ""}):
        same(again.matches(each), selector.matches(each), "a selector and what is printed of it")
    return f"{min(str(selector).count(','), 5)}"


def continued(data: bytes) -> int:
    """A token never leads out of its prefix, and one made of what it says leads there too."""
    key, revision = continue_token.decode(data.decode("utf-8", "replace"), "/registry/pods/")
    same(key.startswith("/registry/pods/"), True, "the prefix of a key")
    if key.endswith("\0"):
        again = continue_token.encode(key[:-1], "/registry/pods/", revision)
        same(continue_token.decode(again, "/registry/pods/"), (key, revision), "a token made of what one says")
    return min(revision, 9)


_LABEL_WORDS: Final = (
    b"a=b",
    b"a!=b",
    b"!a",
    b"a in (b,c)",
    b"a notin (b)",
    b"a>1",
    b"a<1",
    b",",
    b"==",
    b"(",
    b")",
    b"example.com/a",
    b"in",
    b"notin",
    b"a in ()",
    b"a=",
    b"x" * 64,
)
_FIELD_WORDS: Final = (b"a=b", b"a!=b", b"a==b", b"metadata.name=a", b"\\,", b"\\=", b"\\\\", b",", b"spec.nodeName=")
_TOKENS: Final = (
    b"eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0",
    b"eyJ2",
    b"=",
    b"-_",
    b"Ii4u",
    b"Li4v",
)

TARGETS: Final = (
    Target("labels", label_selector, (labels.SelectorError,), _LABEL_WORDS, most=2048),
    Target("fields", field_selector, (fields.SelectorError,), _FIELD_WORDS, most=2048),
    Target("continue", continued, (StatusError,), _TOKENS, most=1024),
)
