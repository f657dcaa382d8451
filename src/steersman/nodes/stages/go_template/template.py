"""Template that is parsed once and rendered for any number of data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from steersman.nodes.stages.go_template.builtins import BUILTINS, LAZY, Function
from steersman.nodes.stages.go_template.evaluation import Evaluation
from steersman.nodes.stages.go_template.parser import parse
from steersman.nodes.stages.go_template.values import Number, TemplateError, Value
from steersman.work.offloading import expect_offloading

MOST_SOURCE: Final = 1 << 18
"""Characters of a template."""


class Template:
    """Parsed template that may call `functions` beside Go's own. `render` may replace functions of the same names."""

    def __init__(self, source: str, functions: Mapping[str, Function]) -> None:
        """Parse a template. Raises TemplateError."""
        if len(source) > MOST_SOURCE:
            raise TemplateError(f"a template of more than {MOST_SOURCE} characters")
        self._functions = {**BUILTINS, **functions}
        self._nodes, self._templates = parse(source, self._functions.keys() | LAZY)

    def render(self, data: Value, functions: Mapping[str, Function] | None = None) -> str:
        """Return the text for data, in bounded time and length. Raises TemplateError."""
        expect_offloading()
        return Evaluation(self._templates, {**self._functions, **(functions or {})}).run(self._nodes, data)


def data_of(text: str | bytes) -> Any:
    """Return the data of a JSON text, with numbers as json.Decoder's UseNumber leaves them. Raises ValueError."""
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number)
