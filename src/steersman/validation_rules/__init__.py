"""Validation rules of custom resources: the expressions of x-kubernetes-validations.

This package builds on structural schemas (`steersman.schema`) and on expressions (`steersman.cel`), and knows nothing
of HTTP, storage or definitions. Follows k8s.io/apiextensions-apiserver `pkg/apiserver/schema/cel` and
`pkg/apis/apiextensions/validation/cel_validation.go`.

- `definition.DefinitionRules`: validates the rules of a schema that is about to be stored, with their estimated costs.
- `evaluation.Rules`: the rules of a schema in use, which validate objects within a cost budget.

Importing this package is slow, as it imports expressions: import it when the first schema with rules is met.
"""
