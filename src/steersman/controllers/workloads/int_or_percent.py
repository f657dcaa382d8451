"""Numbers that may be given as a share of a total (apimachinery intstr)."""

from __future__ import annotations

from steersman.net.ascii import is_digits


def scaled(value: int | str | None, total: int, *, round_up: bool = False) -> int:
    """What `value` comes to: a number, or a share of `total` such as "25%"; 0 for one that cannot be read."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    share = value.removesuffix("%")
    if share == value or not is_digits(share.lstrip("+-")):
        return 0  # validation refuses it
    return -(-int(share) * total // 100) if round_up else int(share) * total // 100
