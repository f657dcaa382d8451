"""Commands whose help shows their flags by section, in two columns, as kube-apiserver's does."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from steersman.controlplane.flag_readers import SHOWN, cipher_suites, file, folder, one_file, plugins
from steersman.controlplane.flags import Flag
from steersman.controlplane.options import FLAGS, SECTIONS, Options

_NAMES: Final = 0.36
"""Part of the width that is the column of names at most; what is longer has its line for itself."""
_ALL: Final = "steersman.all_flags"
"""Key under which a context keeps that help is to show all flags."""
_LONGEST: Final = 120
"""Columns of help on a terminal that has more."""


class Option(click.Option):
    """An option of a command's own; `section` is where help shows it."""

    def __init__(self, *arguments: Any, section: str = "Options", **attributes: Any) -> None:
        if not attributes.get("default"):
            attributes.setdefault("show_default", False)
        super().__init__(*arguments, **attributes)
        self.section = section

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Leave out the range, which the text says where it matters."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


class SectionedCommand(click.Command):
    """A command whose help shows its options by their sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The sections in the order of their first options; what is in none comes last."""
        formatter.width = min(_LONGEST, shutil.get_terminal_size((_LONGEST, 24)).columns)
        own: dict[str, list[tuple[str, str]]] = {}
        for each in super().get_params(ctx):
            if isinstance(each, click.Argument):
                continue
            row = each.get_help_record(ctx)
            if row is not None:
                if row[0] == "--help":  # parse_args of FlagsCommand reads -h
                    row = ("-h, --help", row[1])
                own.setdefault(getattr(each, "section", "Global"), []).append(row)
        last = own.pop("Global", [])
        for title, rows in (*own.items(), *self.further_sections(), ("Global", last)):
            _write(formatter, title, rows)

    def further_sections(self) -> Iterable[tuple[str, list[tuple[str, str]]]]:
        """Sections of flags that are no options: their titles and rows."""
        return ()


def _show_all_help(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        context.meta[_ALL] = True
        with context:
            click.echo(context.get_help())
        context.exit()


def _is_all_wanted(context: click.Context) -> bool:
    return bool(context.meta.get(_ALL))


_HELP_ALL: Final = Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all_help,
    section="Global",
    help=f"show all {len(FLAGS)} flags of the server, kube-apiserver's own",
)


class FlagsCommand(SectionedCommand):
    """A command that takes the flags of `steersman serve` unread: `parse` reads them as Go does.

    `defaults` are texts of flags that are others here than those of Options, by the names of the flags. With
    `most_used`, --help shows these alone of the server's flags, and --help-all the others too.
    """

    def __init__(
        self,
        *arguments: Any,
        defaults: Mapping[str, str] | None = None,
        most_used: Sequence[str] = (),
        **attributes: Any,
    ) -> None:
        # Were -h one of click's names, an argument such as -authorization-mode would ask for help: it has an h in it.
        settings = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": ["--help"]}
        super().__init__(*arguments, **{**attributes, "context_settings": settings})
        self._defaults = dict(defaults or {})
        self._most_used = tuple(most_used)
        if most_used:
            self.params.append(_HELP_ALL)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "-h" in args and not ctx.resilient_parsing:
            args = ["--help"]
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """While a shell completes a line, the flags as options that click can read."""
        own = super().get_params(ctx)
        if not ctx.resilient_parsing:
            return own
        return [*own, *(_option(name, flag) for section in SECTIONS.values() for name, flag in section.items())]

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[flags]"]

    def further_sections(self) -> Iterable[tuple[str, list[tuple[str, str]]]]:
        """Those of the flags."""
        defaults = {**default_texts(), **self._defaults}
        sections: Mapping[str, Mapping[str, Flag]] = SECTIONS
        if self._most_used and not _is_all_wanted(click.get_current_context()):
            sections = {"Server": {name: FLAGS[name] for name in self._most_used}}
        for title, flags in sections.items():
            yield title, [_row(name, flag, defaults.get(name, "")) for name, flag in flags.items()]


def _write(formatter: click.HelpFormatter, title: str, rows: list[tuple[str, str]]) -> None:
    if rows:
        with formatter.section(f"{title} flags"):
            formatter.write_dl(rows, col_max=round(formatter.width * _NAMES))


def default_texts() -> dict[str, str]:
    """Texts of the defaults, by flag, of those that say something."""
    from steersman.cli.paths import DEFAULT_DATA_DIR, default_data_dir

    found = {**Options(data_dir=default_data_dir()).as_flags(), "data-dir": DEFAULT_DATA_DIR}
    return {name: text for name, text in found.items() if text not in ("", "[]")}


def _row(name: str, flag: Flag, default: str) -> tuple[str, str]:
    shown = "" if flag.boolean else " " + SHOWN.get(flag.read, "string")
    given = f"-{name}, --{name}" if len(name) == 1 else f"--{name}"
    told = default[1:-1] if default.startswith("[") else default
    return given + shown, f"{flag.help}  [default: {told}]" if told else flag.help


def _option(name: str, flag: Flag) -> click.Option:
    """A flag as a shell offers it."""
    names = [f"-{name}", f"--{name}"] if len(name) == 1 else [f"--{name}"]
    kind = (
        click.Path() if flag.read in (file, one_file) else click.Path(file_okay=False) if flag.read is folder else None
    )
    return click.Option(
        names,
        help=flag.help,
        type=kind,
        multiple=flag.repeats,
        shell_complete=_values(flag) if flag.values or flag.read in (plugins, cipher_suites) else None,
        is_flag=flag.boolean,
    )


def offered(flag: Flag) -> tuple[str, ...]:
    """Return the values that a shell offers."""
    if flag.read is plugins:
        from steersman.controlplane.admission import plugin_names

        return tuple(plugin_names())
    if flag.read is cipher_suites:
        from steersman.controlplane.tls_parameters import SUITE_NAMES

        return SUITE_NAMES
    return flag.values


def _values(flag: Flag) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """The values of a flag; of one that takes several, those for the last."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",") if flag.repeats else ("", "", incomplete)
        given = before.split(",")
        return [
            CompletionItem(before + comma + each)
            for each in offered(flag)
            if each.startswith(last) and each not in given
        ]

    return complete
