"""Admission webhooks: other servers that are asked to change or to judge what is written.

Follows k8s.io/apiserver `admission/plugin/webhook`.

- `configurations.py` follows what is configured, `hooks.py` is what is kept of one webhook
- `dispatch.py` finds the webhooks of a request; `mutating.py` and `validating.py` ask them
- `review.py` is what they are asked and what is taken of their answers; `calling.py` asks, through `clients.py`
"""
