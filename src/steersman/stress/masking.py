"""Masks for text that differs between runs: random names, UIDs, times and resource versions."""

from __future__ import annotations

from typing import Final

from steersman.work.patterns import late_pattern

_RANDOM: Final = late_pattern(r"-[bcdfghjklmnpqrstvwxz2456789]{5,10}\Z")
"""Suffix in the alphabet of generated names and of hashes of pod templates."""
_NUMBERED: Final = late_pattern(r"-(?=[a-z]{0,40}[0-9])[a-z0-9]{6,40}\Z")
"""Suffix with a digit, as of a hash, a time or a random number."""
_UID: Final = late_pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HASH: Final = late_pattern(r"[0-9a-f]{16,128}")
"""Hash of something random, as in names of volume attachments."""
_TIME: Final = late_pattern(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
)
_NAME: Final = late_pattern(r"[a-z0-9][a-z0-9./-]{0,252}\Z")
_RANDOM_LENGTH: Final = 5
_MOST_PREFIXES: Final = 1_000
_LONGEST: Final = 64 << 10
"""Characters of a text that is examined; longer ones stay."""


class Masker:
    """Mask of random names, which learns prefixes (`generateName`) from the objects that it is shown."""

    def __init__(self) -> None:
        self._prefixes: set[str] = set()

    def learn(self, generate_name: str) -> None:
        """Remember a prefix of generated names."""
        if generate_name and len(self._prefixes) < _MOST_PREFIXES:
            self._prefixes.add(generate_name)

    def name(self, name: str) -> str:
        """Return a name with `*` in place of random suffixes, as of a pod of a ReplicaSet, whose own name has one."""
        name = _HASH.sub("*", _UID.sub("*", name))
        suffixes = ""
        while (masked := self._shortened(name)) is not None:
            name, dash = masked
            suffixes = f"{dash}*{suffixes}"
        return f"{name}{suffixes}"

    def generated(self, prefix: str) -> str:
        """Return the masked name of an object whose name the server makes from a prefix."""
        return f"{self.name(prefix[:-1])}-*" if prefix.endswith("-") else f"{prefix}*"

    def _shortened(self, name: str) -> tuple[str, str] | None:
        """Return a name without its last random suffix, and the dash between; None if there is no random suffix."""
        prefix = name[:-_RANDOM_LENGTH]
        if prefix in self._prefixes:
            return (prefix[:-1], "-") if prefix.endswith("-") else (prefix, "")
        for pattern in (_RANDOM, _NUMBERED):
            if found := pattern.search(name):
                return name[: found.start()], "-"
        return None

    def text(self, text: str) -> str:
        """Return text with masks in place of UIDs, times and random names."""
        if len(text) > _LONGEST:
            return text
        masked = _TIME.sub("<time>", _UID.sub("<uid>", text))
        return self.name(masked) if _NAME.match(masked) else masked
