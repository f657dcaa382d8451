"""Commands whose help lists flags by section in two columns, as kube-apiserver's does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from steersman.controlplane.flag_readers import SHOWN, cipher_suites, file, folder, one_file, plugins
from steersman.controlplane.flags import Flag
from steersman.controlplane.options import FLAGS, SECTIONS, Options

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_NAMES: Final = 0.36
"""Maximum width of the column of names, as a part of the total width. A longer name has a line of its own."""
_ALL: Final = "steersman.all_flags"
"""Key in a context's `meta`; set if help should list all flags."""
_LONGEST: Final = 120
"""Maximum width of help in columns."""


class Option(click.Option):
    """An option that belongs to one command; help lists it under `section`."""

    def __init__(self, *arguments: Any, section: str = "Options", **attributes: Any) -> None:
        if not attributes.get("default"):
            attributes.setdefault("show_default", False)
        super().__init__(*arguments, **attributes)
        self.section = section

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Remove the range, which the help text states if necessary."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


class SectionedCommand(click.Command):
    """A command whose help lists options by section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections in the order of their first options; options without section come last."""
        import shutil  # slow to load

        formatter.width = min(_LONGEST, shutil.get_terminal_size((_LONGEST, 24)).columns)
        own: dict[str, list[tuple[str, str]]] = {}
        for each in super().get_params(ctx):
            if isinstance(each, click.Argument):
                continue
            row = each.get_help_record(ctx)
            if row is not None:
                if row[0] == "--help":  # FlagsCommand.parse_args handles -h
                    row = ("-h, --help", row[1])
                own.setdefault(getattr(each, "section", "Global"), []).append(row)
        last = own.pop("Global", [])
        for title, rows in (*own.items(), *self.further_sections(), ("Global", last)):
            _write(formatter, title, rows)

    def further_sections(self) -> Iterable[tuple[str, list[tuple[str, str]]]]:
        """Return further sections of flags that are not click options: titles and rows."""
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
    """A command that passes the flags of `steersman serve` on; `parse` parses them as Go does.

    `defaults` maps names of flags to default texts that differ from those of Options. If `most_used` is given, --help
    lists only these of the server's flags, and --help-all lists all.
    """

    def __init__(
        self,
        *arguments: Any,
        defaults: Mapping[str, str] | None = None,
        most_used: Sequence[str] = (),
        **attributes: Any,
    ) -> None:
        # With -h as a name, click would read an argument such as -authorization-mode as -h, because it contains an h.
        settings = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": ["--help"]}
        super().__init__(*arguments, **{**attributes, "context_settings": settings})
        self._defaults = dict(defaults or {})
        self._most_used = tuple(most_used)
        if most_used:
            self.params.append(_HELP_ALL)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments as click does, except that `-h` anywhere among them means `--help` alone."""
        if "-h" in args and not ctx.resilient_parsing:
            args = ["--help"]
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the options, and during shell completion the flags too."""
        own = super().get_params(ctx)
        if not ctx.resilient_parsing:
            return own
        return [*own, *(_option(name, flag) for section in SECTIONS.values() for name, flag in section.items())]

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[flags]"]

    def further_sections(self) -> Iterable[tuple[str, list[tuple[str, str]]]]:
        """Return the sections of the server's flags."""
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
    """Return the default texts by flag, without empty ones."""
    from steersman.cli.paths import DEFAULT_DATA_DIR, default_data_dir

    found = {**Options(data_dir=default_data_dir()).as_flags(), "data-dir": DEFAULT_DATA_DIR}
    return {name: text for name, text in found.items() if text not in ("", "[]")}


def _row(name: str, flag: Flag, default: str) -> tuple[str, str]:
    shown = "" if flag.boolean else " " + SHOWN.get(flag.read, "string")
    given = f"-{name}, --{name}" if len(name) == 1 else f"--{name}"
    shown_default = default[1:-1] if default.startswith("[") else default
    return given + shown, f"{flag.help}  [default: {shown_default}]" if shown_default else flag.help


def _option(name: str, flag: Flag) -> click.Option:
    """Return a flag as an option for shell completion."""
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
    """Return the values of a flag for shell completion."""
    if flag.read is plugins:
        from steersman.controlplane.admission import plugin_names

        return tuple(plugin_names())
    if flag.read is cipher_suites:
        from steersman.controlplane.tls_parameters import SUITE_NAMES

        return SUITE_NAMES
    return flag.values


def _values(flag: Flag) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return a completion function for a flag's values; in a comma-separated list it completes the last one."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        before, comma, last = incomplete.rpartition(",") if flag.repeats else ("", "", incomplete)
        given = before.split(",")
        return [
            CompletionItem(before + comma + each)
            for each in offered(flag)
            if each.startswith(last) and each not in given
        ]

    return complete
