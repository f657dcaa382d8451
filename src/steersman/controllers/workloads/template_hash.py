"""Hash of a pod template, for the names of the objects made from it (pkg/controller ComputeHash).

The hash is FNV-1a over the text that go-spew prints for the Go struct, including types and unset fields (k8s.io/utils
dump.ForHash). So every field that a release adds changes all hashes. Empty lists and maps print as nil, as in a client
that reads protobuf.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from steersman.api import tables
from steersman.api.core.v1 import PodTemplateSpec
from steersman.machinery.values.quantity import BINARY_SI, nanos, parse

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Characters of generated names: no vowels, so that no words arise."""

Printer = Callable[[Any], str]
"""Function from a value to the text that go-spew prints for it, without its type."""


def template_hash(template: PodTemplateSpec, collision_count: int | None = None) -> str:
    """Return the hash of a template; each collision count gives another hash."""
    data = f"({_go_type_name('core.v1.PodTemplateSpec')})" + _FOR_HASH.struct("core.v1", "PodTemplateSpec")(template)
    value = fnv32a(data.encode())
    if collision_count is not None:
        value = fnv32a(collision_count.to_bytes(8, "little"), value)
    return safe_encode(str(value))


def is_same_template(one: PodTemplateSpec, other: PodTemplateSpec) -> bool:
    """Return True if two templates are equal; quantities are compared by value (apiequality.Semantic)."""
    if one == other:
        return True
    show = _FOR_COMPARISON.struct("core.v1", "PodTemplateSpec")
    return show(one) == show(other)


def fnv32a(data: bytes, value: int = 0x811C9DC5) -> int:
    """Return the 32-bit FNV-1a hash of bytes; `value` is the hash of the bytes before them."""
    for each in data:
        value = (value ^ each) * 0x01000193 & 0xFFFFFFFF
    return value


def safe_encode(text: str) -> str:
    """Return text with each character mapped to a safe alphabet (apimachinery rand.SafeEncodeString)."""
    return "".join(_ALPHABET[ord(each) % len(_ALPHABET)] for each in text)


def _go_type_name(name: str) -> str:
    """Return a type's name as Go prints it, without the parent of its package."""
    *_, package, own = name.split(".")
    return f"{package}.{own}"


class _Dump:
    """Printers of Go values, made from tables of types; `own` has special printers by type."""

    def __init__(self, own: dict[str, Printer]) -> None:
        self._own = own
        self._structs: dict[tuple[str, str], Printer] = {}

    def struct(self, module: str, name: str) -> Printer:
        """Return the printer of a struct. Members of an embedded struct are attributes of the outer struct's class."""
        cached = self._structs.get((module, name))
        if cached is not None:
            return cached
        parts: list[tuple[str, str, str, Printer]] = []
        for each in tables.table(module).structs[name]:
            type_, show = self._type(module, each.type)
            if each.pointer:
                type_, show = f"*{type_}", _nil_if(_is_none, show)
            parts.append((each.go, type_, "" if each.inline else each.attribute, show))

        def printed(value: Any) -> str:
            members = (
                f"{go}:({type_}){show(getattr(value, attribute) if attribute else value)}"
                for go, type_, attribute, show in parts
            )
            return "{" + " ".join(members) + "}"

        self._structs[module, name] = printed
        return printed

    def _type(self, module: str, name: str) -> tuple[str, Printer]:
        """Return the Go name of a type, and the printer of its values."""
        if name.startswith("[]"):
            type_, show = self._type(module, name[2:])
            return f"[]{type_}", _nil_if(_is_empty, lambda values: "[" + " ".join(map(show, values)) + "]")
        if name.startswith("map["):
            key, _, element = name[4:].partition("]")
            (key_type, show_key), (type_, show) = self._type(module, key), self._type(module, element)
            return f"map[{key_type}]{type_}", _nil_if(_is_empty, _map(show_key, show))
        if name in self._own:
            return _go_type_name(name), self._own[name]
        if "." not in name:
            return name, _boolean if name == "bool" else str
        package, version, own = name.split(".")
        scalar = tables.table(module).scalars.get(name)
        if scalar is not None:
            return _go_type_name(name), self._type(module, scalar)[1]
        return _go_type_name(name), self.struct(f"{package}.{version}", own)


def _is_none(value: Any) -> bool:
    return value is None


def _is_empty(value: Any) -> bool:
    return not value


def _nil_if(absent: Callable[[Any], bool], show: Printer) -> Printer:
    return lambda value: "<nil>" if absent(value) else show(value)


def _map(show_key: Printer, show: Printer) -> Printer:
    def printed(value: Any) -> str:
        return "map[" + " ".join(f"{show_key(key)}:{show(value[key])}" for key in sorted(value, key=_bytes)) + "]"

    return printed


def _bytes(text: str) -> bytes:
    return text.encode()


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _time(_: str | None) -> str:
    """Return a zero time: a template has no times that the server keeps."""
    return "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}"


def _int_or_string(value: int | str) -> str:
    kind, number, text = (1, 0, value) if isinstance(value, str) else (0, value, "")
    return f"{{Type:(intstr.Type){kind} IntVal:(int32){number} StrVal:(string){text}}}"


def _quantity(text: str) -> str:
    """Return a resource.Quantity as ParseQuantity builds it from canonical text.

    A value is a small number, or a big number beside a small zero.
    """
    amount, scale, big, cached_text = 0, 0, "<nil>", "0"
    format_ = "DecimalSI"
    if text != "0":
        amount, scale, format_, cached_text, is_big = _parsed(text)
        if is_big:
            big, amount, scale = _printed_words(amount, scale), 0, 0
    return (
        f"{{i:(resource.int64Amount){{value:(int64){amount} scale:(resource.Scale){scale}}} "
        f"d:(resource.infDecAmount){{Dec:(*inf.Dec){big}}} s:(string){cached_text} Format:(resource.Format){format_}}}"
    )


def _parsed(text: str) -> tuple[int, int, str, str, bool]:
    """Return value, decimal exponent, format, the text that Go caches ("" if none), and True for a big number."""
    quantity = parse(text)
    digits = text.lstrip("+-")
    number = digits[: len(digits) - len(digits.lstrip("0123456789"))]
    value = int(number)
    sign = -1 if text.startswith("-") else 1
    if quantity.format == BINARY_SI:
        exponent = 10 * (1 + "KMGTPE".index(digits[len(number)])) if len(digits) > len(number) else 0
        total = value << exponent
        if 15 - len(number) - int(exponent * 3 / 10) - 1 < 0 or total >= 2**63:
            return sign * total, 0, quantity.format, "", True
        return sign * total, 0, quantity.format, text if value & 7 else "", False
    exponent = quantity.exponent
    if len(number) > 18 or exponent < -9:
        return sign * value, exponent, quantity.format, "", True
    cached_text = text if exponent % 3 == 0 and not number.endswith("000") and number[0] != "0" else ""
    return sign * value, exponent, quantity.format, cached_text, False


def _printed_words(amount: int, exponent: int) -> str:
    unscaled = abs(amount) * 10 ** (9 + exponent)
    words = []
    while unscaled:
        words.append(str(unscaled & (2**64 - 1)))
        unscaled >>= 64
    return (
        f"{{unscaled:(big.Int){{neg:(bool){_boolean(amount < 0)} abs:(big.nat)[{' '.join(words)}]}} "
        "scale:(inf.Scale)9}"
    )


def _fields(_: object) -> str:
    """Return empty FieldsV1: a template has no managed fields that the server keeps."""
    return "{Raw:([]uint8)<nil>}"


_OWN: Final[dict[str, Printer]] = {
    "meta.v1.Time": _time,
    "meta.v1.FieldsV1": _fields,
    "util.intstr.IntOrString": _int_or_string,
    "api.resource.Quantity": _quantity,
}
_FOR_HASH: Final = _Dump(_OWN)
_FOR_COMPARISON: Final = _Dump({**_OWN, "api.resource.Quantity": lambda text: str(nanos(text))})
