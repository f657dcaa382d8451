"""The rules for pods and their templates (pkg/apis/core/validation)."""
