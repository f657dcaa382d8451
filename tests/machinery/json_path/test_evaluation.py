"""Results of JSONPath templates; the expected results are those of k8s.io/client-go."""

from typing import Any

import pytest

from steersman.machinery.json_path.evaluation import MAX_VISITED, find_results
from steersman.machinery.json_path.parser import JSONPathError, parse

DATA: dict[str, Any] = {
    "items": [{"name": "x", "v": 1}, {"name": "y", "v": 2, "w": True}, {"name": "z", "v": 3.5}],
    "text": "hé",
    "empty": {},
    "null": None,
    "keys": {"a.b": "dotted"},
}


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ("{.text}", [["hé"]]),
        ("{.missing.further}", [[]]),
        ("{.null}", [[None]]),
        ("{.null.further}", [[]]),
        ("{.items[*].name}", [["x", "y", "z"]]),
        ("{.items[-1].name}", [["z"]]),
        ("{.items[-2].name}", [["y"]]),
        ("{.items[0:2].name}", [["x", "y"]]),
        ("{.items[::2].name}", [["x", "z"]]),
        ("{.items[1:1].name}", [[]]),
        ("{.items[0,2].name}", [["x", "z"]]),
        ("{.items[?(@.w)].name}", [["y"]]),
        ('{.items[?(@.name=="y")].v}', [[2]]),
        ('{.items[?(@.name>="y")].name}', [["y", "z"]]),
        ("{.keys.a\\.b}", [["dotted"]]),
        ("{.text.*}", [[0x68, 0xC3, 0xA9]]),
        ("{.empty.*}", [[]]),
        ("{..name}", [["x", "y", "z"]]),
        ("a{.text}b", [["a"], ["hé"], ["b"]]),
        ("{range .items[*]}{.name}{end}{.text}", [["x"], ["y"], ["z"], ["hé"]]),
        ("{range .missing[*]}{.name}{end}{.text}", [["hé"]]),
        ("{'quoted'}", [["quoted"]]),
        ("{.items[0]['name','v']}", [["x", 1]]),
    ],
)
def test_values_are_found(template: str, found: object) -> None:
    assert find_results(parse(template), DATA) == found


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{.text[0]}", "string is not array or slice"),
        ("{.items[3]}", "array index out of bounds: index 3, length 3"),
        ("{.items[0:4]}", "array index out of bounds: index 3, length 3"),
        ("{.items[2:1]}", "starting index 2 is greater than ending index 1"),
        ("{.items[0:2:-1]}", "step must be > 0"),
        ("{.empty[?(@.a)]}", "map[] is not array or slice and cannot be filtered"),
        ("{.items[?(@.v==1.5)]}", "incompatible types for comparison"),
        ("{.items[?(@.w<true)]}", "invalid type for comparison"),
        ("{.items[?(@.v=1)]}", "unrecognized filter operator ="),
        ("{end}", "not in range, nothing to end"),
        ("{word}", "unrecognized identifier word"),
    ],
)
def test_what_cannot_be_evaluated_is_an_error(template: str, message: str) -> None:
    with pytest.raises(JSONPathError) as caught:
        find_results(parse(template), DATA)
    assert str(caught.value) == message


def test_an_index_outside_of_a_list_counts_as_something_in_a_filter() -> None:
    # upstream's evaluation gives back what it was given with the error, and a filter looks only whether it is empty
    assert find_results(parse("{[?(@[5])]}"), [[1], [2]]) == [[[1], [2]]]


def test_paths_that_find_more_than_there_is_are_given_up() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = {"a": deep, "b": [1, 2]}
    with pytest.raises(JSONPathError):
        find_results(parse("{..*..*..*}"), deep)
    assert len(find_results(parse("{[*]}"), list(range(MAX_VISITED // 4)))[0]) == MAX_VISITED // 4


def test_deep_values_need_no_deep_calls() -> None:
    deep: Any = "end"
    for _ in range(5000):
        deep = [deep]
    assert find_results(parse("{..}"), deep)[0][-1] == "end"
