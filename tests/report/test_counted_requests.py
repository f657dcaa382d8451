"""Reports on the requests of a test's server."""

from __future__ import annotations

from steersman.testing import ThreadedEnvironment

MAPS = "/api/v1/namespaces/default/configmaps"


def test_requests_of_a_server_are_counted_from_now_on() -> None:
    with ThreadedEnvironment() as environment, environment.client() as client:
        client.json("GET", MAPS)
        report = environment.requests()
        client.json("POST", MAPS, {"metadata": {"name": "a"}})
        client.json("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}})
        client.json("GET", MAPS)
        assert [report.count("create"), report.count("list"), report.count("write", "configmaps")] == [1, 1, 2]
        assert [each.kind for each in report.observations] == ["UnchangedWrites"]
        report.at_most(writes=2, unlimited_lists=1, conflicts=0)
        assert report.role()["rules"] == [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "list", "update"]}
        ]
        assert environment.requests("nobody").clients == []
