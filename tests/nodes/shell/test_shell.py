"""Shell scripts like those in manifests."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import pytest

from steersman.nodes.shell.effects import Missing, Repeated, Wait
from steersman.nodes.shell.shell import Shell
from tests.counted_work import grows_too_fast
from tests.nodes.shell.running import run, sh, world


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("echo hello", "hello\n"),
        ("echo a; echo b && echo c || echo d", "a\nb\nc\n"),
        ("false && echo a || echo b", "b\n"),
        ("echo '$A' \"$A\" $A ${NO:-none}", "$A x y x y none\n"),
        ('for x in 1 $A; do echo "<$x>"; done', "<1>\n<x>\n<y>\n"),
        ("i=0; while [ $i -lt 3 ]; do i=$((i + 1)); done; echo $i", "3\n"),
        ('until [ -n "$x" ]; do x=1; done; echo $x', "1\n"),
        ("if [ -f /etc/hostname ]; then cat /etc/hostname; else echo no; fi", "pod\n"),
        ("if false; then echo a; elif true; then echo b; fi", "b\n"),
        ('echo "it is $(hostname) and `hostname`"', "it is pod and pod\n"),
        ("f() { echo 1; }; (f() { echo 2; }; (f() { echo 3; }; f); f); f", "3\n2\n1\n"),
        ("f() { echo 1; }; x=$(f() { echo 2; }; f() { echo 3; }; f); echo $x; f", "3\n1\n"),
        ("(g() { echo 1; }; g); command -v g || echo gone", "1\ngone\n"),
        ("f() { (shift; set -e; echo $1); false; echo $1; }; f a b", "b\na\n"),
        ("(echo a; echo b) | grep b | cat", "b\n"),
        ("trap 'echo outer' EXIT; (trap 'echo inner' EXIT; echo a); echo b", "a\ninner\nb\nouter\n"),
        ("trap 'echo outer' EXIT; (echo a); echo b", "a\nb\nouter\n"),
        ("x=$(trap 'echo inner' EXIT; echo a); echo $x", "a inner\n"),
        ("f() { (return 3); echo $?; }; f", "3\n"),
        ("for i in 1 2; do (break); echo $i; done", "1\n2\n"),
        ("x=1; echo 2 | read x; echo $x", "1\n"),
        ("x=1; x=2 | true; echo $x", "1\n"),
        ("cd / | cat; cd /etc; cd /tmp | cat; pwd", "/etc\n"),
        ("f() { echo 1; }; f() { echo 2; } | cat; f", "1\n"),
        ("f() { echo a | return 3; echo $?; }; f; exit 4 | cat; echo $?", "3\n0\n"),
        ("n=0; printf '1\\n2\\n' | while read l; do n=$((n + 1)); done; echo $n", "0\n"),
        ("x=1; x=2 & wait; echo $x", "1\n"),
        ("{ echo a; echo b; } > /tmp/f; wc -l < /tmp/f; cat /tmp/f", "2\na\nb\n"),
        ("echo a > /tmp/f; echo b >> /tmp/f; tail -n 1 /tmp/f", "b\n"),
        ("printf '%s=%d\\n' a 1", "a=1\n"),
        ("X=1 env | grep X; echo ${X:-gone}", "X=1\ngone\n"),
        ("cd /etc; pwd; cat hostname", "/etc\npod\n"),
        ("eval 'echo a'; exec echo b; echo c", "a\nb\n"),
        ("for i in $(seq 1 5); do [ $i = 3 ] && break; echo $i; done", "1\n2\n"),
        ("for i in 1 2 3; do if [ $i = 2 ]; then continue; fi; echo $i; done", "1\n3\n"),
        ("# nothing\necho a # b", "a\n"),
        ("echo $((2 + 3 * 4 - 10 / 3)) $((7 % 4))", "11 3\n"),
        ("! true; echo $?", "1\n"),
        ("echo one \\\n  two", "one two\n"),
        ("date -u +%Y-%m-%dT%H:%M:%SZ; date +%s", "2027-01-15T08:00:00Z\n1800000000\n"),
    ],
)
def test_what_a_script_prints(script: str, printed: str) -> None:
    outcome = sh(script)
    assert (outcome.out, outcome.err) == (printed, "")


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 3", 3),
        ("false", 1),
        ("true; false; true", 0),
        ("set -e; false; exit 0", 1),
        ("(exit 4)", 4),
        ("exit 256", 0),
        ("cat /nope", 1),
        ("nosuch", 127),
        ("sh -c 'exit 5'", 5),
        ("if; then", 2),
        ("set -e; ! true; exit 6", 6),
    ],
)
def test_how_a_script_ends(script: str, code: int) -> None:
    assert sh(script).code == code


def test_what_waits_takes_its_time() -> None:
    assert sh("echo a; sleep 5; sleep 0.5 1m").seconds == 65.5
    assert sh("sleep 2 & sleep 3").seconds == 3
    assert sh("sleep 4 & wait").seconds == 4
    assert sh("sleep infinity").code is None
    assert sh("tail -f /dev/null").code is None


def test_errors_go_where_they_are_sent() -> None:
    assert sh("echo a >&2").err == "a\n"
    assert sh("cat /nope 2>&1").out == "cat: can't open '/nope': No such file or directory\n"
    assert sh("cat /nope 2>/dev/null").err == ""


def test_a_missing_program_is_reported_before_it_fails() -> None:
    outcome = sh("nginx -g daemon; echo $?")
    assert outcome.other == [Missing("nginx")]
    assert (outcome.out, outcome.err) == ("127\n", "sh: nginx: not found\n")
    assert run("/bin/nginx").other == [Missing("/bin/nginx", is_first=True)]


def test_repetitions_can_be_left_out_and_numbers_count_on() -> None:
    outcome = sh("i=0; while true; do echo $i; i=$((i+1)); sleep 2; done", left_out=10, most=12)
    assert outcome.out.split() == ["0", "11", "22", "33"]
    assert outcome.other[0] == Repeated(2.0)
    assert not [each for each in sh("while true; do x=$x.; sleep 1; done", most=50).other if isinstance(each, Repeated)]


def test_a_script_that_spins_waits_for_ever() -> None:
    assert sh("while true; do :; done").seconds == float("inf")
    assert sh("until false; do true; done").code is None


def test_a_shell_without_a_script_reads_it() -> None:
    outcome = run("sh", stdin=b"echo a\nfor i in 1 2; do\necho $i\ndone\nexit 4\necho b\n")
    assert (outcome.out, outcome.code) == ("a\n1\n2\n", 4)
    assert sh('while read a b; do echo "$b $a"; done', stdin=b"1 2\n3 4\n").out == "2 1\n4 3\n"
    assert run("cat", stdin=b"x\ny").out == "x\ny"


@pytest.mark.parametrize(
    "script",
    [
        "echo 'a",
        'echo "a',
        "echo $(echo",
        "if true",
        "while true; do",
        "for 1 in a; do done",
        "echo ${a",
        "a &&",
        "(echo",
        "| a",
        "echo a > ",
        "done",
        "$((",
        "case a in b) c;;",
        "f() {",
        "case a b) c;; esac",
    ],
)
def test_what_is_no_script_says_so(script: str) -> None:
    outcome = sh(script)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("sh: syntax error: ")


@pytest.mark.parametrize(
    "script",
    [
        "(" * 100_000,
        "$(" * 10_000,
        "{ " * 5000,
        "if " * 5000,
        "echo " + "$((" * 3000,
        "`" * 9999,
        "a" * 100_000,
        "sh -c " * 40 + "true",
        "${a:-" * 4000,
        "while " * 3000,
        "echo $((" + "(" * 300 + "1" + ")" * 300 + "))",
    ],
)
def test_deep_and_long_scripts_end(script: str) -> None:
    assert sh(script).code is not None


def test_shells_in_shells_are_bounded() -> None:
    assert sh("echo 'sh /tmp/f' > /tmp/f; sh /tmp/f").err == "sh: too many shells\n"


def test_what_is_written_is_bounded() -> None:
    outcome = sh(
        "x=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; for i in $(seq 1 30); do cat /tmp/f /tmp/f >> /tmp/f 2>/dev/null; "
        "echo $x >> /tmp/f; done"
    )
    assert "No space left on device" in outcome.err


@pytest.mark.parametrize(
    ("script", "out"),
    [
        ("expr 7 % 2", "1\n"),
        ("expr 2 '*' 3 + 1", "7\n"),
        ("expr 1 = 2 || echo no", "0\nno\n"),
        ("expr word", "word\n"),
        ("id", "uid=0(root) gid=0(root) groups=0(root)\n"),
        ("id -u", "0\n"),
        ("whoami", "root\n"),
        ("mount -t cgroup2", "cgroup2 on /sys/fs/cgroup type cgroup2 (rw,relatime)\n"),
        ("if [[ -f /etc/hostname ]]; then echo there; fi", "there\n"),
        ("[[ a == b ]] || echo differs", "differs\n"),
        ("echo a b c | awk '{print $2, $9, $1}'", "b  a\n"),
        ("echo a | awk '{print $0}'", "a\n"),
        ("echo told > /dev/stdout; echo lost > /dev/null", "told\n"),
    ],
)
def test_what_programs_tell(script: str, out: str) -> None:
    assert sh(script).out == out


def test_a_script_that_comes_in_lines_is_read_once() -> None:
    def lines(size: int) -> Callable[[], object]:
        return lambda: run("sh", stdin=b"if true; then\n" + b"a\n" * size)

    assert not grows_too_fast(lines, (100, 200, 400))


@pytest.mark.parametrize(
    "script",
    [
        "grep -v x /big",
        "head -n 900000 /big",
        "tail -n 900000 /big",
        "awk '{print $9}' /big",
        "sed s/a/b/ /big",
        "sort /big",
        "cut -c1 /big",
        "uniq /big",
        "tr a b < /big",
        "while read x; do :; done < /big",
        "for i in $W; do :; done",
        'sh -c "$W"',
        "cat /big | cat",
        "sh < /big",
        "md5sum /big",
    ],
)
def test_large_work_yields(script: str) -> None:
    around = world()
    around.files["/big"] = b"\n" * 100_000
    around.environment["W"] = "a " * 15_000
    execution = Shell(around).run(["sh", "-c", script])
    assert sum(effect == Wait(0) for effect in islice(execution, 100)) >= 3
