"""Parsing CEL's text to a syntax tree (CEL language definition, "Syntax"), with macros expanded.

This parser is for valid text. The errors of other text are found by `syntax`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Final

from steersman.cel import lexer
from steersman.cel.ast import (
    NO_OFFSET,
    Call,
    CreateList,
    CreateMap,
    CreateStruct,
    Entry,
    Expr,
    FieldInit,
    Ident,
    Literal,
    Operator,
    Select,
    TooLarge,
    Unspecified,
)
from steersman.cel.errors import Errors
from steersman.cel.lexer import EOF, ESC_IDENTIFIER, IDENTIFIER, NUM_FLOAT, NUM_INT, SYMBOLS, Token, tokenize
from steersman.cel.literals import LiteralError, read_bytes, read_double, read_int, read_string, read_uint
from steersman.cel.macros import Macro, MacroError, MacroKey, expand
from steersman.cel.syntax import MISSING, StopReading, SyntaxErrors, explain
from steersman.cel.values import UInt

MAX_CODE_POINTS: Final = 100_000
MAX_DEPTH: Final = 250
"""The maximum nesting depth of each rule of the grammar."""

RESERVED: Final = frozenset(
    {
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    }
)
"""Names that may be fields but not variables."""

_LBRACKET, _RBRACKET, _LBRACE, _RBRACE = SYMBOLS["["], SYMBOLS["]"], SYMBOLS["{"], SYMBOLS["}"]
_LPAREN, _RPAREN, _DOT, _COMMA = SYMBOLS["("], SYMBOLS[")"], SYMBOLS["."], SYMBOLS[","]
_MINUS, _NOT, _QUESTION, _COLON = SYMBOLS["-"], SYMBOLS["!"], SYMBOLS["?"], SYMBOLS[":"]
_AND, _OR = SYMBOLS["&&"], SYMBOLS["||"]

_RELATIONS: Final = {
    SYMBOLS["<"]: Operator.LESS,
    SYMBOLS["<="]: Operator.LESS_EQUALS,
    SYMBOLS[">="]: Operator.GREATER_EQUALS,
    SYMBOLS[">"]: Operator.GREATER,
    SYMBOLS["=="]: Operator.EQUALS,
    SYMBOLS["!="]: Operator.NOT_EQUALS,
    SYMBOLS["in"]: Operator.IN,
}
_PRODUCTS: Final = {
    SYMBOLS["*"]: Operator.MULTIPLY,
    SYMBOLS["/"]: Operator.DIVIDE,
    SYMBOLS["%"]: Operator.MODULO,
}
_SUMS: Final = {SYMBOLS["+"]: Operator.ADD, _MINUS: Operator.SUBTRACT}


class _SyntaxError(Exception):
    """The text does not follow the grammar."""


class _TooDeep(Exception):
    """The text is nested too deeply."""

    def __init__(self, message: str = f"expression recursion limit exceeded: {MAX_DEPTH}") -> None:
        super().__init__(message)


def parse(text: str, macros: Mapping[MacroKey, Macro], errors: Errors) -> Expr:
    """Return the tree of an expression, which can only be used if nothing was reported to `errors`."""
    if len(text) > MAX_CODE_POINTS:
        errors.report(
            NO_OFFSET, f"expression code point size exceeds limit: size: {len(text)}, limit {MAX_CODE_POINTS}"
        )
        return Unspecified(NO_OFFSET)
    found: list[tuple[int, str]] = []
    syntax_errors = SyntaxErrors(errors.report)
    tree: Expr = Unspecified(NO_OFFSET)
    try:
        tokens, unknown = tokenize(text, syntax_errors.report)
        try:
            tree = _Parser(tokens, macros, found).parse()
        except _SyntaxError:
            repaired = explain(_blanked(text, unknown), tokens, MAX_DEPTH, syntax_errors)
            found = [(offset, "unsupported ident kind") for offset in repaired.unnamed]
            # Other errors are also reported, as far as the text can be parsed.
            with contextlib.suppress(_SyntaxError):
                _Parser([*repaired.tokens, tokens[-1]], macros, found).parse()
    except _TooDeep as error:
        errors.report(NO_OFFSET, str(error))
    except TooLarge:
        errors.report(NO_OFFSET, "expression is too large")
    except StopReading:
        return tree
    else:
        for offset, message in found:
            errors.report(offset, message)
    return tree


def _blanked(text: str, unknown: list[tuple[int, int]]) -> str:
    """Return the text with unrecognized characters marked for omission from messages. Offsets do not change."""
    for start, end in unknown:
        text = text[:start] + MISSING * (end - start) + text[end:]
    return text


class _Parser:
    """A single pass over the tokens, with a method for each rule of the grammar."""

    def __init__(self, tokens: list[Token], macros: Mapping[MacroKey, Macro], found: list[tuple[int, str]]) -> None:
        self._tokens = tokens
        self._macros = macros
        self._found = found
        self._position = 0
        self._kind = tokens[0].kind
        self._has_braces = any(token.kind == _LBRACE for token in tokens)
        self._expression_depth = 0
        self._relation_depth = 0
        self._calc_depth = 0
        self._member_depth = 0
        self._height = 0
        """The height of the tree of the last operand: how many operators are nested in it."""
        self._is_too_high = False

    def parse(self) -> Expr:
        tree = self._expression()
        if self._kind != EOF:
            raise _SyntaxError
        if self._is_too_high:
            raise _TooDeep("max recursion depth exceeded")
        return tree

    def _next(self) -> Token:
        """Consume a token."""
        token = self._tokens[self._position]
        self._position += 1
        self._kind = self._tokens[self._position].kind if token.kind != EOF else EOF
        return token

    def _expect(self, kind: int) -> Token:
        if self._kind != kind:
            raise _SyntaxError
        return self._next()

    def _error(self, offset: int, message: str) -> Expr:
        self._found.append((offset, message))
        return Unspecified(offset)

    def _nested(self, *heights: int) -> None:
        """Record the height of the tree of an operator and its operands."""
        self._height = max(heights) + 1
        if self._height > MAX_DEPTH:
            self._is_too_high = True

    def _expression(self) -> Expr:
        self._expression_depth += 1
        if self._expression_depth > MAX_DEPTH:
            raise _TooDeep
        result = self._or()
        if self._kind == _QUESTION:
            condition_height = self._height
            operator = self._next()
            when_true = self._or()
            true_height = self._height
            self._expect(_COLON)
            when_false = self._expression()
            self._nested(condition_height, true_height, self._height)
            result = Call(operator.offset, Operator.CONDITIONAL, None, [result, when_true, when_false])
        self._expression_depth -= 1
        return result

    def _or(self) -> Expr:
        first = self._and()
        return first if self._kind != _OR else self._junction(first, _OR, Operator.OR, self._and)

    def _and(self) -> Expr:
        first = self._relation()
        return first if self._kind != _AND else self._junction(first, _AND, Operator.AND, self._relation)

    def _junction(self, first: Expr, kind: int, operator: str, term: Callable[[], Expr]) -> Expr:
        """Parse the terms after the first one, each behind the operator's token."""
        terms, offsets, height = [first], [], self._height
        while self._kind == kind:
            offsets.append(self._next().offset)
            terms.append(term())
            height = max(height, self._height)
        self._height = height
        return _balanced(operator, terms, offsets, 0, len(offsets) - 1)

    def _relation(self) -> Expr:
        self._relation_depth += 1
        if self._relation_depth > MAX_DEPTH:
            raise _TooDeep
        result = self._calc(0)
        while (function := _RELATIONS.get(self._kind)) is not None:
            height = self._height
            operator = self._next()
            # In the grammar, the right side is another relation.
            self._relation_depth += 1
            if self._relation_depth > MAX_DEPTH:
                raise _TooDeep
            right = self._calc(0)
            self._relation_depth -= 1
            self._nested(height, self._height)
            result = Call(operator.offset, function, None, [result, right])
        self._relation_depth -= 1
        return result

    def _calc(self, strength: int) -> Expr:
        """Parse operands and operators with a higher precedence than `strength`."""
        self._calc_depth += 1
        if self._calc_depth > MAX_DEPTH:
            raise _TooDeep
        result = self._unary()
        while True:
            function = _PRODUCTS.get(self._kind)
            own = 2
            if function is None and strength < 1:
                function = _SUMS.get(self._kind)
                own = 1
            if function is None or own <= strength:
                break
            height = self._height
            operator = self._next()
            right = self._calc(own)
            self._nested(height, self._height)
            result = Call(operator.offset, function, None, [result, right])
        self._calc_depth -= 1
        return result

    def _unary(self) -> Expr:
        kind = self._kind
        if kind == _NOT:
            return self._repeated(_NOT, Operator.NOT)
        if kind == _MINUS and self._tokens[self._position + 1].kind not in (NUM_INT, NUM_FLOAT):
            return self._repeated(_MINUS, Operator.NEGATE)
        return self._member()

    def _repeated(self, kind: int, function: str) -> Expr:
        first = self._next()
        count = 1
        while self._kind == kind:
            self._next()
            count += 1
        operand = self._member()
        # An even number of signs cancels out. If a number follows, the last sign is then not a part of it.
        return operand if count % 2 == 0 else Call(first.offset, function, None, [operand])

    def _member(self) -> Expr:
        self._member_depth += 1
        if self._member_depth > MAX_DEPTH:
            raise _TooDeep
        result = self._primary()
        while True:
            kind = self._kind
            if kind == _DOT:
                result = self._selection(result)
            elif kind == _LBRACKET:
                height = self._height
                bracket = self._next()
                function = Operator.INDEX
                if self._kind == _QUESTION:
                    self._next()
                    function = Operator.OPTIONAL_INDEX
                index = self._expression()
                self._expect(_RBRACKET)
                self._nested(height, self._height)
                result = Call(bracket.offset, function, None, [result, index])
            else:
                break
        self._member_depth -= 1
        return result

    def _selection(self, operand: Expr) -> Expr:
        height = self._height
        dot = self._next()
        optional = self._kind == _QUESTION
        if optional:
            self._next()
        if self._kind == IDENTIFIER:
            name = self._next()
            if self._kind == _LPAREN and not optional:
                paren = self._next()
                arguments = self._arguments()
                self._nested(height, self._height)
                return self._call(paren.offset, name.text, operand, arguments)
            field = name.text
        elif self._kind == ESC_IDENTIFIER:
            name = self._next()
            field = name.text
            self._error(name.offset, "unsupported syntax: '`'")
        else:
            raise _SyntaxError
        self._nested(height)
        if optional:
            return Call(dot.offset, Operator.OPTIONAL_SELECT, None, [operand, Literal(name.offset, field)])
        return Select(dot.offset, operand, field)

    def _primary(self) -> Expr:
        kind = self._kind
        self._height = 0
        if kind in (IDENTIFIER, _DOT):
            return self._named()
        if kind == _LPAREN:
            self._next()
            inner = self._expression()
            self._expect(_RPAREN)
            return inner
        if kind == _LBRACKET:
            return self._list()
        if kind == _LBRACE:
            return self._map()
        if kind == lexer.OPERAND:
            return Unspecified(self._next().offset)
        return self._literal()

    def _named(self) -> Expr:
        """Parse a variable, a call or an object."""
        start = self._tokens[self._position].offset
        leading = ""
        if self._kind == _DOT:
            self._next()
            leading = "."
        if self._kind != IDENTIFIER:
            raise _SyntaxError
        if self._has_braces and (length := self._type_name_length()):
            names = [self._next().text for _ in range(length)]
            return self._struct(leading + "".join(names))
        name = self._next()
        is_call = self._kind == _LPAREN
        if name.text in RESERVED:
            if is_call:
                self._next()
                self._arguments()
            return self._error(start, f"reserved identifier: {name.text}")
        if is_call:
            paren = self._next()
            return self._call(paren.offset, leading + name.text, None, self._arguments())
        return Ident(name.offset, leading + name.text)

    def _type_name_length(self) -> int:
        """Return the number of tokens of a type name that is followed by a brace; 0 if there is none."""
        position = self._position + 1
        while self._tokens[position].kind == _DOT and self._tokens[position + 1].kind == IDENTIFIER:
            position += 2
        return position - self._position if self._tokens[position].kind == _LBRACE else 0

    def _arguments(self) -> list[Expr]:
        """Parse arguments up to the closing parenthesis."""
        arguments: list[Expr] = []
        height = self._height = 0
        if self._kind != _RPAREN:
            arguments.append(self._expression())
            height = self._height
            while self._kind == _COMMA:
                self._next()
                arguments.append(self._expression())
                height = max(height, self._height)
        self._expect(_RPAREN)
        self._height = height
        return arguments

    def _list(self) -> Expr:
        bracket = self._next()
        elements: list[Expr] = []
        optional = set()
        height = 0
        if self._kind not in (_RBRACKET, _COMMA):
            while True:
                if self._kind == _QUESTION:
                    self._next()
                    optional.add(len(elements))
                elements.append(self._expression())
                height = max(height, self._height)
                if not self._more(_RBRACKET):
                    break
        elif self._kind == _COMMA:
            self._next()
        self._expect(_RBRACKET)
        self._height = height
        return CreateList(bracket.offset, elements, frozenset(optional))

    def _more(self, closing: int) -> bool:
        """Consume a comma, and return whether another element follows. One comma is permitted before the end."""
        if self._kind != _COMMA:
            return False
        self._next()
        return self._kind != closing

    def _map(self) -> Expr:
        brace = self._next()
        entries: list[Entry] = []
        height = 0
        if self._kind not in (_RBRACE, _COMMA):
            while True:
                optional = self._kind == _QUESTION
                if optional:
                    self._next()
                key = self._expression()
                height = max(height, self._height)
                colon = self._expect(_COLON)
                entries.append(Entry(colon.offset, key, self._expression(), optional))
                height = max(height, self._height)
                if not self._more(_RBRACE):
                    break
        elif self._kind == _COMMA:
            self._next()
        self._expect(_RBRACE)
        self._height = height
        return CreateMap(brace.offset, entries)

    def _struct(self, type_name: str) -> Expr:
        brace = self._expect(_LBRACE)
        fields: list[FieldInit] = []
        start = self._tokens[self._position].offset
        height = 0
        if self._kind not in (_RBRACE, _COMMA):
            while True:
                optional = self._kind == _QUESTION
                if optional:
                    self._next()
                if self._kind not in (IDENTIFIER, ESC_IDENTIFIER):
                    raise _SyntaxError
                name = self._next()
                if name.kind == ESC_IDENTIFIER:
                    # As in the reference implementation, the error is at the first of all fields.
                    self._error(start, "unsupported syntax: '`'")
                colon = self._expect(_COLON)
                fields.append(FieldInit(colon.offset, name.text, self._expression(), optional))
                height = max(height, self._height)
                if not self._more(_RBRACE):
                    break
        elif self._kind == _COMMA:
            self._next()
        self._expect(_RBRACE)
        self._height = height
        return CreateStruct(brace.offset, type_name, fields)

    def _literal(self) -> Expr:
        token = self._next()
        try:
            match token.kind:
                case lexer.MINUS:  # Here a minus is the sign of a number.
                    number = self._next()
                    if number.kind == NUM_INT:
                        return Literal(token.offset, read_int("-" + number.text))
                    if number.kind == NUM_FLOAT:
                        return Literal(token.offset, read_double("-" + number.text))
                    raise _SyntaxError
                case lexer.STRING:
                    return Literal(token.offset, read_string(token.text))
                case lexer.NUM_INT:
                    return Literal(token.offset, read_int(token.text))
                case lexer.NUM_UINT:
                    return Literal(token.offset, UInt(read_uint(token.text)))
                case lexer.NUM_FLOAT:
                    return Literal(token.offset, read_double(token.text))
                case lexer.BYTES:
                    return Literal(token.offset, read_bytes(token.text))
                case lexer.TRUE | lexer.FALSE:
                    return Literal(token.offset, token.kind == lexer.TRUE)
                case lexer.NULL:
                    return Literal(token.offset, None)
        except LiteralError as error:
            return self._error(token.offset, str(error))
        raise _SyntaxError

    def _call(self, offset: int, function: str, target: Expr | None, arguments: list[Expr]) -> Expr:
        try:
            expanded = expand(self._macros, offset, function, target, arguments)
        except MacroError as error:
            return self._error(error.offset, error.message)
        return Call(offset, function, target, arguments) if expanded is None else expanded


def _balanced(function: str, terms: list[Expr], offsets: list[int], low: int, high: int) -> Expr:
    """Return a balanced tree of many terms of one logical operator."""
    middle = (low + high + 1) // 2
    left = terms[middle] if middle == low else _balanced(function, terms, offsets, low, middle - 1)
    right = terms[middle + 1] if middle == high else _balanced(function, terms, offsets, middle + 1, high)
    return Call(offsets[middle], function, None, [left, right])
