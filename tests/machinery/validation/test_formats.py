"""Formats of single values: the valid values, and the errors of others."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.machinery.errors.field import Path
from steersman.machinery.validation import conditions, domains, formats

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
CONFIG_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
ENV = (
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not "
    "start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is "
    "'[-._a-zA-Z][-._a-zA-Z0-9]*')"
)
RELAXED_ENV = "a valid environment variable name must consist only of printable ASCII characters other than '='"
WILDCARD = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
    r"regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
C_IDENTIFIER = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)


@pytest.mark.parametrize(
    ("check", "good"),
    [
        (formats.is_dns1123_label, ["a", "0", "a-b", "x" * 63]),
        (formats.is_dns1123_subdomain, ["a", "a.b", "0.1", ".".join(["x" * 50] * 4)]),
        (formats.is_dns1123_subdomain_with_underscore, ["_a._b", "a_b.c"]),
        (formats.is_wildcard_dns1123_subdomain, ["*.a", "*.a.b"]),
        (formats.is_dns1035_label, ["a", "a-0"]),
        (formats.is_qualified_name, ["a", "A_b.c-d", "example.com/a", "x" * 63, f"{'x.' * 126}x/a"]),
        (formats.is_valid_label_value, ["", "a", "A_b.c", "x" * 63]),
        (formats.is_c_identifier, ["_", "a1", "A_"]),
        (formats.is_valid_port_name, ["a", "8a", "x" * 15, "a-b"]),
        (formats.is_valid_percent, ["0%", "100%", "007%"]),
        (formats.is_http_header_name, ["X-A", "-"]),
        (formats.is_relaxed_env_var_name, ["A", "1 ~!", ".", ".."]),
        (formats.is_config_map_key, ["a", ".a", "A_b-c.d"]),
        (formats.is_path_segment_name, ["a", "a:b", "...", "é"]),
    ],
)
def test_good_values_pass(check: Any, good: list[Any]) -> None:
    assert [(value, check(value)) for value in good] == [(value, []) for value in good]


@pytest.mark.parametrize(
    ("check", "value", "messages"),
    [
        (formats.is_dns1123_label, "", [LABEL]),
        (formats.is_dns1123_label, "a.b", ["must not contain dots"]),
        (formats.is_dns1123_label, "a\n", [LABEL]),
        (formats.is_dns1123_label, "X" * 64, ["must be no more than 63 characters", LABEL]),
        (formats.is_dns1123_label, "é" * 32, ["must be no more than 63 characters", LABEL]),
        (formats.is_dns1123_subdomain, "a..b", [SUBDOMAIN]),
        (formats.is_dns1123_subdomain, "٣", [SUBDOMAIN]),
        (formats.is_dns1123_subdomain, "x" * 254, ["must be no more than 253 characters"]),
        (formats.is_wildcard_dns1123_subdomain, "*.*.a", [WILDCARD]),
        (formats.is_dns1035_label, "0a", [LABEL_1035]),
        (formats.is_qualified_name, "", ["name part must be non-empty", NAME_PART]),
        (formats.is_qualified_name, "/a", ["prefix part must be non-empty"]),
        (formats.is_qualified_name, "A.b/c", [f"prefix part {SUBDOMAIN}"]),
        (formats.is_qualified_name, f"{'x' * 254}/a", ["prefix part must be no more than 253 bytes"]),
        (formats.is_qualified_name, "x" * 64, ["name part must be no more than 63 bytes"]),
        (
            formats.is_qualified_name,
            "a/b/c",
            [
                f"{NAME_PART.replace('name part', 'a valid label key')} "
                "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ],
        ),
        (formats.is_valid_label_value, "-", [LABEL_VALUE]),
        (formats.is_valid_label_value, "x" * 64, ["must be no more than 63 bytes"]),
        (formats.is_c_identifier, "1a", [C_IDENTIFIER]),
        (
            formats.is_valid_port_name,
            "-A--123456789012",
            [
                "must be no more than 15 characters",
                "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                "must contain at least one letter (a-z)",
                "must not contain consecutive hyphens",
                "must not begin or end with a hyphen",
            ],
        ),
        (
            formats.is_valid_percent,
            "50",
            [
                "a valid percent string must be a numeric string followed by an ending '%' "
                "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            ],
        ),
        (
            formats.is_http_header_name,
            "X_A",
            [
                "a valid HTTP header must consist of alphanumeric characters or '-' "
                "(e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"
            ],
        ),
        (formats.is_relaxed_env_var_name, "a=b", [RELAXED_ENV]),
        (formats.is_relaxed_env_var_name, "é", [RELAXED_ENV]),
        (formats.is_relaxed_env_var_name, "", ["environment variable name must be non-empty"]),
        (formats.is_config_map_key, "bad key!", [CONFIG_KEY]),
        (formats.is_config_map_key, ".", ["must not be '.'"]),
        (formats.is_config_map_key, "..a", ["must not start with '..'"]),
        (formats.is_config_map_key, "x" * 254, ["must be no more than 253 characters"]),
        (formats.is_path_segment_name, ".", ["may not be '.'"]),
        (formats.is_path_segment_name, "a/b%", ["may not contain '/'", "may not contain '%'"]),
    ],
)
def test_bad_values_are_told_why(check: Any, value: str, messages: list[Any]) -> None:
    assert check(value) == messages


@pytest.mark.parametrize("port", [0, 65536, -1])
def test_bad_port_numbers_are_told_why(port: int) -> None:
    assert formats.is_valid_port_num(port) == ["must be between 1 and 65535, inclusive"]
    assert formats.is_valid_port_num(1) == formats.is_valid_port_num(65535) == []


def test_ids_are_bounded() -> None:
    assert formats.is_valid_user_id(0) == formats.is_valid_group_id(2**31 - 1) == []
    assert formats.is_valid_user_id(2**31) == ["must be between 0 and 2147483647, inclusive"]
    assert formats.is_valid_group_id(-1) == ["must be between 0 and 2147483647, inclusive"]


@given(st.text("aB0-._/é\n", max_size=12))
def test_label_keys_hold_what_their_parts_allow(value: Any) -> None:
    prefix, slash, name = value.rpartition("/")
    expected = bool(name) and not formats.is_valid_label_value(name)
    if slash:
        expected = expected and not formats.is_dns1123_subdomain(prefix)
    assert (formats.is_qualified_name(value) == []) is expected


@given(st.text("aB0-._é\n", max_size=12))
def test_labels_are_subdomains_and_config_keys(value: Any) -> None:
    if not formats.is_dns1123_label(value):
        assert formats.is_dns1123_subdomain(value) == []
        assert formats.is_config_map_key(value) == []
        assert formats.is_valid_label_value(value) == []


def test_long_text_is_judged_in_linear_time() -> None:
    assert formats.is_dns1123_subdomain("a-" * 500_000)
    assert formats.is_qualified_name("a." * 500_000)


HERE = Path("p")


@pytest.mark.parametrize(
    ("check", "value", "errors"),
    [
        (domains.is_fully_qualified_name, "a.b.c", []),
        (domains.is_fully_qualified_name, "", ["p: Required value"]),
        (domains.is_fully_qualified_name, "A", [f'p: Invalid value: "A": {SUBDOMAIN}']),
        (
            domains.is_fully_qualified_name,
            "a.b",
            ['p: Invalid value: "a.b": should be a domain with at least three segments separated by dots'],
        ),
        (domains.is_fully_qualified_domain_name, "a.b.", []),
        (
            domains.is_fully_qualified_domain_name,
            "a.",
            ['p: Invalid value: "a": should be a domain with at least two segments separated by dots'],
        ),
        (
            domains.is_fully_qualified_domain_name,
            f"a.{'x' * 64}",
            [f'p: Invalid value: "{"x" * 64}": must be no more than 63 characters'],
        ),
        (domains.is_domain_prefixed_path, "a.io/b/c%20", []),
        (
            domains.is_domain_prefixed_path,
            "a.io/",
            ['p: Invalid value: "a.io/": must be a domain-prefixed path (such as "acme.io/foo")'],
        ),
        (
            domains.is_domain_prefixed_path,
            "a.io/ ",
            [
                'p: Invalid value: " ": Invalid path '
                r"(regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')"
            ],
        ),
    ],
)
def test_domains_are_judged(check: Any, value: str, errors: list[Any]) -> None:
    assert list(map(str, check(value, HERE))) == errors


@given(st.text("ab-._A", max_size=40))
def test_long_names_are_judged_as_short_ones(text: Any) -> None:
    for judge in (formats.is_dns1123_subdomain, formats.is_dns1123_subdomain_with_underscore):
        long = f"{text}{'.a' * 3000}"
        assert (len(judge(long)) == 1) == (judge(f"{text}.a") == [])


PATTERNS = [
    formats.LABEL_PATTERN,
    formats.DNS1035_LABEL_PATTERN,
    formats.QUALIFIED_NAME_PATTERN,
    formats.LABEL_VALUE_PATTERN,
    formats.C_IDENTIFIER_PATTERN,
    formats.HTTP_HEADER_NAME_PATTERN,
    formats.CONFIG_MAP_KEY_PATTERN,
    "[-a-z0-9]+",
    "[ -<>-~]*",
    conditions.REASON_PATTERN,
    domains.HTTP_PATH_PATTERN,
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_long_texts_match_as_short_ones_do(pattern: str) -> None:
    matches = formats.characters(pattern)
    for char in "aZ0-_.:/= \n\u00e9\u212a":
        for before, after in ((0, 6000), (6000, 0), (4095, 2000), (4096, 2000), (3000, 3000)):
            text = "a" * before + char + "a" * after
            assert bool(matches(text)) == bool(re.compile(pattern, re.ASCII).fullmatch(text))


TEXTS = st.builds(
    lambda text, times: text * times, st.text("aZ0-._\n\u00e9", max_size=16), st.sampled_from((1, 2, 8, 16))
)


@given(TEXTS)
def test_what_is_usual_is_what_the_rule_lets_through(text: str) -> None:
    def follows(pattern: str, longest: int) -> bool:
        return bool(re.compile(pattern, re.ASCII).fullmatch(text)) and len(text) <= longest

    assert bool(formats.is_usual_label(text)) == follows(formats.LABEL_PATTERN, 63)
    assert bool(formats.is_usual_subdomain(text)) == follows(formats.SUBDOMAIN_PATTERN, 253)
    assert bool(formats.is_usual_name(text)) == follows(formats.QUALIFIED_NAME_PATTERN, 63)
    is_port_name = follows("[-a-z0-9]+", 15) and "a" in text and "--" not in text and text.strip("-") == text
    assert bool(formats.is_usual_port_name(text)) == is_port_name == (formats.is_valid_port_name(text) == [])


@given(st.dictionaries(TEXTS, TEXTS, max_size=3))
def test_usual_labels_are_those_that_were_found_right(labels: dict[str, str]) -> None:
    keys = [formats.is_qualified_name(key) for key in labels]
    values = [formats.is_valid_label_value(value) for value in labels.values()]
    assert formats.are_known_qualified_names(labels) == (not any(keys))
    assert formats.are_usual_labels(labels) == (not any(keys) and not any(values))


def test_only_so_many_names_are_remembered_and_no_long_ones() -> None:
    for number in range(formats.MOST_KNOWN + 10):
        assert not formats.is_qualified_name(f"example.com/n{number}")
    assert formats.is_qualified_name("a" * 5000)
    assert 0 < len(formats.known_keys) <= formats.MOST_KNOWN
    assert max(map(len, formats.known_keys)) <= 253 + 1 + 63
