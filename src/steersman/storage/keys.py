"""Keys and prefixes: which keys a prefix covers, which keys may be stored."""

from __future__ import annotations

from typing import Final

_LAST_CODE_POINT: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


def prefix_end(prefix: str) -> str | None:
    """The least text greater than every key under `prefix`, None if there is none (every key is smaller)."""
    for index in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[index]) + 1
        if following > _LAST_CODE_POINT:
            continue
        if following in _SURROGATES:
            following = _SURROGATES.stop
        return prefix[:index] + chr(following)
    return None


def after(key: str) -> str:
    """The least text greater than `key`: where a page that ended with it goes on."""
    return key + "\0"


def parent(key: str) -> str:
    """The key up to and including its last slash: `/registry/pods/default/` of `/registry/pods/default/nginx`."""
    return key[: key.rfind("/") + 1]


def check_write(key: str, value: bytes | None) -> None:
    """Raises ValueError for what no implementation could keep: an empty key or value, a NUL or a lone surrogate."""
    if not key or "\0" in key:
        raise ValueError(f"not a key: {key!r}")
    if not key.isascii():
        key.encode()
    if value is not None and not value:
        raise ValueError(f"an empty value for {key!r}")
