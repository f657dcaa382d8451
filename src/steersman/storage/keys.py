"""Keys and prefixes: the range of a prefix, and the validity of keys."""

from __future__ import annotations

from typing import Final

_LAST_CODE_POINT: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


def prefix_end(prefix: str) -> str | None:
    """Return the smallest text greater than every key under `prefix`, None if every text is smaller."""
    for index in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[index]) + 1
        if following > _LAST_CODE_POINT:
            continue
        if following in _SURROGATES:
            following = _SURROGATES.stop
        return prefix[:index] + chr(following)
    return None


def after(key: str) -> str:
    """Return the smallest text greater than `key`, where the page after it starts."""
    return key + "\0"


def parent(key: str) -> str:
    """Return the key up to its last slash, inclusive: `/registry/pods/default/` of `/registry/pods/default/nginx`."""
    return key[: key.rfind("/") + 1]


def check_write(key: str, value: bytes | None) -> None:
    """Raise ValueError for a key or value that no implementation could store.

    That is an empty key or value, or a key with a NUL or a lone surrogate.
    """
    if not key or "\0" in key:
        raise ValueError(f"not a key: {key!r}")
    if not key.isascii():
        key.encode()
    if value is not None and not value:
        raise ValueError(f"an empty value for {key!r}")
