"""KMS v2: keys that a plugin behind a Unix socket wraps (k8s.io/kms `apis/v2`)."""
