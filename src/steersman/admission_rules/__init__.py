"""Expressions of admission: what webhooks and policies say of requests, compiled and evaluated.

Knows nothing of HTTP, storage or plugins. Follows k8s.io/apiserver `admission/plugin/cel` and
`admission/plugin/webhook/matchconditions`.

- `environments`: which variables and types there are; `expressions`: an expression compiled, or what is wrong with it.
- `evaluation`: evaluates expressions for one request, within a budget; `answers`: what the authorizer says, where it
  may have to be waited for.
- `match_conditions`: whether a webhook or policy is about a request at all.

It is slow to import, as expressions are: import it where an expression is first met.
"""
