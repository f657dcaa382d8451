"""The whole program: errors of all commands are printed as one line of the same form."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import click

from steersman.cli.in_order import InOrder
from steersman.machinery.suggestions import did_you_mean, not_allowed_message
from steersman.work.patterns import late_pattern

_NAME = "steersman"
_COMPLETION = "_STEERSMAN_COMPLETE"
"""Environment variable that shells set for completion."""
_FAILED = 1
_CHOICE = late_pattern("'([^']*)' is not one of ")
_BELOW = late_pattern(r"(\S+) is not in the range x>=(\d+)\.")
_FURTHER = late_pattern(r"Got unexpected extra arguments? \((\S*)[ )]")
INTERRUPTED = 130
"""Exit status after SIGINT, by the convention of shells."""
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Program(InOrder):
    """A group whose errors are one line, `steersman: ERROR`, with a hint at --help for usage errors."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        if _COMPLETION in os.environ:
            from steersman.cli.completion import know_bash

            know_bash()
        try:
            status = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)  # a group without a subcommand prints its help
            sys.exit(_FAILED)
        except click.ClickException as error:
            fail_with(_FAILED, message_of(error))
        except click.Abort:
            fail_with(INTERRUPTED, "interrupted")
        except OSError as error:
            if not is_of_output(error):
                raise
            fail_with(_FAILED, str(error))
        sys.exit(status if isinstance(status, int) else 0)


def is_of_output(error: OSError) -> bool:
    """Return True for an error that says that there is no space for a command's output."""
    return error.errno in _NO_SPACE


def fail(text: str, *, program: str = _NAME) -> NoReturn:
    """Print an error as one line and exit with 1."""
    fail_with(_FAILED, " ".join(text.split()), program=program)


def fail_with(code: int, text: str, *, program: str = _NAME) -> NoReturn:
    """Print a line on the standard error, and exit with `code`."""
    click.echo(f"{program}: {text}", err=True)
    sys.exit(code)


def message_of(error: click.ClickException) -> str:
    """Return an error as one line."""
    text = " ".join(_words_of(error).split())
    context = error.ctx if isinstance(error, click.UsageError) else None
    return text if context is None else f"{text}; see `{context.command_path} --help`"


def _words_of(error: click.ClickException) -> str:
    if isinstance(error, click.NoSuchCommand):
        known = list(error.ctx.command.commands) if error.ctx and isinstance(error.ctx.command, click.Group) else []
        return f"unknown command {error.command_name!r}{did_you_mean(error.command_name, known)}"
    if isinstance(error, click.NoSuchOption):
        options = error.ctx.command.get_params(error.ctx) if error.ctx else []
        known = [name.lstrip("-") for each in options for name in each.opts if name.startswith("-")]
        name = error.option_name.lstrip("-")
        return f"unknown flag: {error.option_name}{did_you_mean(name, known, '--')}"
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return f"{_shown(error.param)} is needed"
    if isinstance(error, click.BadParameter) and error.param is not None:
        chosen = _CHOICE.match(error.message)
        if chosen is not None and isinstance(error.param.type, click.Choice):
            return f"{_shown(error.param)}: {not_allowed_message(chosen[1], map(str, error.param.type.choices))}"
        below = _BELOW.match(error.message)
        if below is not None:
            return f"{_shown(error.param)}: {below[1]} is less than {below[2]}"
        said = (
            _lowered(error.message)
            .replace("valid integer range", "whole number")
            .replace("valid float range", "number")
        )
        return f"{_shown(error.param)}: {said}"
    further = _FURTHER.match(error.format_message())
    if further is not None:
        return f"unexpected argument {further[1]!r}"
    return _lowered(error.format_message())


def _shown(parameter: click.Parameter) -> str:
    """Return the name of a parameter on the command line."""
    if isinstance(parameter, click.Option):
        return parameter.opts[0]
    return parameter.metavar or (parameter.name or "").upper()


def _lowered(text: str) -> str:
    """Return a sentence as part of a line: first letter in lower case, no full stop."""
    text = text.removesuffix(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
