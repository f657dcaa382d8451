"""Functions of sprig, compared with sprig v3.3: `recorded.json` has the results of templates in Go."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from steersman.nodes.stages.go_template.template import Template, data_of
from steersman.nodes.stages.go_template.values import TemplateError
from steersman.nodes.stages.sprig.all import SPRIG
from steersman.nodes.stages.sprig.checks import by_chance

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("recorded.json").read_text())
DATA = json.dumps(RECORDED["data"])


@pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda case: case["template"][:40])
def test_a_template_makes_what_sprig_makes_of_it(case: dict[str, str]) -> None:
    if "text" in case:
        assert Template(case["template"], SPRIG).render(data_of(DATA)) == case["text"]
        return
    with pytest.raises(TemplateError):
        Template(case["template"], SPRIG).render(data_of(DATA))


@pytest.mark.parametrize(
    "name", ["env", "expandenv", "getHostByName", "genCA", "genPrivateKey", "bcrypt", "htpasswd", "derivePassword"]
)
def test_what_reads_the_process_or_computes_for_long_is_not_there(name: str) -> None:
    with pytest.raises(TemplateError, match=f'function "{name}" not defined'):
        Template(f'{{{{ {name} "a" }}}}', SPRIG)


def test_a_time_is_passed_on_and_printed() -> None:
    assert Template('{{ (toDate "2006" "2017").Year }} {{ toJson (toDate "2006" "2017") }}', SPRIG).render(None) == (
        '2017 "2017-01-01T00:00:00Z"'
    )
    assert len(Template("{{ now | unixEpoch }}", SPRIG).render(None)) == 10
    assert Template("{{ ago now }}", SPRIG).render(None) == "0s"


def test_chance_repeats_itself_with_its_seed() -> None:
    template = "{{ randAlphaNum 8 }} {{ randInt 3 9 }} {{ uuidv4 }} {{ randAlpha 3 }} {{ randNumeric 4 }}"
    texts = [Template(template, by_chance(Random(seed))).render(None) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    letters, number, uuid, *_ = texts[0].split(" ")
    assert (len(letters), uuid[14]) == (8, "4")
    assert 3 <= int(number) < 9


@pytest.mark.parametrize("name", ["pick", "omit"])
def test_keys_of_maps_are_strings(name: str) -> None:
    with pytest.raises(TemplateError, match=f"{name}: wrong type for value; expected string"):
        Template(f'{{{{ {name} (dict "a" 1) (dict) }}}}', SPRIG).render(None)


@pytest.mark.parametrize(
    "use",
    ["{{ $d }}", "{{ toJson $d }}", '{{ printf "%s" $d }}', "{{ print $d }}", "{{ deepEqual $d $e }}"],
)
def test_a_map_that_contains_itself_is_refused_where_it_is_used(use: str) -> None:
    maps = '{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ $e := dict }}{{ $_ := set $e "a" $e }}'
    assert Template(maps, SPRIG).render(None) == ""
    with pytest.raises(TemplateError, match="nested too deeply"):
        Template(maps + use, SPRIG).render(None)


@pytest.mark.parametrize(
    "use",
    ["{{ $d }}", "{{ toJson $d }}", "{{ print $d }}", "{{ deepEqual $d $e }}", "{{ $_ := merge $e $d }}"],
)
def test_maps_that_share_parts_are_refused_before_they_are_gone_through(use: str) -> None:
    steps = '{{ $d = dict "a" $d "b" $d }}{{ $e = dict "a" $e "b" $e }}' * 60
    maps = "{{ $d := dict }}{{ $e := dict }}" + steps
    with pytest.raises(TemplateError, match="a value of more than 65536 parts"):
        Template(maps + use, SPRIG).render(None)


@pytest.mark.parametrize(
    "template",
    [
        '{{ repeat 999999999 "a" }}',
        '{{ indent 999999999 "a" }}',
        "{{ until 999999999 }}",
        "{{ seq 999999999 }}",
        '{{ replace "" "xxxxxxxxxxxx" (repeat 900000 "a") }}',
        "{{ untilStep 0 99999999 1 }}",
    ],
)
def test_what_would_be_too_much_is_refused(template: str) -> None:
    with pytest.raises(TemplateError):
        Template(template, SPRIG).render(None)
