"""Mail addresses as Go's net/mail parses them (RFC 5322): `a@b.c`, `Name <a@b.c>`, a group with one address."""

from __future__ import annotations

import binascii
import re
from typing import Final

from steersman.machinery.go.strings import to_lower
from steersman.work.patterns import late_pattern

from .addresses import is_ip

_SPACE: Final = late_pattern(r"[ \t]*")
_ATOM: Final = late_pattern(r"[!#-'*+\-./0-9=?A-Z^-~\x80-\U0010ffff]+")
_QUOTED: Final = late_pattern(r'"((?:[ \t!#-\[\]-~\x80-\U0010ffff]|\\[ \t!-~\x80-\U0010ffff])*+)"')
_DOMAIN_TEXT: Final = late_pattern(r"\[([!-Z^-~\x80-\U0010ffff]*)\]")
_CHARSETS: Final = frozenset({"utf-8", "iso-8859-1", "us-ascii"})
_Q_TEXT: Final = late_pattern(r"(?:=[0-9A-Fa-f]{2}|[!-<>-~\n\r\t ])*+")


class _Malformed(ValueError):
    """The error for text that is not an address."""


def is_mail_address(text: str) -> bool:
    """Return True if `text` is exactly one address."""
    parser = _Parser(text)
    try:
        count = parser.address(in_group=False)
        parser.skip_comments()
    except _Malformed:
        return False
    return count == 1 and parser.at == len(text)


class _Parser:
    """A parser; the unread rest of the text begins `at`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0

    def address(self, *, in_group: bool) -> int:
        """Parse a mailbox or, outside of groups, a group; return the number of addresses. Raises _Malformed."""
        self._skip_space()
        if self.at == len(self._text):
            raise _Malformed
        if self._is_address_spec():
            self._skip_space()
            if self._next() == "(":
                self._comment(is_name=True)
            return 1
        if self._next() != "<":
            self._phrase()
        self._skip_space()
        if not in_group and self._take(":"):
            return self._group()
        if not (self._take("<") and self._is_address_spec() and self._take(">")):
            raise _Malformed
        return 1

    def skip_comments(self) -> None:
        """Skip white space and comments. Raises _Malformed for a comment without an end."""
        self._skip_space()
        while self._next() == "(":
            self._comment(is_name=False)
            self._skip_space()

    def _group(self) -> int:
        count = 0
        self._skip_space()
        if not self._take(";"):
            while True:
                count += self.address(in_group=True)
                self.skip_comments()
                if self._take(";"):
                    break
                if not self._take(","):
                    raise _Malformed
        self.skip_comments()
        return count

    def _is_address_spec(self) -> bool:
        """Parse an address without a name if there is one; return True if so."""
        begin = self.at
        self._skip_space()
        if self._local_part() and self._take("@"):
            self._skip_space()
            if self._domain():
                return True
        self.at = begin
        return False

    def _local_part(self) -> bool:
        if self._next() == '"':
            return bool(self._quoted_string())
        return self._is_strict_atom()

    def _domain(self) -> bool:
        if self._next() != "[":
            return self._is_strict_atom()
        match = _DOMAIN_TEXT.match(self._text, self.at)
        if match is None or not is_ip(match[1]):
            return False
        self.at = match.end()
        return True

    def _is_strict_atom(self) -> bool:
        """Parse an atom; return True if its dots are between other characters."""
        atom = self._atom()
        return bool(atom) and ".." not in atom and not atom.startswith(".") and not atom.endswith(".")

    def _atom(self) -> str:
        match = _ATOM.match(self._text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match[0]

    def _quoted_string(self) -> str | None:
        match = _QUOTED.match(self._text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match[1]

    def _phrase(self) -> None:
        """Parse a name: one or more words. Raises _Malformed if the first word is malformed."""
        words = 0
        while True:
            if words:
                self.skip_comments()
            self._skip_space()
            if self.at == len(self._text):
                return
            if self._next() == '"':
                is_word = self._quoted_string() is not None
            else:
                atom = self._atom()
                is_word = bool(atom) and not _has_unknown_charset(atom)
            if not is_word:
                if not words:
                    raise _Malformed
                return
            words += 1

    def _comment(self, *, is_name: bool) -> None:
        begin = self.at + 1
        depth, at, text = 0, self.at, self._text
        while True:
            match = _COMMENT_PART.search(text, at)
            if match is None:
                raise _Malformed
            at = match.end()
            if match[0] == "(":
                depth += 1
            elif match[0] == ")":
                depth -= 1
                if not depth:
                    break
        self.at = at
        words = re.split("[ \t]+", _ESCAPED.sub(r"\1", text[begin : at - 1])) if is_name else ()
        if any(map(_has_unknown_charset, words)):
            raise _Malformed

    def _next(self) -> str:
        return self._text[self.at : self.at + 1]

    def _take(self, char: str) -> bool:
        found = self._next() == char
        self.at += found
        return found

    def _skip_space(self) -> None:
        match = _SPACE.match(self._text, self.at)
        assert match is not None
        self.at = match.end()


_ESCAPED: Final = late_pattern(r"\\((?s:.))")
_COMMENT_PART: Final = late_pattern(r"\\(?s:.)|[()]")


def _has_unknown_charset(word: str) -> bool:
    """Return True if a word is validly encoded (RFC 2047) in a charset that Go does not know."""
    if not (len(word) >= 8 and word.startswith("=?") and word.endswith("?=") and word.count("?") == 4):
        return False
    charset, encoding, content = word[2:-2].split("?")
    if not charset or to_lower(charset).replace("ſ", "s") in _CHARSETS:
        return False
    if encoding in ("b", "B"):
        try:
            binascii.a2b_base64(content, strict_mode=True)
        except (binascii.Error, ValueError):
            return False
        return True
    return encoding in ("q", "Q") and _Q_TEXT.fullmatch(content) is not None
