"""`steersman check`: what the server would say to manifests, without a cluster."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from steersman.cli.program import fail_with
from steersman.cli.terminal_text import coloured, printable
from steersman.cli.termination import Terminated, cancelled_by_sigterm
from steersman.cli.up.screen import GREEN, RED, YELLOW
from steersman.cli.verdict import NO_VERDICT, VerdictCommand

if TYPE_CHECKING:
    from steersman.check.finding import Finding, Report, Rule

_KUBERNETES: Final = "1.36"
_LONGEST: Final = 2_000


def _rules(context: click.Context, _: click.Parameter, names: Sequence[str]) -> frozenset[Rule]:
    from steersman.check.finding import Rule
    from steersman.machinery.suggestions import known_names_hint

    known = {each.value: each for each in Rule}
    for each in names:
        if each not in known:
            raise click.BadParameter(f"no rule {each}{known_names_hint(each, known)}", context)
    return frozenset(known[each] for each in names)


@click.command(cls=VerdictCommand)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--old", multiple=True, metavar="path", help="objects as they are before; what does not change is forgiven"
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "sarif", "junit"]),
    default="text",
    help="form of the output",
)
@click.option("-n", "--namespace", default="default", metavar="string", help="namespace of objects that name none")
@click.option("--as", "user", default="", show_default=False, metavar="string", help="user who sends them, for RBAC")
@click.option("--as-group", "groups", multiple=True, metavar="string", help="group of that user")
@click.option("--kubernetes", type=click.Choice([_KUBERNETES]), default=_KUBERNETES, help="version of the server")
@click.option(
    "--fail-on", type=click.Choice(["error", "warning"]), default="error", help="findings that fail the check"
)
@click.option(
    "--ignore", "ignored", multiple=True, callback=_rules, metavar="rule", help="leave out findings, such as Warning"
)
def check(
    paths: tuple[str, ...],
    old: tuple[str, ...],
    output: str,
    namespace: str,
    user: str,
    groups: tuple[str, ...],
    kubernetes: str,
    fail_on: str,
    ignored: frozenset[Rule],
) -> None:
    """Judge manifests as the server would: files, folders, charts, kustomizations, or - for standard input.

    Definitions, policies, quotas and roles among them apply to the others, in whatever order they are given. Findings
    have the server's own words. Exits with 1 if something is wrong, with 2 if a path cannot be read,
    a folder has no manifests, or the command line is wrong.
    """
    from steersman.authentication.user import UserInfo
    from steersman.check.documents import InputError, read
    from steersman.check.finding import Level
    from steersman.check.judge import Settings
    from steersman.check.judge import check as judge

    if groups and not user:
        raise click.UsageError("--as-group needs --as", click.get_current_context())
    try:
        documents, unreadable = read(paths)
        before, malformed = read(old, needs_all=False)
    except InputError as error:
        fail_with(NO_VERDICT, printable(error, _LONGEST))
    settings = Settings(namespace, UserInfo(user, groups=groups) if user else None, ignored)
    try:
        report = asyncio.run(cancelled_by_sigterm(judge(documents, before, settings)))
    except Terminated:
        fail_with(NO_VERDICT, "terminated")
    report.findings[:0] = [each for each in (*malformed, *unreadable) if each.rule not in ignored]
    _print(report, output)
    if report.count(Level.ERROR) or (fail_on == "warning" and report.findings):
        sys.exit(1)


def _print(report: Report, output: str) -> None:
    from steersman.check import outputs

    if output == "text":
        for line in _lines(report):
            click.echo(line)
        return
    click.echo(outputs.FORMS[output](report), nl=False)


def _lines(report: Report) -> Iterator[str]:
    from steersman.check.finding import Level

    for each in report.findings:
        yield _line(each)
    errors, warnings = report.count(Level.ERROR), report.count(Level.WARNING)
    text = f"{_number(len(report.objects), 'object')}: {_number(errors, 'error')}, {_number(warnings, 'warning')}"
    yield coloured(text, RED if errors else YELLOW if warnings else GREEN)


def _line(finding: Finding) -> str:
    from steersman.check.finding import Level
    from steersman.check.outputs import shown

    level = coloured(finding.level.value, RED if finding.level is Level.ERROR else YELLOW)
    subject = f" {printable(finding.object)}:" if str(finding.object) else ""
    text = printable(shown(finding), _LONGEST)
    return f"{printable(finding.file)}:{finding.line}: {level}:{subject} {text} [{finding.rule.value}]"


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
