"""Which webhooks and policies are about a request, and the object as each of them wants to see it.

Follows k8s.io/apiserver `admission/plugin/webhook/predicates`, `admission/plugin/policy/matching` and
`admission/conversion.go`.

- `rules.RuleIndex`: finds those whose rules a request meets, remembered by kind of request.
- `selectors.Selecting`: what their namespace and object selectors say.
- `versions.Versions`: the object in the version that was matched, and what came back of it.
"""
