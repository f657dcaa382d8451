"""The answer of another server to a GET of its own, as a stream of text: logs.

Follows k8s.io/apiserver `registry/generic/rest` (LocationStreamer, GenericHttpResponseChecker).
"""

from __future__ import annotations

from typing import Final

from steersman.endpoints.proxy.location import Location
from steersman.endpoints.proxy.passing import PassedBody
from steersman.machinery.errors import (
    GroupResource,
    StatusError,
    bad_request,
    generic_server_response,
    internal,
    plain_internal,
)
from steersman.net.dial import DialError
from steersman.net.http_client import Answer, BadAnswer, send
from steersman.net.message import BodyAborted, Response

_MAX_ERROR_BYTES: Final = 50_000


async def stream_location(location: Location, resource: GroupResource, name: str) -> Response:
    """What `location` answers, as it comes. Raises StatusError, also for what it says instead."""
    try:
        connection = await location.dial()
        try:
            headers = [("Host", location.authority), ("User-Agent", "steersman")]
            answer = await send(connection, "GET", location.target, headers)
        except BaseException:
            connection.close()
            raise
    except (DialError, BadAnswer, ValueError) as error:
        raise plain_internal(f'Get "{location}": {error}') from None
    if 200 <= answer.status <= 206:
        return Response(200, [("content-type", "text/plain")], PassedBody(answer))
    try:
        if 300 <= answer.status < 400 and (target := answer.header("location")):
            raise plain_internal(f'Get "{target}": redirects forbidden')
        raise await _failure(answer, resource, name)
    finally:
        await answer.close()


async def _failure(answer: Answer, resource: GroupResource, name: str) -> StatusError:
    try:
        text = (await answer.read(_MAX_ERROR_BYTES)).decode(errors="replace")
    except BodyAborted as error:
        return internal(error)
    if answer.status == 500:
        return internal(text)
    if answer.status == 400:
        return bad_request(text)
    return generic_server_response(answer.status, "", resource, name, text)
