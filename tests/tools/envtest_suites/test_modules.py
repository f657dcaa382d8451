"""Tests of the search for suites in a Go module."""

from __future__ import annotations

from pathlib import Path

from tools.envtest_suites.modules import suites


def test_packages_whose_tests_start_a_control_plane_are_found(tmp_path: Path) -> None:
    for name, text in (
        ("pkg/client/client_suite_test.go", "testenv = &envtest.Environment{}"),
        ("pkg/envtest/envtest_suite_test.go", "env = &Environment{}"),
        ("pkg/state/suite_test.go", "env = test.NewEnvironment(test.WithCRDs(apis.CRDs...))"),
        ("test/core/setup_test.go", "env, err = environment.New(t.Context(), config)"),
        ("pkg/log/log_test.go", "nothing"),
        ("pkg/other/other.go", "env = &envtest.Environment{}"),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert suites(tmp_path) == ["pkg/client", "pkg/envtest", "pkg/state", "test/core"]
