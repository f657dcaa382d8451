"""kube-apiserver's flags on the command line: parsing, and the names of unsupported ones, which are never ignored.

The syntax is that of Go's pflag: `--flag=value` or `--flag value`, for booleans also `--flag`, and for the only
shorthand `-v 3`, `-v=3` and `-v3`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from steersman.controlplane.flags import Flag
from steersman.controlplane.option_ties import check_ties
from steersman.controlplane.options import FLAGS, Options, OptionsError
from steersman.machinery.suggestions import did_you_mean, known_names_hint

NOT_SUPPORTED: Final = frozenset(
    (
        "admission-control",
        "allow-metric-labels",
        "allow-metric-labels-manifest",
        "cert-dir",
        "coordinated-leadership-lease-duration",
        "coordinated-leadership-renew-deadline",
        "coordinated-leadership-retry-period",
        "debug-socket-path",
        "default-watch-cache-size",
        "disabled-metrics",
        "emulated-version",
        "emulation-forward-compatible",
        "external-hostname",
        "help",
        "kubernetes-service-node-port",
        "livez-grace-period",
        "log-flush-frequency",
        "log-json-info-buffer-size",
        "log-json-split-stream",
        "log-text-info-buffer-size",
        "log-text-split-stream",
        "max-connection-bytes-per-sec",
        "min-compatibility-version",
        "peer-advertise-ip",
        "peer-advertise-port",
        "peer-ca-file",
        "runtime-config-emulation-forward-compatible",
        "show-hidden-metrics-for-version",
        "shutdown-watch-termination-grace-period",
        "version",
        "vmodule",
        "watch-cache-sizes",
    )
)
"""Flags of kube-apiserver that are not supported; they get an error message that differs from unknown flags."""


def parse(arguments: list[str], data_dir: Path, others: Iterable[str] = ()) -> Options:
    """Parse a command line. Raises OptionsError, also for unknown flags.

    `others` are names of further flags of the command, for suggestions.
    """
    values: dict[str, Any] = {"data_dir": data_dir}
    for name, value, _ in arguments_by_flag(arguments, others=others):
        flag = _lookup(name, others)
        try:
            read = flag.read(value)
        except ValueError as error:
            raise OptionsError(f"--{name}: {error}") from None
        before = values.get(flag.option) if flag.repeats else None
        if before is not None:
            read = before | read if isinstance(read, dict) else before + read
        values[flag.option] = read
    if values.get("authorization_config") and any(
        name == "authorization_mode" or name.startswith("authorization_webhook_") for name in values
    ):
        raise OptionsError(
            "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags "
            "are defined"
        )
    if "storage" in values and values.get("etcd_servers"):
        raise OptionsError(f"--storage={values['storage']} and --etcd-servers contradict each other: omit one")
    values["anonymous_auth_is_given"] = "anonymous_auth" in values
    options = Options(**values)
    check(options)
    return options


def arguments_by_flag(
    arguments: list[str], more_booleans: Container[str] = (), others: Iterable[str] = ()
) -> Iterator[tuple[str, str, list[str]]]:
    """Yield name (with `-` for `_`), value and original arguments of each flag. Raises OptionsError.

    `more_booleans` are names of further flags that need no value. `others` are further names for suggestions.
    """
    waiting = iter(arguments)
    for text in waiting:
        if not text.startswith("-") or text in ("-", "--"):
            raise OptionsError(f"unexpected argument {text!r}{did_you_mean(text, (*FLAGS, *others), '--')}")
        name, given, value = _split(text)
        name = name.replace("_", "-")
        used = [text]
        if not given:
            flag = FLAGS.get(name)
            if name in more_booleans or (flag is not None and flag.boolean):
                value = "true"
            elif (following := next(waiting, None)) is not None:
                used.append(value := following)
            else:
                _lookup(name, others)
                raise OptionsError(f"--{name} needs a value")
        yield name, value, used


def _split(text: str) -> tuple[str, str, str]:
    """Return the name of a flag, a non-empty text if the argument contains a value, and that value. Raises
    OptionsError.
    """
    if not text.startswith("--"):
        if text[1] != "v":
            raise OptionsError(f"unknown shorthand flag: {text[1]!r} in {text}")
        return "v", text[2:], text[2:].removeprefix("=")
    if text[2] in "-=":
        raise OptionsError(f"bad flag syntax: {text}")
    return text[2:].partition("=")


def _lookup(name: str, others: Iterable[str] = ()) -> Flag:
    flag = FLAGS.get(name)
    if flag is not None:
        return flag
    if name in NOT_SUPPORTED:
        raise OptionsError(f"not supported yet: --{name}")
    raise OptionsError(f"unknown flag: --{name}{did_you_mean(name, (*FLAGS, *NOT_SUPPORTED, *others), '--')}")


def check(options: Options) -> None:
    """Check combinations of flags. Raises OptionsError."""
    if bool(options.tls_cert_file) != bool(options.tls_private_key_file):
        raise OptionsError("--tls-cert-file and --tls-private-key-file must be given together")
    _check_authorization(options)
    if bool(options.kubelet_client_certificate) != bool(options.kubelet_client_key):
        raise OptionsError("--kubelet-client-certificate and --kubelet-client-key must be given together")
    from steersman.controlplane.admission import plugin_names
    from steersman.controlplane.runtime_config import RuntimeConfig

    known = plugin_names()
    for flag, names in (("enable", options.enable_admission_plugins), ("disable", options.disable_admission_plugins)):
        for name in names:
            if name not in known:
                why = f"unknown admission plugin {name!r}{known_names_hint(name, known)}"
                raise OptionsError(f"--{flag}-admission-plugins: {why}")
    both = sorted({*options.enable_admission_plugins} & {*options.disable_admission_plugins})
    if both:
        raise OptionsError(f"[{' '.join(both)}] in enable-admission-plugins and disable-admission-plugins overlapped")
    RuntimeConfig(options.runtime_config)
    check_ties(options)


def _check_authorization(options: Options) -> None:
    modes = options.authorization_mode
    if len(set(modes)) != len(modes):
        raise OptionsError("--authorization-mode: modes must be given, each once")
    for mode, file, flag, what in (
        ("ABAC", options.authorization_policy_file, "--authorization-policy-file", "policy"),
        ("Webhook", options.authorization_webhook_config_file, "--authorization-webhook-config-file", "config"),
    ):
        if mode in modes and not file:
            raise OptionsError(f"authorization-mode {mode}'s authorization {what} file not passed")
        if file and mode not in modes and not options.authorization_config:
            raise OptionsError(f"cannot specify {flag} without mode {mode}")
