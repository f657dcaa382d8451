"""Admission policies: CEL expressions that check or change a write.

Follows k8s.io/apiserver `admission/plugin/policy`. The expressions themselves are evaluated in `admission_rules`.

- `policies`: the stored policies and bindings; `params`: the parameters that bindings refer to.
- `dispatch`: finds the policies of a request, and the variables of their expressions.
- `validating`, `mutating`: the two plugins.
"""
