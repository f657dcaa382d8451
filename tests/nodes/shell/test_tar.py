"""Archives of files in simulated containers."""

from __future__ import annotations

import io
import tarfile
import time

from steersman.nodes.shell.effects import MOST_FILE_BYTES, Execution, Wait, World, Write, with_input
from steersman.nodes.shell.shell import Shell


def world(**files: bytes) -> World:
    return World(
        "pod", {}, lambda: 1_800_000_000.0, {f"/{name.replace('__', '/')}": data for name, data in files.items()}
    )


def run(execution: Execution) -> tuple[int, bytes, str, int]:
    """Return the exit code, the output, the error output, and the number of pauses."""
    out, err, turns = b"", "", 0
    while True:
        try:
            effect = next(execution)
        except StopIteration as done:
            return done.value, out, err, turns
        match effect:
            case Write(1, data):
                out += data
            case Write(_, data):
                err += data.decode()
            case Wait():
                turns += 1


def tar(it: World, *words: str, stdin: bytes = b"") -> tuple[int, bytes, str, int]:
    return run(with_input(Shell(it).run(["tar", *words]), stdin))


def archive(**files: bytes) -> bytes:
    taken = io.BytesIO()
    with tarfile.open(fileobj=taken, mode="w") as made:
        for name, data in files.items():
            member = tarfile.TarInfo(name.replace("__", "/"))
            member.size = len(data)
            made.addfile(member, io.BytesIO(data))
    return taken.getvalue()


def contents(data: bytes) -> dict[str, bytes | None]:
    with tarfile.open(fileobj=io.BytesIO(data)) as read:
        found = {each.name: read.extractfile(each) for each in read.getmembers()}
        return {name: None if source is None else source.read() for name, source in found.items()}


def test_a_folder_is_packed_with_all_below_it() -> None:
    binary = bytes(range(256)) * 5
    code, out, err, _ = tar(world(data__a=b"one\n", data__in__b=binary, other=b""), "cf", "-", "/data")
    assert (code, err) == (0, "tar: removing leading '/' from member names\n")
    assert contents(out) == {"data": None, "data/a": b"one\n", "data/in": None, "data/in/b": binary}


def test_one_file_is_packed_by_the_name_that_is_given() -> None:
    it = world(tmp__x=b"1")
    it.folder = "/tmp"
    assert contents(tar(it, "-cf", "-", "x")[1]) == {"x": b"1"}


def test_missing_files_are_reported() -> None:
    code, out, err, _ = tar(world(), "cf", "-", "nothing")
    assert code == 1
    assert err == "tar: nothing: No such file or directory\ntar: error exit delayed from previous errors\n"
    assert contents(out) == {}


def test_files_are_put_below_a_folder() -> None:
    it = world(tmp__old=b"kept", tmp__a=b"before")
    assert tar(it, "-xmf", "-", "-C", "/tmp", stdin=archive(a=b"\n\n\0", d__b=b"2"))[0] == 0
    assert it.files == {"/tmp/old": b"kept", "/tmp/a": b"\n\n\0", "/tmp/d/b": b"2"}


def test_what_an_archive_says_of_its_files_is_listed() -> None:
    assert tar(world(), "tf", "-", stdin=archive(a=b"1", d__b=b"2"))[1] == b"a\nd/b\n"


def test_an_archive_may_be_a_file() -> None:
    it = world(a=b"1")
    assert tar(it, "cf", "/tmp/all.tar", "a")[0] == 0
    assert tar(it, "xf", "/tmp/all.tar", "-C", "/home")[0] == 0
    assert it.files["/home/a"] == b"1"


def test_more_than_there_is_room_for_is_refused() -> None:
    it = world()
    code, _, err, _ = tar(it, "xf", "-", stdin=archive(a=b"1", b=bytes(MOST_FILE_BYTES)))
    assert (code, err) == (1, "tar: b: No space left on device\n")
    assert it.files == {"/a": b"1"}
    assert tar(it, "xf", "-", stdin=bytes(5 * MOST_FILE_BYTES))[0] == 1


def _with(kind: bytes, target: str = "") -> bytes:
    taken = io.BytesIO()
    with tarfile.open(fileobj=taken, mode="w") as made:
        member = tarfile.TarInfo("l")
        member.type, member.linkname = kind, target
        made.addfile(member)
    return taken.getvalue()


def test_links_lead_to_files_of_the_container() -> None:
    it = world(etc__a=b"1")
    assert tar(it, "xf", "-", "-C", "/tmp", stdin=_with(tarfile.SYMTYPE, "../etc/a"))[::2] == (0, "")
    assert it.read("/tmp/l") == b"1"
    with tarfile.open(fileobj=io.BytesIO(tar(it, "cf", "-", "/tmp")[1])) as read:
        assert read.getmember("tmp/l").linkname == "../etc/a"
    assert tar(it, "xf", "-", stdin=_with(tarfile.SYMTYPE, "l"))[0] == 0
    assert it.read("/l") is None


def test_long_names_and_extended_headers_are_read() -> None:
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT):
        taken, name = io.BytesIO(), "/".join(["folder"] * 20)
        with tarfile.open(fileobj=taken, mode="w", format=form) as made:
            member = tarfile.TarInfo(name)
            member.size = 3
            made.addfile(member, io.BytesIO(b"abc"))
        it = world()
        assert tar(it, "xf", "-", stdin=taken.getvalue())[0] == 0
        assert it.files == {f"/{name}": b"abc"}


def test_an_extended_header_is_read_in_linear_time() -> None:
    """In some versions, Python's own reader takes quadratic time for an unterminated number."""
    for text in (b"1" * 60_000, b"5 a=\n" * 12_000):
        header = tarfile.TarInfo("x")
        header.type, header.size = tarfile.XHDTYPE, len(text)
        data = header.tobuf(tarfile.USTAR_FORMAT) + text + bytes(-len(text) % 512) + archive(f=b"")
        started_at = time.thread_time()
        assert tar(world(), "xf", "-", stdin=data)[0] == int(text.startswith(b"11"))
        assert time.thread_time() - started_at < 0.5


def test_a_folder_that_is_not_there_is_not_made() -> None:
    code, _, err, _ = tar(world(), "xf", "-", "-C", "/nodir", stdin=archive(a=b"1"))
    assert (code, err) == (1, "tar: can't change directory to '/nodir': No such file or directory\n")
    it = world()
    assert tar(it, "xf", "-", "-C", "/usr/share/nginx/html", stdin=archive(a=b"1"))[0] == 0
    assert it.files == {"/usr/share/nginx/html/a": b"1"}


def test_devices_and_what_is_no_archive_are_refused() -> None:
    refusal = tar(world(), "xf", "-", stdin=_with(tarfile.CHRTYPE))[2]
    assert refusal == "tar: can't create l: Operation not permitted\n"
    assert tar(world(), "xf", "-", stdin=b"no archive" * 100)[2] == "tar: invalid tar magic\n"
    assert tar(world(), "xzf", "-")[2] == "tar: unrecognized option: z\n"
    assert tar(world(), "-f")[2] == "tar: option requires an argument -- 'f'\n"


def test_others_run_between_many_files() -> None:
    many = {f"f{number}": b"" for number in range(500)}
    code, out, _, turns = tar(world(**many), "cf", "-", *many)
    assert (code, len(contents(out))) == (0, 500)
    assert turns >= 60
    it = world()
    code, _, _, turns = tar(it, "xf", "-", stdin=out)
    assert (code, len(it.files)) == (0, 500)
    assert turns >= 60
