"""Strategic merge patch: a merge patch that knows the Go types (k8s.io/apimachinery `util/strategicpatch`).

Lists are merged item by item where the types say so, told apart by a key; directives (`$patch`, `$retainKeys`,
`$setElementOrder/...`, `$deleteFromPrimitiveList/...`) say what else is to happen. Pure: plain values in, plain values
out.
"""

from steersman.machinery.patch.strategic_merge_patch.maps import apply

__all__ = ["apply"]
