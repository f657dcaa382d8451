"""Static tokens: file format and users."""

import logging
from pathlib import Path

import pytest

from steersman.authentication.token_file import StaticTokens, TokenFileError, parse_token_file
from steersman.authentication.user import UserInfo

AUDIENCES = ("https://kubernetes.default.svc.cluster.local",)


def test_columns_are_token_user_uid_and_groups() -> None:
    users = parse_token_file('t1,alice,1,"dev,ops"\nt2,bob,2\nt3,carol,3,\n\nt4,"d,e",4,one,ignored\n', "f")
    assert users == {
        "t1": UserInfo("alice", "1", ("dev", "ops")),
        "t2": UserInfo("bob", "2"),
        "t3": UserInfo("carol", "3", ("",)),
        "t4": UserInfo("d,e", "4", ("one",)),
    }


def test_a_line_of_two_columns_is_refused() -> None:
    with pytest.raises(TokenFileError) as refused:
        parse_token_file("t1,alice,1\nsecret,bob\n", "tokens.csv")
    assert str(refused.value) == (
        "token file 'tokens.csv' must have at least 3 columns (token, user name, user uid), found 2"
    )


def test_an_open_quote_is_refused() -> None:
    with pytest.raises(TokenFileError):
        parse_token_file('t1,"alice,1\n', "f")


def test_empty_and_repeated_tokens_are_told_without_the_token(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        users = parse_token_file(",nobody,0\nhush,alice,1\nhush,bob,2\n", "f")
    assert users == {"hush": UserInfo("bob", "2")}
    assert "record number '1'" in caplog.text
    assert "record number '3'" in caplog.text
    assert "hush" not in caplog.text


def test_users_of_a_file_are_authenticated(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text('t1,alice,1,"dev,ops"\n')
    tokens = StaticTokens.load(path, AUDIENCES)
    identity = tokens.authenticate_token("t1", AUDIENCES)
    assert identity is not None
    assert identity.user == UserInfo("alice", "1", ("dev", "ops", "system:authenticated"))
    assert identity.audiences == AUDIENCES
    assert tokens.authenticate_token("t", AUDIENCES) is None
    assert tokens.authenticate_token("", AUDIENCES) is None


def test_a_token_is_good_for_the_audiences_in_common() -> None:
    tokens = StaticTokens({"t": UserInfo("alice")}, ("a", "b"))
    identity = tokens.authenticate_token("t", ("b", "c"))
    assert identity is not None
    assert identity.audiences == ("b",)
    assert tokens.authenticate_token("t", ("c",)) is None
    assert tokens.authenticate_token("t", ()) is not None


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_bytes(b"t1,\xff\xfe,1\n")
    path.chmod(0o600)
    with pytest.raises(TokenFileError, match="is not text in UTF-8"):
        StaticTokens.load(path)


def test_a_file_without_tokens_and_one_that_others_can_read_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "tokens.csv"
    path.write_bytes(b"")
    path.chmod(0o604)
    StaticTokens.load(path)
    assert caplog.messages == [
        f"others can read {path} (mode 0604): chmod 600 {path}",
        f"token file '{path}' holds no token",
    ]
