"""Writing the tables: what codecs and patches know about each struct beyond its Python class, one JSON file a module.

    {"map_types": {STRUCT: "atomic"}, "scalars": {TYPE: UNDERLYING}, "structs": {STRUCT: [FIELD, ...]}}

A field has `name` (JSON), `go`, `type`, and where they apply `attribute` (if the struct's class has it), `omit`,
`pointer`, `inline`, `tag` and `wire` (protobuf), `strategy` and `key` (strategic merge), `list`, `keys` and `map`
(server-side apply). Types are Go's with packages shortened to their last two elements: `[]core.v1.Container`.
"""

import json
import re

from .facts import Facts, Field
from .naming import attribute, class_of, module_of, short

_NAMES = (
    ("omit", "omit"),
    ("pointer", "pointer"),
    ("inline", "inline"),
    ("tag", "tag"),
    ("wire", "wire"),
    ("patchStrategy", "strategy"),
    ("patchMergeKey", "key"),
)
_QUALIFIED = re.compile(r"[\w-]+(?:\.[\w-]+)+")


def _shortened(go_type: str) -> str:
    return _QUALIFIED.sub(lambda match: short(match.group()), go_type)


def table(facts: Facts, module: str) -> str:
    """The text of a module's table, one field a line."""
    structs = {name: fields for name, fields in facts.structs.items() if module_of(name) == module}
    used = {
        name
        for fields in structs.values()
        for member in fields
        for name in _QUALIFIED.findall(str(member["type"]))
        if name in facts.scalars
    }
    map_types = {
        class_of(name): facts.list_types[short(name)]["map"] for name in structs if short(name) in facts.list_types
    }
    scalars = {short(name): _shortened(facts.scalars[name]) for name in sorted(used)}
    lines = [f'{{"map_types": {json.dumps(map_types)},', f'"scalars": {json.dumps(scalars)},', '"structs": {']
    blocks = []
    for name, fields in structs.items():
        rows = ",\n".join("  " + json.dumps(_row(facts, name, member)) for member in fields)
        blocks.append(f'"{class_of(name)}": [\n{rows}\n]')
    return "\n".join(lines) + "\n" + ",\n".join(blocks) + "\n}}\n"


def _row(facts: Facts, owner: str, member: Field) -> dict[str, object]:
    row: dict[str, object] = {"name": member["name"], "go": member["go"], "type": _shortened(str(member["type"]))}
    if not member.get("inline") and member["name"] != "-":
        row["attribute"] = attribute(str(member["name"]))
    row |= {ours: member[theirs] for theirs, ours in _NAMES if theirs in member}
    return row | facts.list_types.get(f"{short(owner)}.{member['name']}", {})
