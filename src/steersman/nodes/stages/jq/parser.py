"""Parser of jq expressions, which returns a filter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from steersman.net.ascii import is_digits
from steersman.nodes.stages.jq import filters, values
from steersman.nodes.stages.jq.filters import Filter, Function, identity, literal
from steersman.nodes.stages.jq.lexer import END, ExpressionError, Token, tokens_of
from steersman.nodes.stages.jq.values import Run, Value

Native = Callable[..., Filter]
"""Function that returns the filter of a call from the filters of its arguments."""
Formats = Mapping[str, Callable[[Run, Value], str]]

_MOST_DEPTH: Final = 64
_EXACT_DIGITS: Final = 19
_ARITHMETIC: Final = (
    {"+": values.add, "-": values.subtract},
    {"*": values.multiply, "/": values.divide, "%": values.modulo},
)
_COMPARISONS: Final[dict[str, Callable[[int], bool]]] = {
    "==": lambda order: order == 0,
    "!=": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}
_ASSIGNMENTS: Final = frozenset({"=", "|=", "+=", "-=", "*=", "/=", "%=", "//="})


def parse(source: str, natives: Mapping[str, Native], formats: Formats, known: Sequence[str] = ()) -> Filter:
    """Return the filter of an expression that may use functions, given by `NAME/ARITY`. Raises ExpressionError.

    `natives` build filters themselves; functions of `known` are in the scope of the evaluation.
    """
    parser = _Parser(tokens_of(source), natives, formats, known)
    found = parser.pipe()
    parser.expect_end()
    return found


def parse_definitions(source: str, natives: Mapping[str, Native], formats: Formats) -> list[Function]:
    """Return the functions that a text defines. Raises ExpressionError."""
    parser = _Parser(tokens_of(source), natives, formats, ())
    found: list[Function] = []
    while not parser.is_at_end:
        found.append(parser.definition())
        parser.define(found[-1].name)
    return found


class _Parser:
    """Parser of one text. Each method parses what its name says, and returns its filter."""

    def __init__(self, tokens: list[Token], natives: Mapping[str, Native], formats: Formats, known: Sequence[str]):
        self._tokens = tokens
        self._at = 0
        self._natives = natives
        self._formats = formats
        self._names = list(known)
        """Variables and functions in scope."""
        self._depth = 0

    # Tokens

    @property
    def _token(self) -> Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else END

    @property
    def is_at_end(self) -> bool:
        """True if no token is left."""
        return self._at >= len(self._tokens)

    def _take(self, *texts: str) -> str:
        """Take the next token if it is an operator or keyword of these, and return its text; "" if it is none."""
        token = self._token
        if token.kind in ("operator", "keyword") and token.text in texts:
            self._at += 1
            return token.text
        return ""

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._unexpected(f", expecting {text!r}")

    def expect_end(self) -> None:
        """Raise ExpressionError if a token is left."""
        if not self.is_at_end:
            raise self._unexpected()

    def _unexpected(self, more: str = "") -> ExpressionError:
        what = "end of the expression" if self.is_at_end else repr(self._token.text)
        return ExpressionError(f"syntax error, unexpected {what}{more}")

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise ExpressionError("syntax error, expressions nest too deeply")
        yield
        self._depth -= 1

    @contextmanager
    def _with_names(self, *names: str) -> Iterator[None]:
        before = len(self._names)
        self._names.extend(names)
        yield
        del self._names[before:]

    def define(self, name: str) -> None:
        """Add a function to the scope."""
        self._names.append(name)

    # Operators, from those that bind least

    def pipe(self) -> Filter:
        """Parse a whole expression."""
        with self._deeper():
            if self._token == Token("keyword", "def"):
                function = self.definition()
                with self._with_names(function.name):
                    return filters.definition(function, self.pipe())
            first = self._comma()
            if self._take("as"):
                name = self._variable()
                self._expect("|")
                with self._with_names(name):
                    return filters.binding(first, name, self.pipe())
            return filters.pipe(first, self.pipe()) if self._take("|") else first

    def _comma(self) -> Filter:
        found = self._alternative()
        while self._take(","):
            found = filters.comma(found, self._alternative())
        return found

    def _alternative(self) -> Filter:
        found = self._or()
        if self._token.kind == "operator" and self._token.text in _ASSIGNMENTS:
            raise ExpressionError(f"{self._token.text}: assignments are not supported")
        if self._take("//"):
            with self._deeper():
                return filters.alternative(found, self._alternative())
        return found

    def _or(self) -> Filter:
        found = self._and()
        while self._take("or"):
            found = filters.logic(found, self._and(), absorbing=True)
        return found

    def _and(self) -> Filter:
        found = self._comparison()
        while self._take("and"):
            found = filters.logic(found, self._comparison(), absorbing=False)
        return found

    def _comparison(self) -> Filter:
        found = self._arithmetic(0)
        if operator := self._take(*_COMPARISONS):
            holds = _COMPARISONS[operator]
            found = filters.operation(
                lambda run, one, other: holds(values.compare(run, one, other)), found, self._arithmetic(0)
            )
        return found

    def _arithmetic(self, level: int) -> Filter:
        if level == len(_ARITHMETIC):
            return self._signed()
        found = self._arithmetic(level + 1)
        while operator := self._take(*_ARITHMETIC[level]):
            found = filters.operation(_ARITHMETIC[level][operator], found, self._arithmetic(level + 1))
        return found

    def _signed(self) -> Filter:
        if self._take("-"):
            with self._deeper():
                return filters.negation(self._signed())
        return self._postfix()

    # Terms

    def _postfix(self) -> Filter:
        found = self._term()
        while True:
            token = self._token
            if token.kind == "field":
                self._at += 1
                found = filters.field(found, token.text[1:])
            elif self._take("?"):
                found = filters.attempt(found, None)
            elif self._take("["):
                found = self._subscript(found)
            elif token == Token("operator", ".") and self._next_begins("["):
                self._at += 2
                found = self._subscript(found)
            elif token == Token("operator", ".") and self._next_is_string():
                self._at += 1
                found = filters.index(found, self._string(values.to_text))
            else:
                return found

    def _next_begins(self, text: str) -> bool:
        return self._tokens[self._at + 1 : self._at + 2] == [Token("operator", text)]

    def _next_is_string(self) -> bool:
        return any(each.kind == "string" for each in self._tokens[self._at + 1 : self._at + 2])

    def _subscript(self, target: Filter) -> Filter:
        if self._take("]"):
            return filters.iterate(target)
        begin = literal(None) if self._is_next(":") else self.pipe()
        if not self._take(":"):
            self._expect("]")
            return filters.index(target, begin)
        end = literal(None) if self._is_next("]") else self.pipe()
        self._expect("]")
        return filters.part(target, begin, end)

    def _is_next(self, operator: str) -> bool:
        return self._token == Token("operator", operator)

    def _term(self) -> Filter:
        token = self._token
        match token.kind:
            case "number":
                self._at += 1
                return literal(_number(token.text))
            case "string":
                return self._string(values.to_text)
            case "format":
                self._at += 1
                return self._format(token.text)
            case "field":
                self._at += 1
                return filters.field(identity, token.text[1:])
            case "variable":
                return self._variable_value()
            case "name":
                self._at += 1
                return self._call(token.text)
        with self._deeper():
            return self._compound()

    def _compound(self) -> Filter:
        taken = self._take(".", "..", "(", "[", "{", "if", "try", "reduce", "foreach", "label", "import", "include")
        match taken:
            case ".":
                if self._token.kind == "string":
                    return filters.index(identity, self._string(values.to_text))
                return self._subscript(identity) if self._take("[") else identity
            case "..":
                return self._call("recurse")
            case "(":
                found = self.pipe()
                self._expect(")")
                return found
            case "[":
                if self._take("]"):
                    return literal([])
                found = self.pipe()
                self._expect("]")
                return filters.array(found)
            case "{":
                return self._object()
            case "if":
                return self._if()
            case "try":
                tried = self._postfix()
                return filters.attempt(tried, self._postfix() if self._take("catch") else None)
            case "reduce" | "foreach":
                return self._fold(taken)
        if taken:
            raise ExpressionError(f"{taken} is not supported")
        raise self._unexpected()

    def _if(self) -> Filter:
        test = self.pipe()
        self._expect("then")
        then = self.pipe()
        if self._take("elif"):
            with self._deeper():
                return filters.condition(test, then, self._if())
        other = self.pipe() if self._take("else") else identity
        self._expect("end")
        return filters.condition(test, then, other)

    def _fold(self, keyword: str) -> Filter:
        source = self._postfix()
        self._expect("as")
        name = self._variable()
        self._expect("(")
        initial = self.pipe()
        self._expect(";")
        with self._with_names(name):
            update = self.pipe()
            extract = self.pipe() if keyword == "foreach" and self._take(";") else identity
        self._expect(")")
        if keyword == "reduce":
            return filters.reduction(source, name, initial, update)
        return filters.steps(source, name, initial, update, extract)

    def _object(self) -> Filter:
        members: list[tuple[Filter, Filter]] = []
        while not self._take("}"):
            members.append(self._member())
            if not self._take(","):
                self._expect("}")
                break
        return filters.new_object(members)

    def _member(self) -> tuple[Filter, Filter]:
        token = self._token
        if token.kind == "variable":
            return literal(token.text[1:]), self._variable_value()
        if token.kind == "string":
            key = self._string(values.to_text)
        elif self._take("("):
            key = self.pipe()
            self._expect(")")
            self._expect(":")
            return key, self._member_value()
        elif token.kind in ("name", "keyword", "number"):
            self._at += 1
            key = literal(token.text)
        else:
            raise self._unexpected()
        return key, self._member_value() if self._take(":") else filters.index(identity, key)

    def _member_value(self) -> Filter:
        with self._deeper():
            found = self._or()
            return filters.pipe(found, self._member_value()) if self._take("|") else found

    def _string(self, format_: Callable[[Run, Value], str]) -> Filter:
        parts: list[str | Filter] = []
        token = self._token
        self._at += 1
        for each in token.parts:
            if isinstance(each, str):
                parts.append(each)
                continue
            inside = _Parser(each, self._natives, self._formats, self._names)
            inside._depth = self._depth
            parts.append(inside.pipe())
            inside.expect_end()
        if all(isinstance(each, str) for each in parts):
            return literal("".join(map(str, parts)))
        return filters.text(parts, format_)

    def _format(self, name: str) -> Filter:
        format_ = self._formats.get(name)
        if format_ is None:
            raise ExpressionError(f"{name} is not a valid format")
        if self._token.kind == "string":
            return self._string(format_)
        return filters.text([identity], format_)

    def _variable(self) -> str:
        token = self._token
        if token.kind != "variable":
            if token.text in ("[", "{"):
                raise ExpressionError("destructuring is not supported")
            raise self._unexpected(", expecting a variable")
        self._at += 1
        return token.text

    def _variable_value(self) -> Filter:
        name = self._variable()
        if name in self._names:
            return filters.variable(name)
        if name == "$ENV":
            return literal({})
        raise ExpressionError(f"{name} is not defined")

    def _call(self, name: str) -> Filter:
        arguments: list[Filter] = []
        if self._take("("):
            arguments.append(self.pipe())
            while self._take(";"):
                arguments.append(self.pipe())
            self._expect(")")
        full = f"{name}/{len(arguments)}"
        if full in self._names:
            return filters.call(full, arguments)
        native = self._natives.get(full)
        if native is None:
            raise ExpressionError(f"{full} is not defined")
        return native(*arguments)

    def definition(self) -> Function:
        """Parse a definition of a function."""
        self._expect("def")
        token = self._token
        if token.kind != "name":
            raise self._unexpected()
        self._at += 1
        parameters: list[str] = []
        if self._take("("):
            while True:
                if self._token.kind not in ("name", "variable"):
                    raise self._unexpected()
                parameters.append(self._token.text)
                self._at += 1
                if not self._take(";"):
                    break
            self._expect(")")
        self._expect(":")
        name = f"{token.text}/{len(parameters)}"
        inside = [f"{each.removeprefix('$')}/0" for each in parameters] + [e for e in parameters if e[0] == "$"]
        with self._with_names(name, *inside):
            body = self.pipe()
        self._expect(";")
        return Function(name, parameters, body)


def _number(text: str) -> Value:
    return int(text) if is_digits(text) and len(text) < _EXACT_DIGITS else values.number(float(text))
