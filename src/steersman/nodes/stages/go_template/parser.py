"""Parser of templates (text/template/parse `parse.go`)."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, NoReturn

from steersman.machinery.errors.field import quote
from steersman.nodes.stages.go_template import syntax
from steersman.nodes.stages.go_template.lexer import Lexeme, Token, lexemes
from steersman.nodes.stages.go_template.syntax import Nodes, Operand, Pipeline
from steersman.nodes.stages.go_template.values import TemplateError
from steersman.work.patterns import late_pattern

_MOST_NESTED: Final = 100
"""Depth of nested actions and parentheses."""
_BRANCHES: Final = ("if", "with", "range")
_ESCAPE: Final = late_pattern(
    r"""\\(?:([abfnrtv\\'"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|.)"""
)
_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CONSTANTS: Final[dict[str, Operand]] = {
    "true": syntax.Literal(True),
    "false": syntax.Literal(False),
    "nil": syntax.Nil(),
}


def parse(source: str, functions: Collection[str]) -> tuple[Nodes, dict[str, Nodes]]:
    """Parse a template. Return its nodes, and those of the templates that it defines, by name.

    Raises TemplateError for syntax errors and for unknown functions.
    """
    parser = _Parser(list(lexemes(source)), functions)
    nodes, end = parser.nodes(("EOF",))
    assert end == "EOF"
    return nodes, parser.defined


class _Parser:
    def __init__(self, tokens: list[Lexeme], functions: Collection[str]) -> None:
        self.defined: dict[str, Nodes] = {}
        self._tokens = tokens
        self._at = 0
        self._functions = functions
        self._variables = ["$"]
        self._loops = 0
        self._nested = 0

    # Tokens

    def _next(self) -> Lexeme:
        found = self._tokens[self._at]
        self._at += 1
        return found

    def _peek(self) -> Lexeme:
        return self._tokens[self._at]

    def _skip_space(self) -> Lexeme:
        """Skip spaces and return the next token, without consuming it."""
        while self._peek().token is Token.SPACE:
            self._at += 1
        return self._peek()

    def _fail(self, text: str) -> NoReturn:
        raise TemplateError(f"line {self._tokens[min(self._at, len(self._tokens) - 1)].line}: {text}")

    def _end(self, where: str) -> None:
        """Consume the end of an action."""
        found = self._skip_space()
        if found.token is not Token.END:
            self._fail(f"unexpected {quote(found.text)} in {where}")
        self._at += 1

    def _deeper(self) -> None:
        self._nested += 1
        if self._nested > _MOST_NESTED:
            self._fail("nested too deeply")

    # Nodes

    def nodes(self, ends: tuple[str, ...]) -> tuple[Nodes, str]:
        """Parse nodes up to one of the words `ends`, or EOF, and return the nodes and that word.

        Of `else` only the word is consumed, of other ends the whole action.
        """
        found: list[syntax.Node] = []
        self._deeper()
        while True:
            lexeme = self._next()
            if lexeme.token is Token.EOF:
                if "EOF" not in ends:
                    self._fail("unexpected EOF")
                word = "EOF"
                break
            if lexeme.token is Token.TEXT:
                found.append(syntax.Text(lexeme.text))
                continue
            first = self._skip_space()
            word = first.text if first.token is Token.WORD else ""
            if word in ends:
                self._at += 1
                if word != "else":
                    self._end(word)
                break
            node = self._action(word)
            if node is not None:
                found.append(node)
        self._nested -= 1
        return tuple(found), word

    def _action(self, word: str) -> syntax.Node | None:
        if word in ("else", "end"):
            self._fail(f"unexpected {{{{{word}}}}}")
        if word not in (*_BRANCHES, "define", "block", "template", "break", "continue"):
            pipeline = self._pipeline("command")
            self._end("command")
            return syntax.Action(pipeline)
        self._at += 1
        if word in _BRANCHES:
            return self._branch(word)
        if word in ("break", "continue"):
            if not self._loops:
                self._fail(f"{{{{{word}}}}} outside {{{{range}}}}")
            self._end(word)
            return syntax.Jump(word)
        return self._template(word)

    def _branch(self, word: str) -> syntax.Branch:
        known = len(self._variables)
        pipeline = self._pipeline(word)
        self._end(word)
        self._loops += word == "range"
        body, end = self.nodes(("else", "end"))
        self._loops -= word == "range"
        otherwise: Nodes = ()
        if end == "else":
            following = self._skip_space()
            if following.token is Token.WORD and following.text == word and word in ("if", "with"):
                self._at += 1
                otherwise = (self._branch(word),)
            else:
                self._end("else")
                otherwise, _ = self.nodes(("end",))
        del self._variables[known:]
        return syntax.Branch(word, pipeline, body, otherwise)

    def _template(self, word: str) -> syntax.Node | None:
        lexeme = self._skip_space()
        if lexeme.token is not Token.STRING:
            self._fail(f"unexpected {quote(lexeme.text)} in {word} clause")
        self._at += 1
        name = self._unquoted(lexeme.text)
        pipeline = None
        if word != "define" and self._skip_space().token is not Token.END:
            pipeline = self._pipeline(word)
        self._end(word)
        if word != "template":
            outer, self._variables = self._variables, ["$"]
            loops, self._loops = self._loops, 0
            self.defined[name], _ = self.nodes(("end",))
            self._variables, self._loops = outer, loops
        return None if word == "define" else syntax.Call(lexeme.line, name, pipeline)

    # Pipelines

    def _pipeline(self, where: str) -> Pipeline:
        line = self._skip_space().line
        variables, assigns = self._declared(where)
        commands: list[syntax.Command] = []
        while True:
            commands.append(self._command(where))
            if self._skip_space().text != "|" or self._peek().token is not Token.SYMBOL:
                break
            self._at += 1
        for command in commands[1:]:
            if isinstance(command[0], (syntax.Literal, syntax.Nil, syntax.Dot)):
                self._fail("non executable command in pipeline")
        if not assigns:
            self._variables += variables
        return Pipeline(line, tuple(commands), variables, assigns)

    def _declared(self, where: str) -> tuple[tuple[str, ...], bool]:
        """Parse the variables that a pipeline assigns to, two at most for `range`.

        Return them, and True for `=`, not `:=`.
        """
        begin = self._at
        names: list[str] = []
        while self._skip_space().token is Token.VARIABLE:
            names.append(self._next().text)
            sign = self._skip_space()
            if sign.token is Token.SYMBOL and sign.text in (":=", "="):
                self._at += 1
                if sign.text == "=":
                    for name in names:
                        self._known(name)
                return tuple(names), sign.text == "="
            if not (where == "range" and sign.text == "," and len(names) == 1):
                break
            self._at += 1
        self._at = begin
        return (), False

    def _command(self, where: str) -> syntax.Command:
        operands: list[Operand] = []
        while True:
            lexeme = self._skip_space()
            if lexeme.token is Token.END or (lexeme.token is Token.SYMBOL and lexeme.text in ("|", ")")):
                break
            operands.append(self._operand(where))
            following = self._peek()
            if following.token not in (Token.SPACE, Token.END) and following.text not in ("|", ")"):
                self._fail(f"unexpected {quote(following.text)} in operand")
        if not operands:
            self._fail(f"missing value for {where}")
        return tuple(operands)

    def _operand(self, where: str) -> Operand:
        found = self._term(where)
        names: list[str] = []
        while self._peek().token is Token.FIELD:
            names.append(self._next().text[1:])
        if not names:
            return found
        if isinstance(found, (syntax.Literal, syntax.Nil, syntax.Name)):
            self._fail(f"unexpected .{names[0]} behind a constant or function")
        if isinstance(found, syntax.Fields):
            return syntax.Fields(found.of, (*found.names, *names))
        return syntax.Fields(found, tuple(names))

    def _term(self, where: str) -> Operand:
        token, text, _ = self._next()
        if token is Token.FIELD:
            return syntax.Fields(syntax.Dot(), (text[1:],))
        if token is Token.VARIABLE:
            self._known(text)
            return syntax.Variable(text)
        if token is Token.WORD:
            return _CONSTANTS.get(text) or self._function(text)
        if token is Token.SYMBOL and text == ".":
            return syntax.Dot()
        if token is Token.SYMBOL and text == "(":
            return self._in_parentheses()
        if token not in (Token.STRING, Token.CHARACTER, Token.NUMBER):
            self._at -= 1
            self._fail(f"unexpected {quote(text)} in {where}")
        if token is Token.NUMBER:
            return syntax.Literal(self._number(text))
        said = self._unquoted(text)
        if token is Token.STRING:
            return syntax.Literal(said)
        if len(said) != 1:
            self._fail(f"malformed character constant: {text}")
        return syntax.Literal(ord(said))

    def _function(self, name: str) -> syntax.Name:
        if name not in self._functions:
            self._at -= 1
            self._fail(f"function {quote(name)} not defined")
        return syntax.Name(name)

    def _in_parentheses(self) -> Pipeline:
        self._deeper()
        pipeline = self._pipeline("parenthesized pipeline")
        if self._next().text != ")":
            self._fail("unclosed left paren")
        self._nested -= 1
        return pipeline

    def _known(self, name: str) -> None:
        if name not in self._variables:
            self._fail(f"undefined variable {quote(name)}")

    def _number(self, text: str) -> int | float:
        plain = text.replace("_", "")
        if re.fullmatch("[+-]?0[0-9]+", plain, re.ASCII) and ("8" in plain or "9" in plain):
            self._fail(f"bad number syntax: {quote(text)}")
        try:
            octal = re.fullmatch("[+-]?0[0-7]+", plain, re.ASCII)
            return int(plain, 8 if octal else 0)
        except ValueError:
            pass
        try:
            value = float(plain)
        except ValueError:
            self._fail(f"bad number syntax: {quote(text)}")
        return int(value) if value.is_integer() and abs(value) < 1 << 63 and "." not in plain else value

    def _unquoted(self, text: str) -> str:
        """Return the value of a quoted constant."""
        body = text[1:-1]
        if text[0] == "`":
            return body.replace("\r", "")
        data = bytearray()
        at = 0
        for found in _ESCAPE.finditer(body):
            data += body[at : found.start()].encode()
            at = found.end()
            simple, code, octal = found[1], found[2] or found[3] or found[4], found[5]
            if simple:
                data += _ESCAPED.get(simple, simple).encode()
            elif found[2] or octal:
                data.append(int(found[2], 16) if found[2] else int(octal, 8) & 0xFF)
            elif code and (number := int(code, 16)) < 0x110000 and not 0xD800 <= number < 0xE000:
                data += chr(number).encode()
            else:
                self._fail(f"invalid syntax: {text}")
        data += body[at:].encode()
        return data.decode(errors="replace")
