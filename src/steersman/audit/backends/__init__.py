"""Audit backends (log file, webhook) and wrappers that buffer or truncate events (k8s.io/apiserver
`plugin/pkg/audit`).
"""
