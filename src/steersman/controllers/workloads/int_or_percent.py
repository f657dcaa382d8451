"""Numbers that may be given as a percentage of a total (apimachinery intstr)."""

from __future__ import annotations

from steersman.net.ascii import is_digits


def scaled(value: int | str | None, total: int, *, round_up: bool = False) -> int:
    """Return a number as it is, or a percentage such as "25%" of `total`; 0 for None and for a bad text."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    share = value.removesuffix("%")
    if share == value or not is_digits(share.lstrip("+-")):
        return 0  # validation refuses such a text
    return -(-int(share) * total // 100) if round_up else int(share) * total // 100
