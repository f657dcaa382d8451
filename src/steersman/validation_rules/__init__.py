"""Rules of custom resources: the expressions of x-kubernetes-validations, compiled, judged and evaluated.

Stands on structural schemas (`steersman.schema`) and on expressions (`steersman.cel`), and knows nothing of HTTP,
storage or definitions. Follows k8s.io/apiextensions-apiserver `pkg/apiserver/schema/cel` and
`pkg/apis/apiextensions/validation/cel_validation.go`.

- `definition.rule_errors`: what is wrong with the rules of a schema that is about to be stored, their cost included.
- `evaluation.Rules`: the rules of a schema in use; judges objects within a budget.

It is slow to import, as expressions are: import it where a schema with rules is first met.
"""
