"""Pages of the documentation site that are made of the code, and links to files of the repository (hooks of MkDocs).

The pages of commands, flags, resources, limits, metrics and modules come from the commands, the flags, the resources, the
fields of `Limits`, a running server and the first lines of modules; those of `steersman` and `steersman.testing` from
docstrings, by mkdocstrings. A link of a page to a file or folder outside of `docs/`, such as `../examples/backups`, leads
to a page that shows the file or the folder's files.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from steersman.api.index import ON_REQUEST
from steersman.cli.command import default_texts
from steersman.cli.flags import NOT_SUPPORTED
from steersman.cli.main import main as program
from steersman.controlplane import on_request
from steersman.controlplane.options import SECTIONS
from steersman.controlplane.resources import AGGREGATOR, API_EXTENSIONS, KUBE_API
from steersman.net import limits
from steersman.rest.resource import OtherVersion, Resource
from steersman.testing import Environment

ROOT = Path(__file__).resolve().parent.parent
_OUTSIDE = re.compile(r"\]\(\.\./([^)#\s]+)(#[^)\s]*)?\)")
_RELATIVE = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")
_LANGUAGES = {
    ".py": "python",
    ".go": "go",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".toml": "toml",
    ".md": "markdown",
    ".java": "java",
}
_PLACES = {"CHANGELOG.md": "changelog.md", "README.md": "index.md"}
_HIDDEN = {"go.sum", "__pycache__"}
_API = {
    "steersman": (
        "The library",
        "Names that `import steersman` offers; [the guide](../library.md) shows how they are used.",
    ),
    "testing": (
        "Servers for tests",
        "Names of `steersman.testing`; [the guide](../testing.md) shows how they are used.",
    ),
}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made of the code, and a page for each file or folder that a page links to."""
    from mkdocs.structure.files import File

    generated = {uri: "\n".join(lines()) for uri, lines in PAGES.items()}
    generated[_shown_at("LICENSE")] = _source_page(ROOT / "LICENSE")  # the README on an index links to it
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for name, _ in _OUTSIDE.findall(page.read_text(encoding="utf-8")):
            if name != "README.md":
                generated[_shown_at(name)] = _source_page(ROOT / name)
    for uri, content in generated.items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Point links to files of the repository at the pages that show them."""
    if "/" in page.file.src_uri:  # not one of the files in docs/
        return markdown
    return _OUTSIDE.sub(lambda link: f"]({_shown_at(link[1])})", markdown)


def _shown_at(name: str) -> str:
    """Return the page that shows a file or folder of the repository."""
    return _PLACES.get(name) or f"source/{name.strip('/')}.md"


def _source_page(path: Path) -> str:
    """Return a page with the text of a file, or of all files in a folder. Raises FileNotFoundError."""
    if path.suffix == ".md":
        return _with_links_of(path)
    shown = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    if not shown:
        raise FileNotFoundError(path)
    parts = [f"# {path.relative_to(ROOT)}\n"]
    for each in shown:
        if not _HIDDEN & {*each.relative_to(ROOT).parts}:
            language = _LANGUAGES.get(each.suffix, "text")
            fence = "````" if language == "markdown" else "```"
            parts.append(f"## {each.name}\n\n{fence}{language}\n{each.read_text(encoding='utf-8').rstrip()}\n{fence}\n")
    return "\n".join(parts)


def _with_links_of(path: Path) -> str:
    """Return the text of a Markdown file; links to what is no page of the site become plain text."""
    docs = ROOT / "docs"
    page = docs / _shown_at(str(path.relative_to(ROOT)))

    def linked(link: re.Match[str]) -> str:
        target = (path.parent / link[2]).resolve()
        if target.is_relative_to(docs):
            return f"[{link[1]}]({os.path.relpath(target, page.parent)}{link[3] or ''})"
        return link[1]

    return _RELATIVE.sub(linked, path.read_text(encoding="utf-8"))


def _api(name: str, module: str) -> Iterator[str]:
    heading, words = _API[name]
    yield f"# {heading}\n\n{words}\n\n::: {module}\n    options:\n      show_root_heading: false\n"


def _commands() -> Iterator[str]:
    """Yield a section for each command, with its help."""
    yield "# Commands\n\nFor those who use `steersman` on the command line: the help of every command.\n"
    for path, command in _walk(program, ("steersman",)):
        yield f"## {' '.join(path)}\n"
        context = click.Context(command, info_name=" ".join(path), max_content_width=100, terminal_width=100)
        yield f"```text\n{command.get_help(context)}\n```\n"


def _walk(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from _walk(child, (*path, name))


def _flags() -> Iterator[str]:
    """Yield a table for each section of flags of `steersman serve`."""
    yield "# Flags of the server\n\nFor those who run `steersman serve` or `steersman up`: every flag, by section.\n"
    defaults = default_texts()
    for title, flags in SECTIONS.items():
        yield f"## {title}\n"
        rows = ((f"`--{name}`", _code(defaults.get(name, "")), flag.help) for name, flag in flags.items())
        yield from _table(("flag", "default", "meaning"), rows)
    yield "## Refused flags\n"
    yield "kube-apiserver has these flags. Here they end the start with `not supported yet: --NAME`.\n"
    yield ", ".join(f"`--{name}`" for name in sorted(NOT_SUPPORTED - {"help"})) + "\n"


def _resources() -> Iterator[str]:
    """Yield a table of the resources that are served, and one of the versions that `--runtime-config` turns on."""
    yield "# Resources\n\nFor those who look for a kind, a subresource or a version. Subresources are in parentheses.\n"
    served: dict[str, list[str]] = {}
    for resource, other in _versions((*KUBE_API, *AGGREGATOR, *API_EXTENSIONS)):
        served.setdefault(_api_version(resource, other), []).append(_with_subresources(resource))
    yield from _table(("API", "resources"), ((api, ", ".join(names)) for api, names in served.items()))
    yield "## Versions that are off by default\n"
    rows = []
    for resource, other in _versions(on_request.kube_api(lambda *_: True)):
        if tuple((api := _api_version(resource, other)).split("/")) in ON_REQUEST:
            stored = resource.stored_as.rpartition("/")[2] or resource.version
            deprecated = "yes" if (other or resource).deprecation_warning else "no"
            rows.append((api, _with_subresources(resource), stored, deprecated))
    yield from _table(("API", "resource", "stored as", "deprecated"), rows)


def _versions(resources: Iterable[Resource[Any]]) -> Iterator[tuple[Resource[Any], OtherVersion | None]]:
    """Yield each resource with None for its own version, then with each other version."""
    for resource in resources:
        for other in (None, *resource.other_versions):
            yield resource, other


def _api_version(resource: Resource[Any], other: OtherVersion | None) -> str:
    group, version = (other.group, other.version) if other else (resource.group, resource.version)
    return f"{group}/{version}" if group else version


def _with_subresources(resource: Resource[Any]) -> str:
    names = ", ".join(each.name for each in resource.subresources)
    return f"{resource.plural} ({names})" if names else resource.plural


def _limits() -> Iterator[str]:
    """Yield a table of the fields of `Limits`, with their defaults and docstrings."""
    yield "# Limits of connections\n\nFor those who audit or size a server: the fields of `steersman.net.limits.Limits`.\n"
    (declaration,) = ast.parse(inspect.getsource(limits.Limits)).body
    assert isinstance(declaration, ast.ClassDef)
    rows = []
    for field, words in zip(declaration.body, declaration.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(words, ast.Expr) and isinstance(words.value, ast.Constant):
            name = ast.unparse(field.target)
            meaning = inspect.cleandoc(str(words.value.value))
            rows.append((f"`{name}`", f"{getattr(limits.Limits(), name):,}", meaning))
    yield from _table(("field", "default", "meaning"), rows)


def _modules() -> Iterator[str]:
    """Yield a section for each package, with the first line of each of its modules but the generated ones."""
    yield "# Modules\n\nFor those who look for the file to change: every file of `src/steersman/`, with its first line.\n"
    sources = ROOT / "src" / "steersman"
    for package in sorted(each.parent for each in sources.glob("*/__init__.py")):
        yield f"## {package.name}\n\n{_first_line(package / '__init__.py')}\n"
        if package.name != "api":
            files = (
                each for each in sorted(package.rglob("*.py")) if each.parent != package or each.name != "__init__.py"
            )
            rows = ((f"`{each.relative_to(package)}`", _first_line(each)) for each in files)
            yield from _table(("file", "content"), (row for row in rows if row[1]))


def _first_line(module: Path) -> str:
    """Return the first line of a module's docstring, or an empty text."""
    return (ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def _metrics() -> Iterator[str]:
    """Yield a table of the metrics of a server that has answered a few requests."""
    yield "# Metrics\n\nFor those who scrape `/metrics` of a server: each family, its type and its meaning.\n"
    text = asyncio.run(_scraped())
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE))
    types = dict(re.findall(r"^# TYPE (\S+) (.*)$", text, re.MULTILINE))
    yield from _table(
        ("metric", "type", "meaning"), ((f"`{name}`", types[name], helps.get(name, "")) for name in sorted(types))
    )


async def _scraped() -> str:
    async with Environment() as environment:
        answer = await environment.client().request("GET", "/metrics")
        return answer.body.decode()


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|').replace(chr(10), ' ') for cell in row)} |"
    yield ""


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


PAGES: Final[dict[str, Callable[[], Iterator[str]]]] = {
    "reference/commands.md": _commands,
    "reference/flags.md": _flags,
    "reference/resources.md": _resources,
    "reference/limits.md": _limits,
    "reference/metrics.md": _metrics,
    "reference/modules.md": _modules,
    "reference/steersman.md": partial(_api, "steersman", "steersman"),
    "reference/testing.md": partial(_api, "testing", "steersman.testing"),
}
"""Lines of each page that is made of the code."""
