"""JSON documents within text (an annotation, a token), decoded as Go's encoding/json does.

Differences from the decoding of request bodies (`machinery.codec.strict`): names of members may differ in case, there
are no strict errors, and the message for too deep nesting has the character at which it was noticed.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from steersman.machinery.codec.go_types import GoMember, GoType, members_of
from steersman.machinery.codec.json_syntax import END_TEXT, MAX_DEPTH_TEXT
from steersman.machinery.codec.json_tree import JSONSyntaxError, Members, Tree, parse_tree
from steersman.machinery.codec.strict import DecodeError, Reader
from steersman.machinery.go.strings import to_lower, to_upper

_MAX_DEPTH: Final = 10_000


def unmarshal(type_: GoType, data: bytes) -> Any:
    """Return plain data under the members' own names, None for null. Raises DecodeError with Go's message."""
    try:
        return Reader().read(type_, _by_own_names(type_, parse_tree(data)))
    except JSONSyntaxError as error:
        raise DecodeError(_too_deep(data) if str(error) == MAX_DEPTH_TEXT else str(error)) from None


def internal(type_: GoType, package: str) -> GoType:
    """Return a struct type, or list of structs, as upstream's internal type of `package`.

    The members of an internal type have their Go names in JSON.
    """
    if type_.kind == "list" and type_.element is not None:
        return replace(type_, shown=f"[]{package}.{_base(type_)}", element=internal(type_.element, package))
    members = {
        to_upper(name[:1]) + name[1:]: _internal_member(each, package) for name, each in members_of(type_).items()
    }
    return replace(type_, shown=f"{package}.{_base(type_)}", members=members)


def with_wire_names(plain: Any) -> Any:
    """Return data decoded as an internal type with the members' names of the versioned types."""
    if isinstance(plain, dict):
        return {to_lower(name[:1]) + name[1:]: with_wire_names(value) for name, value in plain.items()}
    return [with_wire_names(each) for each in plain] if isinstance(plain, list) else plain


def _internal_member(member: GoMember, package: str) -> GoMember:
    inner = member.type.element or member.type
    return replace(member, type=internal(member.type, package)) if inner.kind == "struct" else member


def _base(type_: GoType) -> str:
    return type_.shown.rpartition(".")[2]


def _by_own_names(type_: GoType, tree: Tree) -> Tree:
    """Return the tree with each member name that differs only in case replaced by the declared name."""
    if isinstance(tree, list) and type_.kind == "list" and type_.element is not None:
        return [_by_own_names(type_.element, item) for item in tree]
    if not isinstance(tree, Members) or type_.kind not in ("struct", "map"):
        return tree
    if type_.kind == "map":
        element = type_.element
        return tree if element is None else Members((name, _by_own_names(element, value)) for name, value in tree)
    known = members_of(type_)
    folded = {to_lower(name): name for name in known}
    members: list[tuple[str, Tree]] = []
    for name, value in tree:
        own = name if name in known else folded.get(to_lower(name), name)
        members.append((own, _by_own_names(known[own].type, value) if own in known else value))
    return Members(members)


def _too_deep(data: bytes) -> str:
    """Return Go's message for JSON that is nested more deeply than this process decodes.

    Go itself only complains beyond 10,000 levels.
    """
    depth = 0
    in_string = escaped = False
    for char in data.decode("latin-1"):
        if in_string:
            in_string = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            in_string = True
        elif char in "[{":
            depth += 1
            if depth > _MAX_DEPTH:
                return f"invalid character '{char}' {MAX_DEPTH_TEXT}"
        elif char in "]}":
            depth -= 1
    return END_TEXT if depth > 0 or in_string else MAX_DEPTH_TEXT
