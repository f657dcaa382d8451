"""Writes what field ownership has to know of the built-in types, from the OpenAPI documents of an API server.

    python -m tools.generate_field_schemas OPENAPI_DIRECTORY ALL_DIRECTORY

OPENAPI_DIRECTORY holds `/openapi/v3/...` documents, one JSON file a group version, of a server with the default
--runtime-config, ALL_DIRECTORY those of one with api/all=true. The results, definitions.json and
definitions_on_request.json (what the second has besides) in src/steersman/machinery/managed_fields/data, have every
definition reduced to types, references, list and map types, and the defaults of lists' keys; they are the same on
every run.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "src/steersman/machinery/managed_fields/data"

KEPT = (
    "type",
    "format",
    "$ref",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-preserve-unknown-fields",
)
PATCH = ("x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key")


def reduced(definition: dict[str, Any]) -> dict[str, Any]:
    """A schema without what ownership never asks for."""
    out = {name: definition[name] for name in KEPT if name in definition}
    if "x-kubernetes-list-type" in out:
        for name in PATCH:
            out.pop(name, None)
    references = definition.get("allOf", [])
    if len(references) == 1 and "$ref" in references[0]:
        out["$ref"] = references[0]["$ref"]
    if "$ref" in out:
        out["$ref"] = out["$ref"].rpartition("/")[2]
    if "properties" in definition:
        out["properties"] = {name: reduced(each) for name, each in definition["properties"].items()}
    if "items" in definition:
        out["items"] = reduced(definition["items"])
    additional = definition.get("additionalProperties")
    if additional is not None:
        out["additionalProperties"] = reduced(additional) if isinstance(additional, dict) else additional
    return out


def keep_key_defaults(source: dict[str, Any], target: dict[str, Any], owner: Any) -> None:
    """Puts the defaults of keys into the definitions of the items of lists that have keys."""
    for name, each in source.get("properties", {}).items():
        keep_key_defaults(each, target["properties"][name], owner)
        for key in each.get("x-kubernetes-list-map-keys", []):
            item, kept = owner(each["items"], target["properties"][name]["items"])
            if "default" in item["properties"][key]:
                kept["properties"][key]["default"] = item["properties"][key]["default"]


def main() -> None:
    """Reads the documents, writes the data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("all_directory", type=Path)
    options = parser.parse_args()
    definitions, kinds = read(options.directory)
    every_definition, every_kind = read(options.all_directory)
    TARGET.mkdir(exist_ok=True)
    write(TARGET / "definitions.json", definitions, kinds)
    write(
        TARGET / "definitions_on_request.json",
        {name: each for name, each in every_definition.items() if name not in definitions},
        {kind: name for kind, name in every_kind.items() if kind not in kinds},
    )


def read(directory: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The reduced definitions of a folder of documents, and which of them stand for a kind."""
    sources: dict[str, Any] = {}
    for path in sorted(directory.glob("*.json")):
        document = json.loads(path.read_text())
        for name, definition in document.get("components", {}).get("schemas", {}).items():
            known = sources.setdefault(name, dict(definition))
            kinds = [*known.get("x-kubernetes-group-version-kind", [])]
            kinds += [each for each in definition.get("x-kubernetes-group-version-kind", []) if each not in kinds]
            known["x-kubernetes-group-version-kind"] = kinds
    definitions = {name: reduced(sources[name]) for name in sorted(sources)}

    def resolve(item: dict[str, Any], kept: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        name = kept.get("$ref")
        return (sources[name], definitions[name]) if name else (item, kept)

    for name in definitions:
        keep_key_defaults(sources[name], definitions[name], resolve)
    served = {
        f"{each['group']}/{each['version']} {each['kind']}".removeprefix("/"): name
        for name in sorted(sources)
        for each in sources[name]["x-kubernetes-group-version-kind"]
    }
    return definitions, served


def write(target: Path, definitions: dict[str, Any], kinds: dict[str, str]) -> None:
    """Writes definitions and kinds, one a line."""
    compact = {name: json.dumps(each, sort_keys=True, separators=(",", ":")) for name, each in definitions.items()}
    lines = [f'"{name}":{text}' for name, text in compact.items()]
    pairs = [f'"{kind}":"{name}"' for kind, name in sorted(kinds.items())]
    target.write_text('{"definitions":{\n' + ",\n".join(lines) + '\n},\n"kinds":{\n' + ",\n".join(pairs) + "\n}}\n")


if __name__ == "__main__":
    main()
