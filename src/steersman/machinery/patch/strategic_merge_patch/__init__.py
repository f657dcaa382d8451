"""Strategic merge patch: a merge patch that uses the Go types (k8s.io/apimachinery `util/strategicpatch`).

Lists whose type says so are merged item by item, with items identified by a key. Directives (`$patch`, `$retainKeys`,
`$setElementOrder/...`, `$deleteFromPrimitiveList/...`) control the merge. The package is pure: plain values in, plain
values out.
"""

from steersman.machinery.patch.strategic_merge_patch.maps import apply

__all__ = ["apply"]
