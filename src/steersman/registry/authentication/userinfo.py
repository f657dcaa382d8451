"""Conversion of users to authentication/v1 UserInfo."""

from __future__ import annotations

from steersman.api.authentication.v1 import UserInfo
from steersman.authentication import user


def user_info(subject: user.UserInfo) -> UserInfo:
    """Return `subject` as authentication/v1 UserInfo."""
    return UserInfo(
        username=subject.name,
        uid=subject.uid,
        groups=list(subject.groups),
        extra={key: list(values) for key, values in subject.extra.items()},
    )
