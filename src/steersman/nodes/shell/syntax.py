"""Parser of scripts: the part of POSIX's shell language that scripts in manifests use.

The parser is a generator, so that a long script is parsed in pieces, and a script that arrives line by line is parsed
only once. It yields TURN after a bounded amount of work, and MORE when the text ends before the script does.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from enum import Enum, auto
from typing import Final, TypeVar

from steersman.net.ascii import is_digits
from steersman.nodes.shell.script import (
    Arithmetic,
    Case,
    Command,
    Document,
    For,
    Function,
    Group,
    If,
    Loop,
    Output,
    Part,
    Pipeline,
    Redirect,
    Redirected,
    Script,
    Simple,
    Text,
    Variable,
    Word,
)
from steersman.work.patterns import late_pattern

MOST_CHARACTERS: Final = 64 << 10
"""Characters of one script."""
_MOST_PARTS: Final = 5000
"""Commands, words and redirections of a script."""
_MOST_DEPTH: Final = 32
"""Depth of nested commands."""
PARTS_A_TURN: Final = 64
"""Parts that are parsed between two TURNs."""
_ESCAPES_A_TURN: Final = 1000
"""Pieces of quoted text that are parsed between two TURNs."""
_PIECES_A_TURN: Final = 128
"""Pieces of words that are parsed between two TURNs."""
_REDIRECT: Final = late_pattern("([012]?)(<<-?|>>|>|<)(&[12])?", re.ASCII)
_NAME: Final = late_pattern("[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PARAMETER: Final = late_pattern("[A-Za-z_][A-Za-z0-9_]*|[0-9]{1,4}|[?$#@*!]", re.ASCII)
_EXPANSION: Final = late_pattern(":?[-=+?]|##?|%%?")
_ASSIGNMENT: Final = late_pattern("([A-Za-z_][A-Za-z0-9_]*)=", re.ASCII)
_FUNCTION: Final = late_pattern(r"([A-Za-z_][A-Za-z0-9_-]*)[ \t]?\([ \t]?\)", re.ASCII)
_OPERATOR: Final = late_pattern("&&|\\|\\||;;|>>|<<|[;|&\n()<>]|")
_PLAIN_WORD: Final = late_pattern(r"[A-Za-z0-9_!{}]+(?=[\s;&|()<>]|$)", re.ASCII)
_PLAIN: Final = late_pattern("""[^ \t\r\n;&|()<>'"\\\\$`]+""")
_QUOTED: Final = late_pattern(r'[^"$`\\]+')
_OF_DOCUMENT: Final = late_pattern(r"[^$`\\]+")
_OF_DEFAULT: Final = late_pattern(r"""[^}'"\\$`]+""")
_BLANKS: Final = late_pattern("[ \t\r]+")
_ENDS: Final = frozenset({"then", "do", "done", "else", "elif", "fi", "esac", "}"})
_FUNCTION_ITSELF: Final = 128
"""Overhead of a function in characters."""
_OF_CHARACTER: Final = 16
"""Bytes of the syntax tree for each character of a script, at most."""
_UNFINISHED: Final = 'unexpected end of file (expecting "%s")'


class ShellSyntaxError(ValueError):
    """The script cannot be parsed. The text says what was unexpected."""


class Ask(Enum):
    """Requests of a parser to its caller."""

    TURN = auto()
    """Others may have the event loop."""
    MORE = auto()
    """More text is needed: the answer is the text, None at its end."""


T = TypeVar("T")
Reading = Generator[Ask, "str | None", T]


def parse(text: str) -> Script:
    """Parse a script at once. Raises ShellSyntaxError."""
    reading = Reader(text).whole()
    try:
        while True:
            next(reading)
    except StopIteration as done:
        script: Script = done.value
        return script


class Reader:
    """Parser of one script. With `grows`, it asks for more text when the text ends before the script does."""

    def __init__(self, text: str, *, grows: bool = False) -> None:
        self.text = text
        self.at = 0
        self._depth = 0
        self._parts = 0
        self._pieces = 0
        """Pieces of words parsed so far."""
        self._over = not grows
        self._documents: list[Document] = []
        self._check_length()

    def whole(self) -> Reading[Script]:
        """Parse the script up to the end of the text. Raises ShellSyntaxError."""
        script = yield from self._script()
        if self._operator() or self.at < len(self.text):
            raise ShellSyntaxError(f'unexpected "{self.text[self.at : self.at + 10]}"')
        if self._documents:
            yield from self._read_documents()
        return script

    # Text

    def _check_length(self) -> None:
        if len(self.text) > MOST_CHARACTERS:
            raise ShellSyntaxError("script too long")

    def _read_more(self) -> Reading[bool]:
        """Ask for more text and append it. Return False if there is none."""
        if self._over:
            return False
        text = yield Ask.MORE
        if text is None:
            self._over = True
            return False
        self.text += text
        self._check_length()
        return True

    def _skip_blanks(self) -> Reading[bool]:
        """Skip blanks and empty lines, with more text if needed. Return False if nothing follows."""
        self._blanks(lines=True)
        while self.at >= len(self.text):
            if not (yield from self._read_more()):
                return False
            self._blanks(lines=True)
        return True

    def _find(self, end: str, start: int, error: str) -> Reading[int]:
        """Return the position of `end` from `start` on. Raises ShellSyntaxError with `error` if it does not occur."""
        while (position := self.text.find(end, start)) < 0:
            start = max(start, len(self.text) - len(end) + 1)
            if not (yield from self._read_more()):
                raise ShellSyntaxError(error)
        return position

    def _part(self) -> Reading[None]:
        """Count a part of the script. Raises ShellSyntaxError if there are too many."""
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise ShellSyntaxError("script too long")
        if not self._parts % PARTS_A_TURN:
            yield Ask.TURN

    def _blanks(self, *, lines: bool = False) -> None:
        text = self.text
        while self.at < len(text):
            here = text[self.at]
            if here in " \t\r":
                match = _BLANKS.match(text, self.at)
                assert match is not None
                self.at = match.end()
            elif here == "\\" and text[self.at + 1 : self.at + 2] == "\n":
                self.at += 2
            elif here == "#":
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            elif lines and here in "\n;" and not text.startswith(";;", self.at) and not self._documents:
                self.at += 1
            else:
                return

    def _operator(self) -> str:
        """Skip blanks and return the operator that follows, without consuming it; "" if none does."""
        self._blanks()
        match = _OPERATOR.match(self.text, self.at)
        return match[0] if match is not None else ""

    def _ahead(self) -> str:
        """Return the next word without consuming it; "" if it is not a plain one."""
        self._blanks(lines=True)
        match = _PLAIN_WORD.match(self.text, self.at)
        return match[0] if match is not None else ""

    def _word_is(self, wanted: str) -> Reading[None]:
        yield from self._skip_blanks()
        if self._ahead() != wanted:
            raise ShellSyntaxError(_UNFINISHED % wanted)
        self.at += len(wanted)

    # Lists

    def _script(self) -> Reading[Script]:
        """Parse pipelines up to the end of the text, a closing word or a closing parenthesis."""
        self._deeper()
        steps: list[tuple[str, Pipeline, bool]] = []
        before = ";"
        while True:
            self._blanks(lines=True)
            if self._documents and self._operator() == "\n":
                self.at += 1
                yield from self._read_documents()
                continue
            if self.at >= len(self.text) and (self._depth > 1 or before != ";"):
                yield from self._skip_blanks()
            if self.at >= len(self.text) or self._operator() in (")", ";;") or self._ahead() in _ENDS:
                break
            yield from self._part()
            pipeline = yield from self._pipeline()
            operator = self._operator()
            if operator in (";", "&", "&&", "||") or (operator == "\n" and not self._documents):
                self.at += len(operator)
            steps.append((before, pipeline, operator == "&"))
            before = operator if operator in ("&&", "||") else ";"
            if operator in (")", ";;") or (not operator and self.at < len(self.text)):
                break
        if before != ";":
            raise ShellSyntaxError("unexpected end of file")
        self._depth -= 1
        return Script(tuple(steps))

    def _pipeline(self) -> Reading[Pipeline]:
        negated = self._ahead() == "!"
        if negated:
            self.at += 1
        commands = [(yield from self._command())]
        while self._operator() == "|":
            self.at += 1
            yield from self._skip_blanks()
            yield from self._part()
            commands.append((yield from self._command()))
        return Pipeline(tuple(commands), negated)

    # Commands

    def _command(self) -> Reading[Command]:
        compound = yield from self._compound()
        if compound is None:
            return (yield from self._simple())
        if isinstance(compound, Function):
            return compound
        redirects: list[Redirect] = []
        self._blanks()
        while (redirect := (yield from self._redirect())) is not None:
            redirects.append(redirect)
            self._blanks()
        return Redirected(compound, tuple(redirects)) if redirects else compound

    def _compound(self) -> Reading[Loop | For | If | Case | Group | Function | None]:
        ahead = self._ahead()
        if self._operator() == "(" or ahead == "{":
            return (yield from self._group(")" if ahead != "{" else "}"))
        match ahead:
            case "while" | "until":
                return (yield from self._loop(ahead))
            case "for":
                return (yield from self._for())
            case "if":
                return (yield from self._if())
            case "case":
                return (yield from self._case())
        return (yield from self._function())

    def _deeper(self) -> None:
        """Count a level of nesting. Raises ShellSyntaxError if there are too many."""
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise ShellSyntaxError("nested too deeply")

    def _function(self) -> Reading[Function | None]:
        if self._ahead() == "function":
            self.at += len("function")
            self._blanks()
        match = _FUNCTION.match(self.text, self.at)
        if match is None:
            return None
        start = self.at
        self.at = match.end()
        self._deeper()
        yield from self._skip_blanks()
        body = yield from self._command()
        self._depth -= 1
        return Function(match[1], body, _FUNCTION_ITSELF + _OF_CHARACTER * (self.at - start))

    def _group(self, end: str) -> Reading[Group]:
        self._blanks()
        self.at += 1
        return Group((yield from self._script_before(end)), end == ")")

    def _script_before(self, end: str) -> Reading[Script]:
        """Parse a script and consume the character `end` after it."""
        script = yield from self._script()
        yield from self._skip_blanks()
        if self.text[self.at : self.at + 1] != end:
            raise ShellSyntaxError(_UNFINISHED % end)
        self.at += 1
        return script

    def _loop(self, kind: str) -> Reading[Loop]:
        yield from self._word_is(kind)
        condition = yield from self._script()
        yield from self._word_is("do")
        body = yield from self._script()
        yield from self._word_is("done")
        return Loop(condition, body, until=kind == "until")

    def _for(self) -> Reading[For]:
        yield from self._word_is("for")
        name = self._ahead()
        if _NAME.fullmatch(name) is None:
            raise ShellSyntaxError("bad for loop variable")
        self.at += len(name)
        words: list[Word] | None = None
        yield from self._skip_blanks()
        if self._ahead() == "in":
            self.at += len("in")
            words = []
            while (word := (yield from self._word())) is not None:
                yield from self._part()
                words.append(word)
        if self._operator() in (";", "\n"):
            self.at += 1
        yield from self._word_is("do")
        body = yield from self._script()
        yield from self._word_is("done")
        return For(name, None if words is None else tuple(words), body)

    def _if(self) -> Reading[If]:
        yield from self._word_is("if")
        branches: list[tuple[Script, Script]] = []
        otherwise: Script | None = None
        while True:
            condition = yield from self._script()
            yield from self._word_is("then")
            branches.append((condition, (yield from self._script())))
            if self._ahead() != "elif":
                break
            yield from self._word_is("elif")
        if self._ahead() == "else":
            yield from self._word_is("else")
            otherwise = yield from self._script()
        yield from self._word_is("fi")
        return If(tuple(branches), otherwise)

    def _case(self) -> Reading[Case]:
        yield from self._word_is("case")
        word = yield from self._word()
        if word is None:
            raise ShellSyntaxError(_UNFINISHED % "word")
        yield from self._word_is("in")
        branches: list[tuple[tuple[Word, ...], Script]] = []
        while (yield from self._skip_blanks()) and self._ahead() != "esac":
            patterns = yield from self._patterns()
            branches.append((patterns, (yield from self._script())))
            yield from self._skip_blanks()
            if self._operator() == ";;":
                self.at += 2
        yield from self._word_is("esac")
        return Case(word, tuple(branches))

    def _patterns(self) -> Reading[tuple[Word, ...]]:
        """Parse the patterns of a branch, and the parenthesis after them."""
        if self._operator() == "(":
            self.at += 1
        patterns: list[Word] = []
        while True:
            yield from self._part()
            pattern = yield from self._word()
            operator = self._operator()
            if pattern is None or operator not in ("|", ")"):
                raise ShellSyntaxError(f'unexpected "{operator or "end of file"}" (expecting ")")')
            patterns.append(pattern)
            self.at += 1
            if operator == ")":
                return tuple(patterns)

    def _simple(self) -> Reading[Simple]:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self._blanks()
            while self.at >= len(self.text) and self.text.endswith("\\\n") and (yield from self._read_more()):
                self._blanks()
            yield from self._part()
            if (redirect := (yield from self._redirect())) is not None:
                redirects.append(redirect)
                continue
            assigned = None if words else _ASSIGNMENT.match(self.text, self.at)
            if assigned is not None:
                self.at = assigned.end()
                value = None if self.text[self.at : self.at + 1] in " \t\r" else (yield from self._word())
                assignments.append((assigned[1], value or Word(())))
                continue
            word = yield from self._word()
            if word is None:
                break
            words.append(word)
        if not (assignments or words or redirects):
            raise ShellSyntaxError(f'unexpected "{self._operator() or "end of file"}"')
        return Simple(tuple(assignments), tuple(words), tuple(redirects))

    # Redirections

    def _redirect(self) -> Reading[Redirect | None]:
        match = _REDIRECT.match(self.text, self.at)
        if match is None:
            return None
        yield from self._part()
        self.at = match.end()
        operator = match[2]
        stream = int(match[1]) if match[1] else 0 if operator.startswith("<") else 1
        if match[3]:
            return Redirect(stream, operator, Word(((Text(match[3]), False),)))
        self._blanks()
        target = yield from self._word()
        if target is None:
            raise ShellSyntaxError("unexpected redirection")
        if operator.startswith("<<"):
            name = "".join(part.text for part, _ in target.parts if isinstance(part, Text))
            document = Document(name, any(quoted for _, quoted in target.parts), operator == "<<-")
            self._documents.append(document)
            return Redirect(stream, "<<", document)
        return Redirect(stream, operator, target)

    def _read_documents(self) -> Reading[None]:
        """Read the lines of the here-documents of the commands on the last line."""
        for document in self._documents:
            lines: list[str] = []
            while True:
                end = yield from self._line_end()
                line, is_last = self.text[self.at : end], end >= len(self.text)
                self.at = min(end + 1, len(self.text))
                line = line.lstrip("\t") if document.without_tabs else line
                if line == document.name:
                    break
                lines.append(f"{line}\n" if not is_last else line)
                yield from self._part()
                if is_last:
                    break
            text = "".join(lines)
            if document.is_literal:
                document.word = Word(((Text(text), True),))
            else:
                inner = self._within(text)
                document.word = Word(tuple((yield from inner._quoted(_OF_DOCUMENT, ""))))
        self._documents = []

    def _line_end(self) -> Reading[int]:
        start = self.at
        while (end := self.text.find("\n", start)) < 0:
            start = len(self.text)
            if not (yield from self._read_more()):
                return len(self.text)
        return end

    def _within(self, text: str) -> Reader:
        """Return a parser of a part of the script, one level deeper."""
        inner = Reader(text)
        inner._depth, inner._parts = self._depth, self._parts
        inner._deeper()
        return inner

    # Words

    def _word(self) -> Reading[Word | None]:
        self._blanks()
        parts: list[tuple[Part, bool]] = []
        while self.at < len(self.text):
            here = self.text[self.at]
            if here in " \t\r\n;&|()<>":
                break
            self._pieces += 1
            if not self._pieces % _PIECES_A_TURN:
                yield Ask.TURN
            if not (yield from self._quotation(parts)):
                if here in "$`":
                    parts.append(((yield from self._expansion()), False))
                else:
                    match = _PLAIN.match(self.text, self.at)
                    assert match is not None
                    parts.append((Text(match[0]), False))
                    self.at = match.end()
        return Word(tuple(parts)) if parts else None

    def _quotation(self, parts: list[tuple[Part, bool]]) -> Reading[bool]:
        """Parse a quotation at this position into `parts`. Return False if there is none."""
        here = self.text[self.at]
        if here == "'":
            end = yield from self._find("'", self.at + 1, "unterminated quoted string")
            parts.append((Text(self.text[self.at + 1 : end]), True))
            self.at = end + 1
        elif here == '"':
            self.at += 1
            parts += yield from self._quoted(_QUOTED, '"')
        elif here == "\\":
            escaped = self.text[self.at + 1 : self.at + 2]
            if escaped == "\n":
                self.at += 2
                if self.at >= len(self.text):
                    yield from self._read_more()
                return True
            parts.append((Text(escaped), True))
            self.at += 2
        else:
            return False
        return True

    def _quoted(self, plain: re.Pattern[str], end: str) -> Reading[list[tuple[Part, bool]]]:
        """Parse text with expansions up to the character `end`, or up to the end of the text if it is empty."""
        parts: list[tuple[Part, bool]] = []
        text: list[str] = []
        while True:
            if self.at >= len(self.text) and not (yield from self._read_more()):
                if end:
                    raise ShellSyntaxError("unterminated quoted string")
                parts.append((Text("".join(text)), True))
                return parts
            here = self.text[self.at]
            if here in "$`" or here == end:
                parts.append((Text("".join(text)), True))
                text.clear()
                if here == end:
                    self.at += 1
                    return parts
                yield from self._part()
                parts.append(((yield from self._expansion()), True))
            elif here == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                kept = following not in ("$", "`", "\\", "\n", end or "$")
                text.append(here + following if kept else following.removesuffix("\n"))
                self.at += 2
                if not len(text) % _ESCAPES_A_TURN:
                    yield Ask.TURN
            else:
                match = plain.match(self.text, self.at)
                assert match is not None
                text.append(match[0])
                self.at = match.end()

    def _expansion(self) -> Reading[Part]:
        text = self.text
        if text[self.at] == "`":
            end = yield from self._find("`", self.at + 1, "unterminated quoted string")
            inner = self._within(self.text[self.at + 1 : end])
            self.at = end + 1
            script = yield from inner.whole()
            self._parts = inner._parts
            return Output(script)
        if text.startswith("$((", self.at):
            end = yield from self._find("))", self.at + 3, _UNFINISHED % "))")
            expression, self.at = self.text[self.at + 3 : end], end + 2
            return Arithmetic(expression)
        if text.startswith("$(", self.at):
            self.at += 2
            return Output((yield from self._script_before(")")))
        if text.startswith("${", self.at):
            return (yield from self._braced())
        match = _NAME.match(text, self.at + 1)
        if match is not None:
            self.at = match.end()
            return Variable(match[0])
        special = text[self.at + 1 : self.at + 2]
        if special and (special in "?$#@*!" or is_digits(special)):
            self.at += 2
            return Variable(special)
        self.at += 1
        return Text("$")

    def _braced(self) -> Reading[Variable]:
        """Parse `${NAME}`, with or without an operator and a word."""
        start = self.at + 2
        yield from self._find("}", start, _UNFINISHED % "}")
        text = self.text
        length = text[start : start + 1] == "#" and text[start + 1 : start + 2] != "}"
        match = _PARAMETER.match(text, start + length)
        if match is None:
            raise ShellSyntaxError("bad substitution")
        self.at = match.end()
        if text[self.at : self.at + 1] == "}":
            self.at += 1
            return Variable(match[0], "length" if length else "")
        operator = None if length else _EXPANSION.match(text, self.at)
        if operator is None:
            raise ShellSyntaxError("bad substitution")
        self.at = operator.end()
        self._deeper()
        word = yield from self._default()
        self._depth -= 1
        return Variable(match[0], operator[0], word)

    def _default(self) -> Reading[Word]:
        """Parse the word in a braced variable, and the brace after it."""
        parts: list[tuple[Part, bool]] = []
        while True:
            if self.at >= len(self.text) and not (yield from self._read_more()):
                raise ShellSyntaxError(_UNFINISHED % "}")
            here = self.text[self.at]
            if here == "}":
                self.at += 1
                return Word(tuple(parts))
            self._pieces += 1
            if not self._pieces % _PIECES_A_TURN:
                yield Ask.TURN
            if not (yield from self._quotation(parts)):
                yield from self._part()
                if here in "$`":
                    parts.append(((yield from self._expansion()), False))
                else:
                    match = _OF_DEFAULT.match(self.text, self.at)
                    assert match is not None
                    parts.append((Text(match[0]), False))
                    self.at = match.end()
