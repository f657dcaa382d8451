"""Flags that depend on each other: every row of the table in docs/compatibility.md, and anonymous requests."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from steersman.cli.flags import parse
from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.option_ties import warnings_of
from steersman.controlplane.options import OptionsError
from steersman.server.certificates import CertificateFiles

DOCUMENT = Path(__file__).parents[2] / "docs/compatibility.md"
ROWS = re.findall(r"^\| (refused|warning) \| `(--\S.*?)` \| (.*) \|$", DOCUMENT.read_text(), re.MULTILINE)


def flags_of(text: str, tmp_path: Path, ca: Path) -> list[str]:
    """Return the flags of a row, with real files in place of placeholders."""
    file = tmp_path / "file"
    file.write_text("")
    return [each.replace("=FILE", f"={file}").replace("=CA", f"={ca}") for each in shlex.split(text)]


def test_the_table_has_rows_of_both_kinds() -> None:
    assert {kind for kind, _, _ in ROWS} == {"refused", "warning"}
    assert len(ROWS) > 25


@pytest.mark.parametrize(("flags", "words"), [(flags, words) for kind, flags, words in ROWS if kind == "refused"])
async def test_flags_that_contradict_each_other_are_refused(
    tmp_path: Path, hook_files: CertificateFiles, flags: str, words: str
) -> None:
    given = flags_of(flags, tmp_path, hook_files.ca)
    with pytest.raises(OptionsError) as refused:
        await ControlPlane(parse(["--storage=memory", "--secure-port=0", *given], tmp_path / "data")).start()
    assert str(refused.value) == words


@pytest.mark.parametrize(("flags", "words"), [(flags, words) for kind, flags, words in ROWS if kind == "warning"])
def test_flags_of_which_one_changes_another_are_warned_of(tmp_path: Path, flags: str, words: str) -> None:
    assert words in [*warnings_of(parse(shlex.split(flags), tmp_path))]


def test_usual_flags_are_not_warned_of(tmp_path: Path) -> None:
    usual = [
        "--requestheader-username-headers=x-remote-user",
        "--service-account-max-token-expiration=8760h",
        "--authorization-mode=Node,RBAC",
        "--strict-transport-security-directives=max-age=1,includeSubDomains,preload",
        "--service-account-jwks-uri=HTTPS://a",
    ]
    assert [*warnings_of(parse(usual, tmp_path))] == []
    off = ["--authorization-mode=AlwaysAllow", "--anonymous-auth=false"]
    assert [*warnings_of(parse(off, tmp_path))] == []


@pytest.mark.parametrize("explicit", [True, False])
async def test_nobody_without_credentials_reads_secrets_where_everything_is_allowed(
    start_control_plane: Any, client_of: Any, explicit: bool
) -> None:
    plane = await start_control_plane(authorization_mode=("AlwaysAllow",), anonymous_auth_is_given=explicit)
    for path in ("/api/v1/secrets", "/livez", "/version"):
        assert (await client_of(plane, "").get(path)).status == 401
    assert (await client_of(plane).get("/api/v1/secrets")).status == 200
