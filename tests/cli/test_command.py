"""Help by section in two columns."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from steersman.cli import main
from steersman.controlplane.options import FLAGS, SECTIONS


def help_of(command: str, columns: int = 120, asked: str = "") -> str:
    """Return the help of a command for `--help`, or for another argument."""
    asked = asked or ("--help-all" if command == "up" else "--help")
    done = CliRunner().invoke(main, [command, asked], env={"COLUMNS": str(columns)})
    assert done.exit_code == 0
    return done.stdout


@pytest.mark.parametrize("command", ["serve", "up"])
def test_every_flag_is_in_its_section_once(command: str) -> None:
    text = help_of(command)
    for title, flags in SECTIONS.items():
        section = text.partition(f"\n{title} flags:\n")[2].partition("\n\n")[0]
        assert re.findall(r"^  (?:-\w, )?--([a-z0-9-]+)", section, re.MULTILINE) == list(flags)
    assert [*SECTIONS] == [each for each in re.findall(r"^(.+) flags:$", text, re.MULTILINE) if each in SECTIONS]


def test_a_row_says_the_name_the_type_what_for_and_the_default() -> None:
    rows = [re.sub(r"  +", "  ", line.strip()) for line in help_of("serve").splitlines()]
    assert "--secure-port int  port to listen on, 0 for a free one  [default: 6443]" in rows
    assert "--anonymous-auth  accept requests without credentials  [default: true]" in rows
    assert "--client-ca-file file  CA of client certificates, PEM" in rows


def test_help_is_no_flag_among_others_and_names_no_folder_of_this_machine() -> None:
    for command in ("serve", "up", "status", "kubeconfig"):
        text = help_of(command, 80)
        assert "-h, --help" in text
        assert "[FLAGS]" not in text
        assert "default: ~/.local/state/steersman]" in " ".join(text.split())


@pytest.mark.parametrize("asked", ["--help", "-h"])
def test_the_help_of_up_is_one_screen_and_says_where_the_rest_is(asked: str) -> None:
    text = help_of("up", 80, asked)
    assert text.count("\n") <= 24
    shown = set(re.findall(r"^  (?:-\w, )?--([a-z-]+)", text, re.MULTILINE))
    assert shown > {"nodes", "config", "detach", "data-dir", "storage", "secure-port", "help-all"}
    assert f"show all {len(FLAGS)} flags" in text
    assert len(help_of("up", 80, "--help-all").splitlines()) > len(FLAGS)


@pytest.mark.parametrize("group", [[], ["storage"]])
def test_a_group_without_a_command_shows_its_help(group: list[str]) -> None:
    alone, asked = CliRunner().invoke(main, group), CliRunner().invoke(main, [*group, "--help"])
    assert (alone.exit_code, alone.stderr) == (1, asked.stdout)


ERRORS = [
    (["upp"], "unknown command 'upp', did you mean up?; see `steersman --help`"),
    (["storage", "sav"], "unknown command 'sav', did you mean save?; see `steersman storage --help`"),
    (
        ["status", "--data-dirr", "x"],
        "unknown flag: --data-dirr, did you mean --data-dir?; see `steersman status --help`",
    ),
    (["up", "--noes=3"], "unknown flag: --noes, did you mean --nodes?"),
    (["up", "--nodes=x"], "--nodes: 'x' is not a whole number; see `steersman up --help`"),
    (["serve", "--secure-prot=1"], "unknown flag: --secure-prot, did you mean --secure-port?"),
    (["controllers"], "--kubeconfig is needed; see `steersman controllers --help`"),
    (["crd"], "MODULE[:CLASS] is needed; see `steersman crd --help`"),
    (["crd", "no.such.module"], "there is no module no.such.module"),
    (["storage", "save"], "FILE is needed; see `steersman storage save --help`"),
    (
        ["completion", "bsh"],
        "SHELL: 'bsh' is none of bash, zsh, fish, did you mean bash?; see `steersman completion --help`",
    ),
    (["status", "a"], "unexpected argument 'a'; see `steersman status --help`"),
    (["down", "a", "b"], "unexpected argument 'a'; see `steersman down --help`"),
    (["up", "nodes", "3"], "unexpected argument 'nodes', did you mean --nodes?"),
    (["up", "--nodes=-1"], "--nodes: -1 is less than 0; see `steersman up --help`"),
    (["clock", "speed", "fast"], "FACTOR: 'fast' is not a number; see `steersman clock speed --help`"),
    (["import", "-o", "/no/file"], "-o: there is no folder /no; see `steersman import --help`"),
    (["record", "-o", "/no/file"], "-o: there is no folder /no; see `steersman record --help`"),
    (
        ["record", "-o", "a", "--for", "1d"],
        '--for: time: unknown unit "d" in duration "1d": write 90s, 30m or 24h; see `steersman record --help`',
    ),
    (
        ["controllers", "--kubeconfig=/no/file"],
        "--kubeconfig: file '/no/file' does not exist; see `steersman controllers --help`",
    ),
]


@pytest.mark.parametrize(
    ("arguments", "told"), ERRORS, ids=lambda each: each if isinstance(each, str) else " ".join(each)
)
def test_whatever_is_wrong_is_told_in_one_line_of_one_form(arguments: list[str], told: str) -> None:
    done = CliRunner().invoke(main, arguments)
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", f"steersman: {told}\n")


def test_the_list_of_commands_says_whole_sentences() -> None:
    text = CliRunner().invoke(main, ["--help"], env={"COLUMNS": "60"}).stdout
    assert "..." not in text.partition("Commands:")[2]
    assert "in one process: server, controllers, scheduler and nodes." in " ".join(text.split())


def test_the_defaults_of_a_cluster_are_its_own() -> None:
    assert "[default: 0.0.0.0]" in help_of("serve")
    assert "[default: 127.0.0.1]" in help_of("up")
    assert (
        help_of("up").index("Cluster flags:") < help_of("up").index("--nodes") < help_of("up").index("Generic flags:")
    )


def test_options_of_other_commands_are_by_section_too() -> None:
    titles = re.findall(r"^(.+) flags:$", help_of("controllers"), re.MULTILINE)
    assert (titles[0], titles[-2:]) == ("Generic", ["Leader election", "Global"])
    assert "[default: *]" in help_of("controllers")
    assert '[default: ""]' not in help_of("controllers")


@pytest.mark.parametrize("columns", [80, 120])
def test_lines_fit_the_terminal(columns: int) -> None:
    longest = max(len(f"  --{name} strings") for name in FLAGS)
    assert max(map(len, help_of("up", columns).splitlines())) <= max(columns, longest)


@pytest.mark.parametrize(
    "command", ["status", "down", "kubeconfig", "controllers", "scheduler", "envtest", "completion"]
)
def test_other_commands_show_theirs_in_two_columns(command: str) -> None:
    assert re.search(r"^  -+\S.*  +\S", help_of(command), re.MULTILINE)


def test_all_commands_are_listed_the_first_ones_first() -> None:
    done = CliRunner().invoke(main, ["--help"])
    listed = re.findall(r"^  ([a-z-]+)  +\S", done.stdout.partition("Commands:")[2], re.MULTILINE)
    assert listed == list(main.commands)
    assert listed[0] == "up"
