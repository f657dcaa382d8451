"""Tests that the documents describe the code correctly."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from steersman.api.index import ON_REQUEST as OFF_BY_DEFAULT
from steersman.cli.flags import NOT_SUPPORTED
from steersman.cli.main import main
from steersman.controlplane import on_request
from steersman.controlplane.admission import NOTHING_TO_ADMIT, PLUGINS
from steersman.controlplane.options import FLAGS, SECTIONS, Options
from steersman.controlplane.resources import AGGREGATOR, API_EXTENSIONS, KUBE_API
from steersman.net.limits import Limits
from steersman.rest.resource import OtherVersion, Resource
from tests.docs.markdown_documents import FILES, ROOT, Document, plain

Documents = dict[str, Document]

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SOURCES = ROOT / "src" / "steersman"
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
SERVED = [
    (resource, other)
    for resource in (*KUBE_API, *AGGREGATOR, *API_EXTENSIONS)
    for other in (None, *resource.other_versions)
]
KUBE_APISERVER_FLAGS = {
    name: default
    for line in (ROOT / "tests" / "cli" / "kube_apiserver_flags.txt").read_text().splitlines()
    for name, _, default in [line.partition(" ")]
}
"""Flags of kube-apiserver with their defaults, as it shows them at /flagz."""
_LINK = re.compile(r"\[[^]]*]\(([^)\s]+)\)")


def api_version(resource: Resource[Any], other: OtherVersion | None) -> str:
    group, version = (other.group, other.version) if other else (resource.group, resource.version)
    return f"{group}/{version}" if group else version


ON_REQUEST = [
    (resource, other)
    for resource in on_request.kube_api(lambda *_: True)
    for other in (None, *resource.other_versions)
    if tuple(api_version(resource, other).split("/")) in OFF_BY_DEFAULT
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_internal_links_resolve(path: Path) -> None:
    broken = []
    for target in _LINK.findall(Document(path).prose):
        if "://" in target or target.startswith("reference/"):  # those pages are made when the site is built
            continue
        name, _, fragment = target.partition("#")
        file = path.parent / name if name else path
        if not file.exists() or (fragment and fragment not in Document(file).anchors()):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_make_targets_that_are_named_exist(path: Path) -> None:
    named = set(re.findall(r"(?:`|\$ )make ([a-z-]+)", Document(path).text))
    assert named <= TARGETS


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_that_are_named_exist(path: Path) -> None:
    named = set(re.findall(r"\b(?:docs|bench|tools|tests)/[\w./-]*\w", Document(path).text))
    assert [name for name in sorted(named) if not (ROOT / name).exists() and not (path.parent / name).exists()] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_sources_that_are_named_exist(path: Path) -> None:
    """Names such as GROUP stand for names of the reader's."""
    named = set(re.findall(r"\bsrc/steersman/[\w./-]*\w", Document(path).text))
    names = [name for name in sorted(named) if not re.search(r"\b(GROUP|VERSION|PLURAL)\b", name)]
    assert [name for name in names if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_programs_that_are_named_exist(path: Path) -> None:
    for name in re.findall(r"python -m ((?:bench|tools)\.[a-z]\w*)", Document(path).text):
        program = ROOT / name.replace(".", "/")
        assert program.with_suffix(".py").exists() or (program / "__main__.py").exists(), name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_commands_that_are_named_exist(path: Path) -> None:
    named = set(re.findall(r"(?:`|\$ |/)steersman ([a-z]+(?:-[a-z]+)*)", Document(path).text))
    assert named <= set(main.commands)


def test_the_readme_names_both_commands_of_a_first_visit(documents: Documents) -> None:
    assert {"`make up`", "`make test`"} <= set(re.findall(r"`make \w+`", documents["README"].text))


def test_every_limit_of_connections_has_its_default_and_meaning(reference: Documents) -> None:
    rows = reference["limits"].table("Limits of connections")
    assert [plain(name) for name, _, _ in rows] == list(Limits.__struct_fields__)
    assert all(default and meaning for _, default, meaning in rows)


def flags_of(text: str) -> list[str]:
    return re.findall(r"`--([\w-]+)`", text)


def test_flags_that_differ_are_told_once(documents: Documents) -> None:
    headings = ("Other defaults", "Other effects", "Flags of Steersman alone")
    named = [
        name
        for heading in headings
        for row in documents["compatibility-flags"].table(heading)
        for name in flags_of(row[0])
    ]
    assert len(named) == len({*named})
    assert {*named} <= set(FLAGS)


def test_every_flag_of_kube_apiserver_is_accepted_or_refused_by_name(reference: Documents) -> None:
    page = reference["flags"]
    accepted = [name for title in SECTIONS for row in page.table(title) for name in flags_of(row[0])]
    assert sorted(accepted) == sorted(FLAGS)
    refused = flags_of(page.section("Refused flags").replace("`--NAME`", ""))
    assert refused == sorted(NOT_SUPPORTED - {"help"})
    assert {*KUBE_APISERVER_FLAGS} <= {*accepted, *refused, "help"}


def test_flags_with_another_default_than_kube_apiservers_are_in_the_table(documents: Documents) -> None:
    ours = {name: text.strip("[]") for name, text in Options(data_dir=Path("/")).as_flags().items()}
    theirs = {name: text.strip("[]") for name, text in KUBE_APISERVER_FLAGS.items()}
    told = {
        flags_of(flag)[0]: (plain(upstream).replace("required", ""), plain(here))
        for flag, upstream, here in documents["compatibility-flags"].table("Other defaults")
    }
    assert told == {name: (theirs[name], ours[name]) for name in FLAGS if name in theirs and theirs[name] != ours[name]}


def test_flags_that_kube_apiserver_does_not_have_are_told_with_their_defaults(documents: Documents) -> None:
    rows = {
        flags_of(row[0])[0]: plain(row[1]) for row in documents["compatibility-flags"].table("Flags of Steersman alone")
    }
    assert set(rows) == {name for name, flag in FLAGS.items() if flag.is_own}
    defaults = Options(data_dir=Path("/")).as_flags()
    for name, shown in rows.items():
        assert shown == defaults[name].strip("[]") or name == "data-dir", name


def resources_of(cell: str) -> Iterator[tuple[str, str]]:
    """Yield plural and subresources of each resource in a cell such as `nodes (proxy, status), secrets`."""
    yield from re.findall(r"(\w+)(?: \(([^)]*)\))?(?:, |$)", cell)


def subresources_of(resource: Resource[Any]) -> str:
    return ", ".join(each.name for each in resource.subresources)


def test_every_resource_is_in_the_table_of_resources_and_no_other(reference: Documents) -> None:
    table = reference["resources"].table("Resources")
    told = [(api, *each) for api, cell in table for each in resources_of(cell)]
    expected = [(api_version(*served), served[0].plural, subresources_of(served[0])) for served in SERVED]
    assert sorted(told) == sorted(expected)


def test_every_version_that_can_be_turned_on_is_in_its_table_and_no_other(reference: Documents) -> None:
    expected = set()
    for resource, other in ON_REQUEST:
        warning = (other or resource).deprecation_warning
        stored = resource.stored_as.rpartition("/")[2] or resource.version
        api = api_version(resource, other)
        expected.add((api, resource.plural, subresources_of(resource), stored, "yes" if warning else "no"))
    table = reference["resources"].table("Versions that are off by default")
    assert {
        (api, *each, stored, warned) for api, cell, stored, warned in table for each in resources_of(cell)
    } == expected


def test_no_kind_of_the_table_is_refused_when_it_is_created() -> None:
    assert [resource.plural for resource, _ in SERVED if resource.not_yet] == []


def test_admission_plugins_are_those_of_the_table_in_order(compatibility: Document) -> None:
    listed = compatibility.section("Admission plugins").partition(":\n\n")[2].partition(".\n\n")[0]
    told = " ".join(listed.split()).split(", ")
    assert told == [each.name if each.on_by_default else f"{each.name} (off)" for each in PLUGINS]


def test_admission_plugins_that_are_missing_are_named(compatibility: Document) -> None:
    match = re.search(r"These (\d+) are not: ([^.]+)\.", compatibility.section("Admission plugins"))
    assert match is not None
    missing = match[2].replace("\n", " ").split(", ")
    assert int(match[1]) == len(missing)
    assert {*missing} <= NOTHING_TO_ADMIT
    assert len(missing) + sum(each.on_by_default for each in PLUGINS) == 27


def test_every_filter_is_in_the_table_of_filters(documents: Documents) -> None:
    rows = {
        row[0]: re.findall(r"With\w+", row[1]) for row in documents["compatibility-server"].table("Request filters")
    }
    assert set(rows) == {"always", "with a flag", "missing"}
    there = {
        name
        for file in (SOURCES / "endpoints" / "filters").glob("*.py")
        for name in re.findall(r"\((With\w+)\)", file.read_text().partition('"""\n')[0])
    }
    assert there <= {*rows["always"], *rows["with a flag"]}
    assert not there & {*rows["missing"]}


def test_floors_are_those_that_import_linter_holds(documents: Documents) -> None:
    layers = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    held = [re.findall(r"\w+", layer) for layer in layers]
    told = [re.findall(r"\w+", row[1]) for row in documents["architecture"].table("Floors")]
    assert told == held


def test_the_picture_of_the_floors_shows_those_of_the_table(documents: Documents) -> None:
    shown = re.findall(r'<text class="package"[^>]*>(\w+)<', (ROOT / "docs" / "images" / "floors.svg").read_text())
    assert shown == [name for row in documents["architecture"].table("Floors") for name in re.findall(r"\w+", row[1])]


def test_modules_on_the_map_exist(documents: Documents) -> None:
    text = documents["architecture"].text
    names = {file.relative_to(SOURCES).as_posix() for file in SOURCES.rglob("*.py")}
    unknown = []
    for named in set(re.findall(r"`([\w/*]+\.py)`", text)):
        if "GROUP" in named or named.startswith(("tools/", "tests/")):
            continue
        if not any(Path(name).match(named) for name in names):
            unknown.append(named)
    assert not unknown


def test_every_module_is_on_the_page_of_modules_with_its_summary(reference: Documents) -> None:
    page = reference["modules"]
    packages = sorted(each.parent for each in SOURCES.glob("*/__init__.py"))
    assert re.findall(r"^## (\w+)$", page.text, re.MULTILINE) == [each.name for each in packages]
    for package in packages:
        if package.name != "api":  # generated
            modules = {
                each.relative_to(package).as_posix() for each in package.rglob("*.py") if each.name != "__init__.py"
            }
            assert modules <= {plain(name) for name, _ in page.table(package.name)}, package.name


def test_every_primitive_of_work_answers_a_question(documents: Documents) -> None:
    rows = documents["architecture"].table("How work is done here")
    answers = [answer for _, answer in rows]
    told = {name for answer in answers for name in re.findall(r"`work\.(\w+)`", answer)}
    assert told == {file.stem for file in (SOURCES / "work").glob("[a-z]*.py")}
    for answer in answers:
        for module, calls in re.findall(r"`((?:work|net|controlplane)\.[\w.]+)`: ((?:`[^`]+`(?:, )?)+)", answer):
            found = import_module(f"steersman.{module}")
            for name in re.findall(r"`(?:await |with |async for item in )?(\w+)", calls):
                assert hasattr(found, name) or any(hasattr(each, name) for each in vars(found).values()), name


def test_every_dependency_is_explained_at_the_version_that_is_pinned(documents: Documents) -> None:
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    extras = PROJECT["project"]["optional-dependencies"]
    optional = [each for extra in ("gzip", "secretbox", "tracing") for each in extras[extra]]
    needed = [*PROJECT["project"]["dependencies"], *optional, *PROJECT["build-system"]["requires"][1:]]
    names = {re.split(r"[<>=~; ]", each)[0] for each in (*needed, *PROJECT["dependency-groups"]["dev"])}
    document = documents["dependencies"]
    rows = [*document.table("At run time"), *document.table("For development")]
    assert {row[0] for row in rows} == {f"{name} {pins[name]}" for name in names}


def test_the_readme_is_short_and_its_table_has_all_commands() -> None:
    readme = Document(ROOT / "README.md")
    assert len(readme.text.splitlines()) <= 150
    chosen = " ".join(row[1] for row in readme.table("Choose by what you do"))
    assert set(re.findall(r"`steersman (\w[\w-]*)", chosen)) == set(main.commands)
