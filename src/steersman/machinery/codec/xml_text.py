"""Text of users and objects in XML documents."""

from __future__ import annotations

from typing import Final

_NOT_XML: Final = dict.fromkeys(
    (*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)), "\N{REPLACEMENT CHARACTER}"
)


def xml_text(text: str) -> str:
    """Return text with the replacement character in place of each character that XML 1.0 cannot have."""
    return text.translate(_NOT_XML)
