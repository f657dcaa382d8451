"""Requests that are listed in reports of failed tests."""

from __future__ import annotations

from pathlib import Path

from steersman.testing import Environment

SECRETS = "/api/v1/namespaces/default/secrets"


async def test_requests_of_users_are_noted_without_what_may_be_secret(keys_folder: Path) -> None:
    async with Environment(folder=keys_folder) as environment:
        client = environment.client()
        body = {"metadata": {"name": "a"}, "stringData": {"a": "hunter2"}}
        await client.post(f"{SECRETS}?fieldManager=hunter2", body)
        await environment.client("").get(f"{SECRETS}/a")
        await environment.wait_for("secrets", "a")
        await client.get("/healthz", authorization="Bearer hunter2")
        found = [(each.verb, each.path, each.user, each.code) for each in environment.journal.entries]
        assert found == [
            ("create", SECRETS, "admin", 201),
            ("get", f"{SECRETS}/a", "system:anonymous", 403),
            ("get", "/healthz", "", 401),
        ]
        text = await environment.report()
        assert text.startswith("last requests:\ncreate ")
        assert text.endswith("\nevents:\nthere are none")
        assert "hunter2" not in text


async def test_only_the_last_are_kept(keys_folder: Path) -> None:
    async with Environment(folder=keys_folder) as environment:
        client = environment.client()
        for number in range(250):
            await client.get(f"/nowhere/{number}")
        assert len(environment.journal.entries) == 200
        assert [line.split()[1] for line in environment.journal.lines(2)] == ["/nowhere/248", "/nowhere/249"]
