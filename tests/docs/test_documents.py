"""Tests that the documents describe the code correctly."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from steersman.api.index import ON_REQUEST as OFF_BY_DEFAULT
from steersman.cli.main import main
from steersman.controlplane import on_request
from steersman.controlplane.admission import NOTHING_TO_ADMIT, PLUGINS
from steersman.controlplane.options import FLAGS, Options
from steersman.controlplane.resources import AGGREGATOR, API_EXTENSIONS, KUBE_API
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
DEFAULTS_IN_WORDS = {
    *("data-dir", "advertise-address", "tls-cipher-suites", "tls-curve-preferences", "requestheader-allowed-names"),
    *("oidc-ca-file", "oidc-username-prefix", "service-account-jwks-uri", "api-audiences"),
}
"""Flags without a default, or with one of the machine's, of which the table says what is done then."""
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
    named = set(re.findall(r"(?:`|\$ |/)steersman ([a-z]+)", Document(path).text))
    assert named <= set(main.commands)


def test_the_readme_names_both_commands_of_a_first_visit(documents: Documents) -> None:
    assert {"`make up`", "`make test`"} <= set(re.findall(r"`make \w+`", documents["README"].text))


def test_every_supported_flag_is_in_the_table_of_flags_and_no_other(compatibility: Document) -> None:
    rows = {plain(row[0]).removeprefix("--") for row in compatibility.table("Flags")}
    assert rows == set(FLAGS)


def test_defaults_of_flags_are_those_of_the_table(compatibility: Document) -> None:
    defaults = Options(data_dir=Path("/")).as_flags()
    for row in compatibility.table("Flags"):
        name, shown = plain(row[0]).removeprefix("--"), plain(row[1])
        default = defaults[name].removeprefix("[").removesuffix("]")
        assert shown == default or name in DEFAULTS_IN_WORDS, name


def test_flags_that_kube_apiserver_does_not_have_are_marked(compatibility: Document) -> None:
    marked = {
        plain(row[0]).removeprefix("--") for row in compatibility.table("Flags") if "not in kube-apiserver" in row[2]
    }
    assert marked == {name for name, flag in FLAGS.items() if flag.is_own}


def test_every_resource_is_in_the_table_of_resources_and_no_other(compatibility: Document) -> None:
    rows = [(row[0], row[1]) for row in compatibility.table("Resources")]
    assert sorted(rows) == sorted((api_version(*served), served[0].plural) for served in SERVED)


def test_subresources_and_defaults_are_those_of_the_table(compatibility: Document) -> None:
    rows = {row[:2]: row for row in compatibility.table("Resources")}
    for resource, other in SERVED:
        _, _, defaults, _, _, subresources = rows[api_version(resource, other), resource.plural]
        assert subresources == ", ".join(each.name for each in resource.subresources), resource.plural
        has_defaults = (other or resource).kind.has_defaults
        assert defaults == ("yes" if has_defaults else "none"), resource.plural


def test_every_version_that_can_be_turned_on_is_in_its_table_and_no_other(compatibility: Document) -> None:
    expected = set()
    for resource, other in ON_REQUEST:
        default, warning = (other or resource).kind.has_defaults, (other or resource).deprecation_warning
        subresources = ", ".join(each.name for each in resource.subresources)
        expected.add(
            (
                api_version(resource, other),
                resource.plural,
                "yes" if default else "none",
                resource.version,
                "yes" if warning else "no",
                subresources,
            )
        )
    assert set(compatibility.table("Versions that are off by default")) == expected


def test_kinds_that_cannot_be_created_are_marked_as_refused(compatibility: Document) -> None:
    refused = {row[1] for row in compatibility.table("Resources") if row[4] == "refused"}
    not_yet = {resource.plural for resource, _ in SERVED if resource.not_yet}
    assert refused == not_yet
    for plural in not_yet:
        assert re.search(rf"{plural}[,.]", compatibility.section("Resources")), plural


def test_admission_plugins_are_those_of_the_table_in_order(compatibility: Document) -> None:
    rows = [(row[0], row[1]) for row in compatibility.table("Admission plugins")]
    assert rows == [(each.name, "on" if each.on_by_default else "off") for each in PLUGINS]


def test_admission_plugins_that_are_missing_are_named(compatibility: Document) -> None:
    found = re.search(r"These (\d+) are not: ([^.]+)\.", compatibility.section("Admission plugins"))
    assert found is not None
    missing = found[2].replace("\n", " ").split(", ")
    assert int(found[1]) == len(missing)
    assert {*missing} <= NOTHING_TO_ADMIT
    assert len(missing) + sum(each.on_by_default for each in PLUGINS) == 27


def test_every_filter_is_in_the_table_of_filters(compatibility: Document) -> None:
    rows = {plain(name): row[1] for row in compatibility.table("Request filters") for name in row[0].split(",")}
    for file in (SOURCES / "endpoints" / "filters").glob("*.py"):
        for name in re.findall(r"\((With\w+)\)", file.read_text().partition('"""\n')[0]):
            assert name in rows or f"{name} is" in rows["WithPriorityAndFairness"], name
            assert not rows.get(name, "").startswith("no"), name


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


def mapped(document: Document) -> dict[str, list[str]]:
    """Return the lines of the map by the package below `src/steersman` that they are about."""
    (tree,) = re.findall(r"^src/steersman/\n(.*?)^(?:\n|```)", document.text, re.MULTILINE | re.DOTALL)
    lines: dict[str, list[str]] = {}
    package = ""
    for line in tree.splitlines():
        found = re.match(r"[├└]── (\w+)/", line)
        package = found[1] if found else package
        lines.setdefault(package, []).append(line)
    return lines


def test_the_map_has_every_package_and_files_that_exist(documents: Documents) -> None:
    lines = mapped(documents["architecture"])
    assert sorted(lines) == sorted(each.parent.name for each in SOURCES.glob("*/__init__.py"))
    unknown = []
    for package, told in lines.items():
        names = {file.name for file in (SOURCES / package).rglob("*.py")}
        for name in re.findall(r"(?<![\w/])\w+\.py\b", "\n".join(told)):
            if name not in names:
                unknown.append(f"{package}: {name}")
    assert not unknown


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
    optional = [each for extra in ("gzip", "secretbox", "stages") for each in extras[extra]]
    needed = [*PROJECT["project"]["dependencies"], *optional, *PROJECT["build-system"]["requires"][1:]]
    names = {re.split(r"[<>=~; ]", each)[0] for each in (*needed, *PROJECT["dependency-groups"]["dev"])}
    document = documents["dependencies"]
    rows = [*document.table("At run time"), *document.table("For development")]
    assert {row[0] for row in rows} == {f"{name} {pins[name]}" for name in names}
