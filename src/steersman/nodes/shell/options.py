"""Options of simulated programs, parsed as by getopt."""

from __future__ import annotations

from msgspec import Struct, field


class Options(Struct):
    """Parsed options: letters of flags, options with values, and the other arguments."""

    flags: set[str] = field(default_factory=set)
    given: list[tuple[str, str]] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)

    def values(self, letter: str) -> list[str]:
        """Return the values of an option in order."""
        return [value for each, value in self.given if each == letter]


def options_of(words: list[str], flags: str, with_value: str) -> Options | None:
    """Parse `-abc`, `-f VALUE` and `-fVALUE`; None for an unknown option."""
    options = Options()
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            options.rest += words[at:]
            break
        if not word.startswith("-") or word == "-":
            options.rest.append(word)
            continue
        if word.startswith("--"):
            return None
        for place, letter in enumerate(word[1:], 1):
            if letter in flags:
                options.flags.add(letter)
            elif letter in with_value:
                value = word[place + 1 :]
                if not value:
                    if at >= len(words):
                        return None
                    value = words[at]
                    at += 1
                options.given.append((letter, value))
                break
            else:
                return None
    return options
