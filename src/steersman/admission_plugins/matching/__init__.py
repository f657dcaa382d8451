"""Matching of requests to webhooks and policies, and conversion of objects to the matched version.

Follows k8s.io/apiserver `admission/plugin/webhook/predicates`, `admission/plugin/policy/matching` and
`admission/conversion.go`.

- `rules.RuleIndex`: finds entries whose rules match a request; results are cached by kind of request.
- `selectors.SelectorMatcher`: checks namespace and object selectors.
- `versions.Conversions`: converts objects to the matched version and back.
"""
