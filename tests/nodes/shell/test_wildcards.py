"""Pathname expansion."""

from __future__ import annotations

import pytest

from tests.nodes.shell.running import sh

FILES = "mkdir -p /tmp/d/e; cd /tmp/d; touch a.txt b.txt .h e/f; "


@pytest.mark.parametrize(
    ("script", "out"),
    [
        ("echo *", "a.txt b.txt e"),
        ("echo *.txt */f", "a.txt b.txt e/f"),
        ('echo \'*\' "*" \\* "a"*', "* * * a.txt"),
        ("x='*.txt y'; echo $x \"$x\"", "a.txt b.txt y *.txt y"),
        ("echo [ab].txt ? /tmp/*/e", "a.txt b.txt e /tmp/d/e"),
        ("echo nope* [ .h* */", "nope* [ .h e/"),
        ("for i in *.txt; do echo $i; done", "a.txt\nb.txt"),
        ("rm -f /tmp/d/*.txt; ls", "e"),
        ("set -- '*'; echo \"$@\" $1", "* a.txt b.txt e"),
        ('x=*; echo "$x"', "*"),
        ("case a* in a\\*) echo star;; esac", "star"),
        ("echo 'a\\b'* /*/d/../d/a*", "a\\b* /tmp/d/../d/a.txt"),
    ],
)
def test_paths_stand_for_patterns_that_match_them(script: str, out: str) -> None:
    outcome = sh(FILES + script)
    assert (outcome.out, outcome.err) == (out + "\n", "")


def test_more_paths_than_a_command_takes_are_refused() -> None:
    outcome = sh(
        FILES
        + "for i in $(seq 1 130); do touch $i; done; x='* * * * * * * * * * *'; x=\"$x $x $x $x\"; echo $x $x $x $x"
    )
    assert "argument list too long" in outcome.err
