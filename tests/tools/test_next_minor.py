"""Tests of the list of changes between two versions of the Kubernetes API types."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tools import next_minor
from tools.next_minor import Field, main, packages, read_package, report

REGISTER = """
package v1

const GroupName = "example.com"

var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1"}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&Widget{},
		&WidgetList{},
	)
	return nil
}
"""
TYPES = """
/*
Copyright: +optional
type Licence struct {
*/

package v1

// +enum
type Mode string

const (
	// Fast is fast
	Fast Mode = "Fast"
	Slow Mode = "Slow" // as it was
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Widget is a thing.
type Widget struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec is wanted.
	// +optional
	// +default="a"
	Spec map[string]WidgetSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// +featureGate=Widgets // see the KEP

	Bare, unread *int32
	Ports []Port `json:"ports" protobuf:"bytes,3,rep,name=ports"` // +required
	Hidden string `json:"-"`
	unexported string
}

type Interface interface {
	Method() string
}

type unexportedType struct {
	Field string `json:"field"`
}

type Old = Widget // an alias
"""


def test_types_fields_values_and_markers_are_read() -> None:
    package = read_package([REGISTER, TYPES])
    assert package.group_version == "example.com/v1"
    assert package.kinds == {"Widget", "WidgetList"}
    assert list(package.types) == ["Mode", "Widget", "Old"]
    assert package.types["Mode"].markers == ("enum",)
    assert list(package.types["Mode"].values) == ["Fast", "Slow"]
    assert package.types["Old"].declared == "alias of Widget"
    widget = package.types["Widget"]
    assert widget.markers == ("genclient",)
    assert widget.fields == {
        "metav1.TypeMeta": Field("metav1.TypeMeta", ()),
        "metadata": Field("metav1.ObjectMeta, omitempty, protobuf 1", ("optional",)),
        "spec": Field("map[string]WidgetSpec, omitempty, protobuf 2", ('default="a"', "optional")),
        "ports": Field("[]Port, protobuf 3", ()),
    }


def test_a_group_version_may_be_of_the_core_group() -> None:
    package = read_package(['const GroupName = ""\nvar V = schema.GroupVersion{Group: GroupName, Version: "v1"}\n'])
    assert package.group_version == "v1"


def folder(path: Path, files: dict[str, str]) -> Path:
    """Make a module of files."""
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    return path


def test_packages_of_versions_are_read_without_tests_and_generated_files(tmp_path: Path) -> None:
    module = folder(
        tmp_path,
        {
            "widgets/v1/types.go": TYPES,
            "widgets/v1/types_test.go": "type Wrong struct {\n}\n",
            "widgets/v1/zz_generated.deepcopy.go": "type Wrong struct {\n}\n",
            "widgets/v2beta1/types.go": "type Widget struct {\n}\n",
            "widgets/validation/types.go": "type Wrong struct {\n}\n",
            "pkg/apis/testapigroup/v1/types.go": "type Wrong struct {\n}\n",
        },
    )
    found = packages(module)
    assert list(found) == ["widgets/v1", "widgets/v2beta1"]
    assert "Wrong" not in found["widgets/v1"].types


def test_changes_are_listed_by_package(tmp_path: Path) -> None:
    changed = (
        TYPES.replace('Slow Mode = "Slow"', 'Other Mode = "Other"')
        .replace('// +default="a"', "// +k8s:maxItems=3")
        .replace("Ports []Port", "Ports *[]Port")
        .replace('	Hidden string `json:"-"`', '	// +required\n	Size int32 `json:"size"`')
        .replace(
            "type Old = Widget // an alias",
            'type WidgetSpec struct {\n	// +optional\n	Name string `json:"name"`\n}',
        )
    )
    old = folder(tmp_path / "old", {"w/v1/types.go": TYPES, "w/v1/register.go": REGISTER, "w/v1alpha1/types.go": TYPES})
    new = folder(
        tmp_path / "new",
        {"w/v1/types.go": changed, "w/v1/register.go": REGISTER.replace("&WidgetList{},", "&WidgetSet{},")},
    )
    lines = list(report(packages(old), packages(new)))
    assert lines == [
        "## Group versions and kinds",
        "",
        "- added to `example.com/v1`: `WidgetSet`",
        "- removed from `example.com/v1`: `WidgetList`",
        "",
        "## w/v1",
        "",
        "- **added** `WidgetSpec`: `struct`",
        "    - `name`: `string` `+optional`",
        "- **removed** `Old`: `alias of Widget`",
        "- `Mode`",
        "    - **added** values: `Other`",
        "    - **removed** values: `Slow`",
        "- `Widget`",
        "    - **added** `size`: `int32` `+required`",
        "    - `spec`: markers added: `+k8s:maxItems=3`",
        '    - `spec`: markers removed: `+default="a"`',
        "    - `ports`: `[]Port, protobuf 3` became `*[]Port, protobuf 3`",
        "",
        "## w/v1alpha1",
        "",
        "The package is gone, with 3 types.",
    ]


def test_added_and_removed_group_versions_are_listed(tmp_path: Path) -> None:
    both = {"w/v1/types.go": TYPES, "w/v1/register.go": REGISTER}
    some, none = packages(folder(tmp_path, both)), packages(tmp_path / "none")
    added, removed = "- **added** `example.com/v1`: `Widget`, `WidgetList`", "- **removed** `example.com/v1`: "
    assert added in list(report(none, some))
    assert any(line.startswith(removed) for line in report(some, none))
    assert list(report(some, some))[2:] == ["None were added or removed."]


def test_the_command_prints_the_chosen_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for version, text in (("v1", TYPES), ("v2", TYPES.replace("Bare, unread *int32", "Bare *int32"))):
        folder(tmp_path / version, {"a/v1/types.go": text, "b/v1/types.go": text})
    monkeypatch.setattr(next_minor, "folder_of", lambda source: tmp_path / source.partition("@")[2])
    main(["v1", "v2", "--module", "example.com/api", "--only", "b/v1"])
    printed = capsys.readouterr().out
    assert printed.startswith("# From v1 to v2\n")
    assert "## b/v1\n\n- `Widget`\n    - **added** `Bare`: `*int32`\n" in printed
    assert "## a/v1" not in printed


def test_a_module_that_cannot_be_had_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: str) -> Path:
        raise subprocess.CalledProcessError(1, "go", output=f"unknown revision of {source}")

    monkeypatch.setattr(next_minor, "folder_of", fail)
    with pytest.raises(SystemExit, match=r"go mod download failed for v1: unknown revision of k8s\.io/api@v1"):
        main(["v1", "v2"])


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("go"), reason="needs Go")
def test_the_change_from_1_36_to_1_37_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        main(["v0.36.3", "v0.37.2"])
    except SystemExit as error:
        pytest.skip(f"the modules cannot be had: {error}")
    printed = capsys.readouterr().out
    assert "- **added** `lifecycle.k8s.io/v1alpha1`: `Eviction`, " in printed
    assert "- removed from `v1`: `PodStatusResult`\n" in printed
    assert "- `VolumeMount`\n    - **added** `bindMountOptions`: `[]string, omitempty, protobuf 8` " in printed
