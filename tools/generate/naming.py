"""Names of Go packages, types and JSON members in the generated package."""

import keyword
import re

# Words: a version (V3); a run of capitals with its plural s (podIPs), before a version, before a capitalised word, or
# at the end; a capitalised word; a lower-case one.
_WORDS = re.compile(
    r"V[0-9]+|[A-Z]{2,}s(?![a-z])|[A-Z]+(?=V[0-9])|[A-Z]+(?=[A-Z][a-z])|[A-Z]{2,}|[A-Z][a-z0-9]*|[a-z0-9]+"
)


def module_of(go_type: str) -> str:
    """The module, below `steersman.api`, that holds a Go type: `api.core.v1.Pod` is in `core.v1`."""
    package, version = go_type.replace("tracing.api.", "tracing.").split(".")[-3:-1]
    return f"{package}.{version}"


def class_of(go_type: str) -> str:
    """The class name of a Go type: its own."""
    return go_type.rsplit(".", 1)[1]


def short(go_type: str) -> str:
    """A Go type by the name the tables use: module and class, `core.v1.Pod`."""
    return ".".join(go_type.replace("tracing.api.", "tracing.").split(".")[-3:])


def attribute(json_name: str) -> str:
    """The Python attribute of a JSON member: snake case, with an underscore behind a keyword."""
    words = _WORDS.findall(json_name.replace("-", " ").replace("$", " ").replace("_", " "))
    name = "_".join(word.lower() for word in words)
    return f"{name}_" if keyword.iskeyword(name) else name


def camel(name: str) -> str:
    """Return the JSON name that msgspec's rename="camel" gives an attribute without a trailing underscore."""
    first, *rest = name.split("_")
    return first + "".join(word.title() or "_" for word in rest)
