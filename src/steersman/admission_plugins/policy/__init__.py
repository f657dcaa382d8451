"""Admission by policies: expressions that judge and change what is about to be written.

Follows k8s.io/apiserver `admission/plugin/policy`. What the expressions say is worked out in `admission_rules`.

- `policies`: the policies and bindings that are stored; `params`: the parameters that bindings name.
- `dispatch`: which policies are about a request, and with what their expressions are evaluated.
- `validating`, `mutating`: the two plugins.
"""
