"""Resources Flunder, in two versions, and Fischer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

import steersman
from steersman import FieldError, OpenAPI, Path, PrinterColumn, Request, resource, version_of

ReferenceType = Literal["Flunder", "Fischer"]


class FlunderSpec(msgspec.Struct, rename="camel"):
    """Reference of a flunder to another flunder or to a fischer."""

    reference_type: ReferenceType | None = None
    flunder_reference: str | None = None
    fischer_reference: str | None = None


class FlunderStatus(msgspec.Struct, rename="camel"):
    """Observed state of a flunder."""


_COLUMNS = (PrinterColumn("Flunder", ".spec.flunderReference"), PrinterColumn("Fischer", ".spec.fischerReference"))


@resource("wardle.example.com/v1beta1", printer_columns=_COLUMNS)
class Flunder(msgspec.Struct):
    """Example resource with a reference to another flunder or to a fischer."""

    spec: FlunderSpec = msgspec.field(default_factory=FlunderSpec)
    status: FlunderStatus | None = None

    @steersman.prepare
    def say_type(self, request: Request[Flunder]) -> None:
        """Set the type of the reference, if there is a reference."""
        spec = self.spec
        if spec.reference_type is None and bool(spec.flunder_reference) != bool(spec.fischer_reference):
            spec.reference_type = "Flunder" if spec.flunder_reference else "Fischer"

    @steersman.admit
    async def ban(self, request: Request[Flunder]) -> None:
        """Refuse a name that a fischer disallows (the admission plugin BanFlunder)."""
        async for fischer in request.objects(Fischer).every():
            if request.metadata.name in fischer.disallowed_flunders:
                raise request.forbid("this name may not be used, please change the resource name")

    @steersman.validate
    def refer_to_one(self, request: Request[Flunder]) -> Iterator[FieldError]:
        """Require exactly one reference, of the given type."""
        spec = self.spec
        if spec.flunder_reference and spec.fischer_reference:
            text = "flunderReference and fischerReference cannot be both set"
            yield steersman.invalid(Path("spec", "fischerReference"), spec.fischer_reference, text)
        elif not spec.flunder_reference and not spec.fischer_reference:
            yield steersman.required(Path("spec", "flunderReference"), "a flunder refers to a flunder or a fischer")
        elif spec.reference_type != ("Flunder" if spec.flunder_reference else "Fischer"):
            text = "is not the type of what is referred to"
            yield steersman.invalid(Path("spec", "referenceType"), spec.reference_type, text)


class FlunderSpecV1Alpha1(msgspec.Struct, rename="camel"):
    """Reference of a flunder to an object of the given type, by name."""

    reference: str = ""
    reference_type: ReferenceType = "Flunder"


@version_of(Flunder, "v1alpha1", printer_columns=(PrinterColumn("Reference", ".spec.reference"),))
class FlunderV1Alpha1(msgspec.Struct):
    """Example resource with a reference to another flunder or to a fischer."""

    spec: FlunderSpecV1Alpha1 = msgspec.field(default_factory=FlunderSpecV1Alpha1)
    status: FlunderStatus | None = None

    def convert_to(self) -> Flunder:
        """Convert to v1beta1."""
        spec = FlunderSpec(reference_type=self.spec.reference_type)
        if self.spec.reference and self.spec.reference_type == "Flunder":
            spec.flunder_reference = self.spec.reference
        elif self.spec.reference:
            spec.fischer_reference = self.spec.reference
        return Flunder(spec, self.status)

    @classmethod
    def convert_from(cls, hub: Flunder) -> FlunderV1Alpha1:
        """Convert from v1beta1."""
        spec = hub.spec
        reference = spec.flunder_reference or spec.fischer_reference or ""
        return cls(FlunderSpecV1Alpha1(reference, spec.reference_type or "Flunder"), hub.status)


@resource("wardle.example.com/v1alpha1", namespaced=False)
class Fischer(msgspec.Struct, rename="camel"):
    """Example resource with a list of names that flunders must not have."""

    disallowed_flunders: Annotated[list[str], OpenAPI({"x-kubernetes-list-type": "set"})] = []
