"""Options of pod validation; an update may keep values that older servers accepted (see `leniency`)."""

from __future__ import annotations

from msgspec import Struct


class PodValidationOptions(Struct, frozen=True, kw_only=True):
    """Invalid values that are accepted (core/validation PodValidationOptions)."""

    is_pod: bool = False
    """True for a Pod, False for a template of another kind."""
    allow_privileged: bool = True
    """The server's --allow-privileged."""
    allow_invalid_deletion_cost: bool = False
    allow_invalid_selector_values: bool = False
    allow_invalid_node_affinity_values: bool = False
    allow_invalid_spread_selectors: bool = False
    allow_legacy_spread_label_keys: bool = False
    allow_indivisible_huge_pages: bool = False
    allow_host_sysctls: bool = False
    allow_non_local_token_path: bool = False
    allow_any_selinux_change_policy: bool = False
    allow_toleration_comparisons: bool = False
    allow_host_network_user_namespaces: bool = False
    allow_user_namespaces_with_devices: bool = False
    allow_restart_resize_of_init_containers: bool = False
