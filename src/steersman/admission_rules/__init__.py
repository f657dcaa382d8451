"""CEL expressions of admission webhooks and policies: compilation and evaluation.

The package knows nothing of HTTP, storage or plugins. It follows k8s.io/apiserver `admission/plugin/cel` and
`admission/plugin/webhook/matchconditions`.

- `environments`: the available variables and types; `expressions`: a compiled expression, or its error.
- `evaluation`: evaluates expressions for one request within a budget; `answers`: runs evaluations that call the
  authorizer, which may have to wait for it.
- `match_conditions`: conditions that decide if a webhook or policy applies to a request.

The import is slow, because it loads CEL: import the package when an expression is first needed.
"""
