"""Groups of commands whose help lists commands in the order of their definition."""

from __future__ import annotations

from typing import Final

import click

_WHOLE: Final = 1000
"""Length in characters from which click shortens a sentence."""


class InOrder(click.Group):
    """Group that lists its commands in order, each with the whole first sentence of its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, each.get_short_help_str(_WHOLE)) for name, each in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
