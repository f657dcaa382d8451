"""Admission webhooks: other servers that may change or refuse a write.

Follows k8s.io/apiserver `admission/plugin/webhook`.

- `configurations.py` follows the webhook configurations; `hooks.py` has one configured webhook
- `dispatch.py` finds the webhooks of a request; `mutating.py` and `validating.py` are the two plugins
- `review.py` encodes reviews and decodes responses; `calling.py` calls a webhook, through `clients.py`
"""
