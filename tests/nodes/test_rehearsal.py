"""Output of containers, computed without waiting."""

from __future__ import annotations

import pytest

from steersman.nodes.rehearsal import Outcome, Printed, Setting, Unknown, outcome, rehearsed
from steersman.nodes.shell.effects import World
from tests.counted_work import calls

START = 1_800_000_000.0


def output_until(script: str, now: float) -> list[Printed]:
    """Return the output up to `now` of a script that started at START."""
    found = []
    for each in rehearsed(["sh", "-c", script], World("p", {}, lambda: 0.0), START, now):
        if (each if isinstance(each, float) else each.at) > now:
            break
        if isinstance(each, Printed):
            found.append(each)
    return found


@pytest.mark.parametrize(
    ("script", "ends"),
    [
        ("sleep 5; exit 3", Outcome(5.0, 3)),
        ("echo a", Outcome(0.0, 0)),
        ("while true; do sleep 1; done", Outcome(None)),
        ("nginx -g daemon", Outcome(None, is_known=False, missing="nginx")),
        ("wget a && sleep 2", Outcome(2.0, 0)),
        ("case a in a) exit 4;; esac", Outcome(0.0, 4)),
        ("select x in a; do break; done", Outcome(None, is_known=False)),
        ("for i in $(seq 1 10); do sleep 1; done; exit 1", Outcome(10.0, 1)),
        ("while true; do :; done", Outcome(None)),
        ("until nslookup db; do sleep 2; done", Outcome(0.0, 0)),
        ("read x; exit 4", Outcome(0.0, 4)),
    ],
)
def test_how_a_command_ends(script: str, ends: Outcome) -> None:
    assert outcome(("sh", "-c", script), Setting()) == ends


@pytest.mark.parametrize(
    ("script", "ends"),
    [
        ("_term() { sleep 5; exit 143; }\ntrap _term SIGTERM\nwhile true; do sleep 1; done", (5.0, 143)),
        ("trap 'sleep 2; exit 0' 15; sleep infinity", (2.0, 0)),
        ("trap 'exit 3' TERM; server & wait", (0.0, 3)),
        ("trap 'exit 4' TERM; trap 'sleep 1' EXIT; sleep infinity", (1.0, 4)),
        ("sleep infinity", (0.0, 143)),
        ("trap : TERM INT; sleep infinity & wait", (0.0, 143)),
        ("trap 'exit 5' TERM; (sleep infinity)", (0.0, 5)),
        ("trap 'exit 5' TERM; sleep infinity | cat", (0.0, 5)),
        ("(trap 'exit 5' TERM; sleep infinity)", (0.0, 143)),
        ("trap 'exit 3' INT; sleep infinity", (0.0, 143)),
        ("trap 'sleep infinity' TERM; sleep infinity", (float("inf"), 143)),
        ("trap 'select' TERM; sleep inf", (0.0, 143)),
    ],
)
def test_a_trap_decides_how_a_terminated_script_ends(script: str, ends: tuple[float, int]) -> None:
    found = outcome(("sh", "-c", script), Setting())
    assert (found.seconds, found.stops_after, found.stop_code) == (None, *ends)


def test_what_reads_waits_for_its_input() -> None:
    assert outcome(("cat",), Setting(stdin=True)) == Outcome(None)
    assert outcome(("cat",), Setting()) == Outcome(0.0, 0)


def test_lines_have_the_times_at_which_they_are_printed() -> None:
    found = output_until("echo a; sleep 2; echo b >&2; sleep 2; echo c", START + 3)
    assert found == [Printed(START, 1, b"a\n"), Printed(START + 2, 2, b"b\n")]


def test_of_long_ago_nothing_is_rehearsed() -> None:
    day = 86_400
    found = output_until('i=0; while true; do echo "$i $(date +%s)"; i=$((i+1)); sleep 1; done', START + day)
    assert len(found) < 1100
    assert found[-1].data == f"{day} {int(START) + day}\n".encode()
    assert found[-2].data == f"{day - 1} {int(START) + day - 1}\n".encode()


def test_times_go_on_where_nothing_is_printed() -> None:
    """The progress of a script is known even while it prints nothing."""
    assert output_until("echo a; while true; do sleep 3600; done", START + 90_000) == [Printed(START, 1, b"a\n")]


def test_the_rehearsal_of_a_script_with_too_much_work_is_abandoned() -> None:
    assert output_until("x=a; while true; do x=$x; y=b$y; sleep 0.000001; done", START + 90_000) == []


_MEGABYTE = "x=aaaaaaaaaa; for i in $(seq 1 40); do x=$x$x; done; "


@pytest.mark.parametrize(
    "script",
    [
        _MEGABYTE,
        "for i in $(seq 1 40); do export x=$x$x; done; x=aa" + _MEGABYTE,
        'x=\'eval "$x"\'; eval "$x"',
        "echo a" + " >/tmp/x" * 8000,
        ":;" * 30_000,
        "echo a" + "|cat" * 15_000,
        "a" + " b" * 30_000,
        "(" * 2000,
        "for i in $(seq 1 300); do for j in $(seq 1 280); do x=$(echo $(echo $j)); done; sleep 0.1; done",
    ],
)
def test_scripts_that_would_take_all_there_is_run_for_ever(script: str) -> None:
    assert outcome(("sh", "-c", script), Setting()).seconds is None


def test_times_beyond_all_calendars() -> None:
    assert outcome(("sh", "-c", "sleep 100000d; date; sleep 1; exit 2"), Setting()).exit_code == 2
    assert outcome(("sh", "-c", "sleep 999999999d; exit 2"), Setting()) == Outcome(None)


def test_long_scripts_are_not_read() -> None:
    assert outcome(("sh", "-c", "sleep 5; exit 3" + " " * 10_000), Setting()) == Outcome(None, is_known=False)


def test_what_is_in_volumes_is_found() -> None:
    setting = Setting(mounts=("/data",), files=(("/data/n", b"7"),))
    assert outcome(("sh", "-c", "exit $(cat /data/n)"), setting).exit_code == 7


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("cp --update=none /usr/local/bin/tool /data/tool && ln -sf /data/tool /data/link && cat /data/link", 0),
        ("cp -r /autoinstrumentation/. /data/all && ls /data/all", 0),
        ("cp /plugins/*.so /data/", 0),
        ("mv /entrypoint /data/e && chmod +x /data/e /other", 0),
        ("cp /data/missing /data/b", 1),
        ("cp /tmp/missing /data/b", 1),
        ("chmod +x /data/missing", 1),
        ("cp /plugins/*.so /data/nowhere/x/", 1),
    ],
)
def test_files_of_the_image_are_copied_and_none_of_volumes(script: str, code: int) -> None:
    setting = Setting(mounts=("/data",))
    assert outcome(("sh", "-c", script), setting) == Outcome(0.0, code)


def test_images_have_no_files_where_programs_that_are_not_simulated_fail() -> None:
    setting = Setting(mounts=("/data",), unknown=Unknown.FAIL)
    assert outcome(("cp", "/tool", "/data/tool"), setting).exit_code == 1


@pytest.mark.parametrize(
    "script",
    [
        "for i in $(seq 1 300); do for j in $(seq 1 280); do x=$(echo $(echo $j)); done; sleep 0.1; done",
        "for i in 1 2 3 4 5 6 7 8 9; do " * 6 + "echo $i" + "; done" * 6,
        'x=\'eval "$x"\'; eval "$x"',
        ":;" * 2000,
    ],
)
def test_what_is_tried_is_little_work(script: str) -> None:
    """A rehearsal blocks the event loop: 160,000 calls take some ten milliseconds."""
    setting = Setting((("unseen", script[:9]),))
    assert calls(lambda: outcome(("sh", "-c", script), setting)) < 160_000
