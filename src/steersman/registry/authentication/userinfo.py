"""A user as authentication/v1 tells of one."""

from __future__ import annotations

from steersman.api.authentication.v1 import UserInfo
from steersman.authentication import user


def user_info(subject: user.UserInfo) -> UserInfo:
    """`subject` for a client's eyes."""
    return UserInfo(
        username=subject.name,
        uid=subject.uid,
        groups=list(subject.groups),
        extra={key: list(values) for key, values in subject.extra.items()},
    )
