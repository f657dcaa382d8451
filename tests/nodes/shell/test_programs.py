"""Programs that work on files and text."""

from __future__ import annotations

import pytest

from steersman.nodes.shell.effects import Missing
from tests.nodes.shell.running import sh


@pytest.mark.parametrize(
    ("program", "stdin", "out"),
    [
        ("head -n 2", b"a\nb\nc\n", "a\nb\n"),
        ("head -c 3", b"a\nb\nc\n", "a\nb"),
        ("tail -n 2", b"a\nb\nc", "b\nc"),
        ("head -n +1", b"a\nb", "a\n"),
        ("head -n -1", b"a\nb\nc\nd", "a\nb\nc\n"),
        ("head -n-1", b"a\nb\nc\n", "a\nb\n"),
        ("head -n -9", b"a\nb\n", ""),
        ("head -n -0", b"a\nb", "a\nb"),
        ("head -c -2", b"abcde", "abc"),
        ("head -c-9", b"abc", ""),
        ("seq 1 2000 | head -n -1000 | tail -n 1", b"", "1000\n"),
        ("tail -n -1", b"a\nb\n", "b\n"),
        ("tail -n +2", b"a\nb\nc", "b\nc"),
        ("tail -n+1", b"a\nb", "a\nb"),
        ("tail -n+9", b"a\nb", ""),
        ("tail -c +2", b"abc", "bc"),
        ("tail -1", b"a\n\n", "\n"),
        ("wc", b"a b\nc", "1 3 5\n"),
        ("wc -l", b"a\nb", "1\n"),
        ("grep b", b"a\nb\nabc", "b\nabc\n"),
        ("grep -v b", b"a\n\nb\nabc", "a\n\n"),
        ("grep -c ''", b"a\n\nb", "3\n"),
        ("grep -n '^b.$'", b"a\nbc\nbcd\n", "2:bc\n"),
        ("grep -oE '[0-9]+'", b"a1b22\n", "1\n"),
        ("grep -F '.'", b"ab\na.b\n", "a.b\n"),
        ("grep -iw B", b"ab\na b\n", "a b\n"),
        ("grep '^$' | wc -l", b"\n\na\n", "2\n"),
        ("sed 's/a/[&]/g;2d'", b"aa\nb\nca", "[a][a]\nc[a]"),
        ("sed -n '2,3p'", b"1\n2\n3\n4\n", "2\n3\n"),
        ("sed '$!d'", b"1\n2\n3", "3"),
        ("sed -E 's/(a+)(b)/\\2\\1/'", b"aab\n", "baa\n"),
        ("sed '/b/,$d'", b"a\nb\nc\n", "a\n"),
        ("sed -e 1i\\ x -e '$a y'", b"a\n", "x\na\ny\n"),
        ("sed 's|/|\\||2'", b"a/b/c\n", "a/b|c\n"),
        ("sort -rn", b"3\n10\n2\n", "10\n3\n2\n"),
        ("sort -u -k2", b"1 b\n2 a\n3 a\n", "2 a\n1 b\n"),
        ("sort", b"b\n\na", "\na\nb\n"),
        ("uniq -c", b"a\na\nb\n", "      2 a\n      1 b\n"),
        ("cut -d: -f1,3", b"a:b:c\nx\n", "a:c\nx\n"),
        ("cut -c2-3", b"abcd\n", "bc\n"),
        ("cut -f2-", b"a\tb\tc\n", "b\tc\n"),
        ("tr a-z A-Z", b"hello", "HELLO"),
        ("tr -d '\\n'", b"a\nb\n", "ab"),
        ("tr -s ' '", b"a   b", "a b"),
        ("awk '{print $2}'", b"a b\nc\n", "b\n\n"),
        ("awk -F: '{print $1, $3}'", b"a:b:c\n", "a c\n"),
        ("tee /tmp/f; cat /tmp/f", b"a\n", "a\na\n"),
        ("base64 | base64 -d", b"a\0b", "a\0b"),
        ("sha256sum", b"hi\n", "98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4  -\n"),
    ],
)
def test_programs_that_change_text(program: str, stdin: bytes, out: str) -> None:
    outcome = sh(program, stdin)
    assert (outcome.out, outcome.err) == (out, "")


@pytest.mark.parametrize(
    ("script", "out"),
    [
        ("mkdir -p /tmp/a/b; ls /tmp; rmdir /tmp/a/b; ls /tmp/a; test -d /tmp/a && echo still", "a\nstill\n"),
        ("cd /tmp; echo 1 > a; cp a b; mv b c; ls; rm a; ls; cat c", "a\nc\nc\n1\n"),
        (
            "cd /tmp; echo 1 > a; ln -s a b; ln a c; mkdir d; ln -sf /tmp/a d; ls . d; cat b c d/a; ln a b 2>&1",
            ".:\na\nb\nc\nd\nd:\na\n1\n1\n1\nln: b: File exists\n",
        ),
        ("cd /tmp; echo 1 > a; cp --force --update=none a b; rm --force nope b; ls --all", "a\n"),
        ("mkdir /tmp/d; echo 1 > /tmp/d/f; cp -r /tmp/d /tmp/e; rm -r /tmp/d; find /tmp", "/tmp\n/tmp/e\n/tmp/e/f\n"),
        ("mkdir /tmp/d; touch /tmp/d/x.txt /tmp/d/y; find /tmp -type f -name '*.txt'", "/tmp/d/x.txt\n"),
        (
            "touch /tmp/f; chmod u+x,go= /tmp/f; stat -c '%a %n' /tmp/f; test -x /tmp/f && echo runs",
            "700 /tmp/f\nruns\n",
        ),
        ("dd if=/dev/zero of=/tmp/z bs=1k count=3 2>/dev/null; wc -c < /tmp/z; du /tmp | cut -f1", "3072\n3\n"),
        ("df | tail -n 1 | awk '{print $1, $6}'", "overlay /\n"),
        ("ps | tail -n 1 | awk '{print $4}'", "ps\n"),
        ("ps -o pid,comm | head -n 2", "PID   COMMAND\n    1 sh\n"),
        ("basename /a/b.txt .txt; dirname /a/b", "b\n/a\n"),
        (
            "cd /tmp; echo 1 > a; ln -s a b; cat b; echo 2 >> b; cat a; readlink b; realpath b; ls",
            "1\n1\n2\na\n/tmp/a\na\nb\n",
        ),
        (
            "mkdir -p /data/v1; ln -s v1 /data/current; echo x > /data/current/f; ls -l /data | cut -c1-10; cat /data/v1/f;"
            " cd /data/current; pwd; ls; ls /data/current/",
            "lrwxrwxrwx\ndrwxr-xr-x\nx\n/data/current\nf\nf\n",
        ),
        (
            "cd /tmp; mkdir one two; ln -s one l; ln -sfn two l; readlink l; ln -s /etc/hostname l; ls two; rm l; ls",
            "two\nhostname\none\ntwo\n",
        ),
        (
            "cd /tmp; ln -s gone l; test -e l || test -L l && find . -type l; stat -c %F l; mv l m; readlink m",
            "./l\nsymbolic link\ngone\n",
        ),
        ("cd /tmp; echo 1 > a; ln a b; ln -s a c; cp c d; cp -d c e; find . -type f; readlink e", "./a\n./b\n./d\na\n"),
        ("cd /tmp; ln -s b a; ln -s a b; cat a 2>/dev/null || echo loops; rm -r a b; ls", "loops\n"),
        ("echo '#!/bin/sh\necho ran $1' > /tmp/s; chmod +x /tmp/s; /tmp/s it", "ran it\n"),
        ("command -v sed; type nosuch || echo none", "/bin/sed\nnone\n"),
        ("timeout 2 sleep 9; echo $?", "124\n"),
        ("printf '%s=%03d\\n' a 5 b 6", "a=005\nb=006\n"),
        ("[ -f /etc/hostname -a ! -d /nope ] && echo both", "both\n"),
    ],
)
def test_programs_on_files(script: str, out: str) -> None:
    outcome = sh(script)
    assert (outcome.out, outcome.err) == (out, "")


@pytest.mark.parametrize(
    ("script", "err"),
    [
        ("mkdir /nodir/a", "mkdir: can't create directory '/nodir/a': No such file or directory\n"),
        ("ln -s a /etc/hostname", "ln: /etc/hostname: File exists\n"),
        ("ln /no /tmp", "ln: /no: No such file or directory\n"),
        ("ln -s a /nodir/b", "ln: /nodir/b: No such file or directory\n"),
        ("cp /nope /tmp", "cp: can't stat '/nope': No such file or directory\n"),
        ("dd if=/dev/zero of=/tmp/z", "dd: error writing '/tmp/z': No space left on device\n"),
        ("grep '\\(a' /etc/hostname", "grep: bad regex '\\(a': missing ): (a\n"),
        ("cat /etc", "cat: '/etc': read error: Is a directory\n"),
        ("chmod +x /nope", "chmod: /nope: No such file or directory\n"),
        ("echo a > /etc", "sh: can't create /etc: Is a directory\n"),
    ],
)
def test_failures_are_reported(script: str, err: str) -> None:
    outcome = sh(script)
    assert outcome.code != 0
    assert err in outcome.err


def test_what_is_not_known_of_a_program_counts_as_missing() -> None:
    for script, name in (("awk 'BEGIN {x=1}'", "awk"), ("sed y/a/b/", "sed"), ("find / -exec rm {} +", "find")):
        assert sh(script).other == [Missing(name)]


@pytest.mark.parametrize(
    ("script", "out"),
    [
        ("x=a/b/c.tar.gz; echo ${x##*/} ${x%%.*} ${x#*/} ${x%.*} ${#x}", "c.tar.gz a/b/c b/c.tar.gz a/b/c.tar 12\n"),
        ("echo ${y:-d} ${y:=e} $y ${y:+f} ${z-${y}}", "d e e f e\n"),
        ("case foo.txt in *.md) echo md;; *.txt|*.log) echo txt;; *) echo no;; esac", "txt\n"),
        ("case 'a*' in 'a*') echo quoted;; esac; case ab in 'a*') echo no;; a?) echo one;; esac", "quoted\none\n"),
        ("f() { echo $1-$#; return 3; }; f a b; echo $?", "a-2\n3\n"),
        ("cat <<EOF\na $HOME\n\tb\nEOF\necho z", "a /root\n\tb\nz\n"),
        ("cat <<'EOF'\n$HOME\nEOF", "$HOME\n"),
        ("cat <<-EOF | grep x\n\tx\n\ty\n\tEOF\n", "x\n"),
        ("trap 'echo bye' EXIT; echo hi; exit 4", "hi\nbye\n"),
        ('set -- a \'b c\'; for x in "$@"; do echo "<$x>"; done; shift; echo $1 $#', "<a>\n<b c>\nb c 1\n"),
        ("(cd /tmp; X=9; pwd; exit 3); echo $? $(pwd) $X", "/tmp\n3 /\n"),
        ("x=$(echo a; exit 3); echo $x $?", "a 3\n"),
        ("X=1 sh -c 'echo $X'; echo ${X:-none}", "1\nnone\n"),
        ("echo 'echo sourced' > /tmp/f; . /tmp/f", "sourced\n"),
    ],
)
def test_more_of_the_language(script: str, out: str) -> None:
    outcome = sh(script)
    assert (outcome.out, outcome.err) == (out, "")
