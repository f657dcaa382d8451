"""Tests of the extraction of definitions from the files of a project."""

from __future__ import annotations

from tools.compare_definitions import definitions_in

DEFINITION = b"""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.example.com}
spec: {group: example.com, conversion: {strategy: Webhook}}
"""


def test_definitions_are_found_among_other_documents_and_convert_nothing() -> None:
    [found] = definitions_in(b"kind: ConfigMap\n---\n" + DEFINITION + b"---\n- a list\n---\n")
    assert found["metadata"]["name"] == "foos.example.com"
    assert found["spec"] == {"group": "example.com"}


def test_a_file_that_is_no_yaml_has_none() -> None:
    assert not list(definitions_in(DEFINITION + b"  {{ if }}: [\n"))
