"""Commands whose exit code 1 is a verdict: other failures exit with 2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from steersman.cli.program import fail_with, is_of_output, message_of

NO_VERDICT: Final = 2
"""Exit code of a command that has come to no verdict."""


class VerdictCommand(click.Command):
    """Command that exits with 2 for usage errors, and if its output cannot be written."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Exits with 2 for a usage error, and for output that cannot be written."""
        with _failures():
            return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Exits with 2 for a usage error."""
        with _failures():
            return super().parse_args(ctx, args)


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        fail_with(NO_VERDICT, message_of(error))
    except OSError as error:
        if not is_of_output(error):
            raise
        fail_with(NO_VERDICT, str(error))
