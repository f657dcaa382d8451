"""kube-apiserver's flags: parsed as Go parses them, never ignored, with errors in one line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from steersman.cli import main
from steersman.cli.flags import NOT_SUPPORTED, parse
from steersman.controlplane.admission import PLUGINS, plugin_names
from steersman.controlplane.flag_readers import parse_override
from steersman.controlplane.options import FLAGS, Options, OptionsError


def parsed(*arguments: str) -> Options:
    return parse(list(arguments), Path("/nowhere"))


def serve(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["serve", *arguments])


def test_without_flags_the_defaults_are_kube_apiservers() -> None:
    options = parsed()
    assert options.secure_port == 6443
    assert options.bind_address == "0.0.0.0"
    assert options.service_cluster_ip_range == "10.0.0.0/24"
    assert options.service_node_port_range == "30000-32767"
    assert (options.max_requests_inflight, options.max_mutating_requests_inflight) == (400, 200)
    assert (options.request_timeout, options.min_request_timeout) == (60.0, 1800)
    assert options.event_ttl == 3600
    assert options.anonymous_auth


@pytest.mark.parametrize(
    "arguments",
    [["--secure-port=8443"], ["--secure-port", "8443"], ["--secure_port=8443"]],
    ids=" ".join,
)
def test_a_value_is_given_as_go_takes_it(arguments: list[str]) -> None:
    assert parsed(*arguments).secure_port == 8443


@pytest.mark.parametrize(
    ("argument", "value"),
    [("--anonymous-auth=false", False), ("--anonymous-auth=0", False), ("--anonymous-auth", True)],
)
def test_a_boolean_needs_no_value_and_takes_none_from_the_next_argument(argument: str, value: bool) -> None:
    options = parsed(argument, "--secure-port=1")
    assert (options.anonymous_auth, options.secure_port) == (value, 1)


@pytest.mark.parametrize("arguments", [["-v", "3"], ["-v=3"], ["-v3"], ["--v=3"], ["--v", "3"]], ids=" ".join)
def test_the_one_shorthand_is_that_of_the_log_level(arguments: list[str]) -> None:
    assert parsed(*arguments, "--secure-port=1").verbosity == 3


@pytest.mark.parametrize("asking", ["-h", "--help"])
def test_help_is_asked_for_in_two_ways(asking: str) -> None:
    assert "  --secure-port int " in serve(asking).stdout


def test_the_version_is_told_as_by_the_command_itself() -> None:
    told = serve("--version")
    assert (told.exit_code, told.stdout) == (0, CliRunner().invoke(main, ["--version"]).stdout)


def test_durations_are_gos() -> None:
    assert parsed("--request-timeout=1m30s").request_timeout == 90
    assert parsed("--shutdown-delay-duration=250ms").shutdown_delay_duration == 0.25
    assert parsed("--event-ttl=2h").event_ttl == 7200


def test_a_flag_given_again_adds_where_it_may_and_replaces_elsewhere() -> None:
    options = parsed(
        "--service-account-issuer=https://a.example", "--service-account-issuer=https://b.example", "--v=1", "--v=3"
    )
    assert options.service_account_issuer == ("https://a.example", "https://b.example")
    assert options.verbosity == 3


def test_flags_of_several_values_take_them_one_by_one_too() -> None:
    options = parsed(
        "--authorization-mode=RBAC",
        "--authorization-mode=AlwaysAllow",
        "--runtime-config=api/all=true",
        "--runtime-config=apps/v1=false",
        "--api-audiences=a,b",
        "--api-audiences=c",
        "--cors-allowed-origins=^a$",
        "--cors-allowed-origins=//b:,//c(:|$)",
        "--strict-transport-security-directives=max-age=1",
        "--strict-transport-security-directives=preload",
        "--tls-cipher-suites=TLS_AES_128_GCM_SHA256",
        "--tls-cipher-suites=TLS_AES_256_GCM_SHA384",
    )
    assert options.authorization_mode == ("RBAC", "AlwaysAllow")
    assert options.runtime_config == {"api/all": "true", "apps/v1": "false"}
    assert options.api_audiences == ("a", "b", "c")
    assert options.cors_allowed_origins == ("^a$", "//b:", "//c(:|$)")
    assert options.strict_transport_security_directives == ("max-age=1", "preload")
    assert options.tls_cipher_suites == ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384")
    with pytest.raises(OptionsError, match="modes must be given, each once"):
        parsed("--authorization-mode=RBAC", "--authorization-mode=RBAC")


def test_a_known_flag_that_is_not_supported_is_never_ignored() -> None:
    for name in sorted(NOT_SUPPORTED - {"help"}):
        with pytest.raises(OptionsError, match=f"^not supported yet: --{name}$"):
            parsed(f"--{name}=value")


def test_feature_gates_may_be_named_with_their_defaults() -> None:
    options = parsed("--feature-gates=SidecarContainers=true, kube:AllAlpha=F,", "--feature-gates=")
    assert options.feature_gates == {"SidecarContainers": "true", "AllAlpha": "false"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Foo=true", "unrecognized feature gate: Foo"),
        ("APIServerIdentity", "missing bool value for APIServerIdentity"),
        ("foo:Bar=true", "component not registered: foo"),
        ("AllAlpha=maybe", 'invalid value of AllAlpha=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax'),
        ("SidecarContainers=false", "cannot set feature gate SidecarContainers to false, feature is locked to true"),
        ("CBORServingAndStorage=true", "not supported yet: CBORServingAndStorage=true, as every gate"),
        ("AllBeta=false", "not supported yet: AllBeta=false, as every gate"),
    ],
)
def test_feature_gates_are_refused_in_the_words_of_kube_apiserver(text: str, told: str) -> None:
    with pytest.raises(OptionsError, match=f"^--feature-gates: {re.escape(told)}"):
        parsed(f"--feature-gates={text}")


@pytest.mark.parametrize("flag", ["watch-cache=false", "enable-garbage-collector=false", "enable-logs-handler=true"])
def test_flags_of_one_value_refuse_the_other(flag: str) -> None:
    name, _, value = flag.partition("=")
    usual = {"true": "false", "false": "true"}[value]
    assert parsed(f"--{name}={usual}") == parsed()
    with pytest.raises(OptionsError, match=f"^--{name}: not supported yet: {value}$"):
        parsed(f"--{flag}")


def test_a_mistyped_flag_is_told_with_what_was_meant() -> None:
    with pytest.raises(OptionsError, match=r"^unknown flag: --secure-prot, did you mean --secure-port\?$"):
        parsed("--secure-prot=1")
    with pytest.raises(OptionsError, match=r"^unknown flag: --qqqqqqq$"):
        parsed("--qqqqqqq")


@pytest.mark.parametrize(
    ("text", "number"), [("0x10", 16), ("010", 8), ("0o7", 7), ("0b11", 3), ("+5", 5), ("1_000", 1000), ("0", 0)]
)
def test_numbers_are_those_of_go(text: str, number: int) -> None:
    assert parsed(f"--max-requests-inflight={text}").max_requests_inflight == number


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("--secure-port=65536", "--secure-port: 65536 is not a port"),
        ("--secure-port=-1", "--secure-port: -1 is negative"),
        ("--secure-port=x", "--secure-port: 'x' is not a whole number"),
        ("--secure-port=0x", "--secure-port: '0x' is not a whole number"),
        ("--secure-port=09", "--secure-port: '09' is not a whole number"),
        ("--secure-port=1 ", "--secure-port: '1 ' is not a whole number"),
        ("--secure-port=+-1", "--secure-port: '+-1' is not a whole number"),
        ("--secure-port=", "--secure-port: '' is not a whole number"),
        (f"--secure-port={'1' * 5000}", f"--secure-port: '{'1' * 100}' is not a whole number"),
        ("--max-requests-inflight=9223372036854775808", "--max-requests-inflight: 9223372036854775808 is out of range"),
        ("--runtime-config==true", "runtime-config invalid key"),
        ("--bind-address=::1%lo", "--bind-address: '::1%lo' does not appear to be an IPv4 or IPv6 address"),
        ("--secure-port", "--secure-port needs a value"),
        ("--request-timeout=soon", '--request-timeout: time: invalid duration "soon"'),
        ("--request-timeout=-1s", "--request-timeout: -1s is negative"),
        ("--anonymous-auth=maybe", "--anonymous-auth: 'maybe' is neither true nor false"),
        ("--bind-address=here", "--bind-address: 'here' does not appear to be an IPv4 or IPv6 address"),
        ("--storage=paper", "--storage: 'paper' is none of sqlite, memory"),
        ("--authorization-mode=ABAC", "authorization-mode ABAC's authorization policy file not passed"),
        ("--authorization-mode=Webhook", "authorization-mode Webhook's authorization config file not passed"),
        ("--authorization-policy-file=/dev/null", "cannot specify --authorization-policy-file without mode ABAC"),
        (
            "--authorization-webhook-version=v2",
            '--authorization-webhook-version: unsupported webhook authorizer version "v2", supported versions are',
        ),
        ("--authorization-mode=Whim", "--authorization-mode: unknown mode 'Whim'"),
        ("--goaway-chance=0.5", "--goaway-chance: must be between 0 and 0.02"),
        (
            "--cors-allowed-origins=(",
            "--cors-allowed-origins: invalid regular expression: error parsing regexp: missing ",
        ),
        (
            "--cors-allowed-origins=^a$(?!b)",
            "--cors-allowed-origins: invalid regular expression: error parsing regexp: invalid or unsupported",
        ),
        ("--cors-allowed-origins=^a$,,^b$", "--cors-allowed-origins: an expression is empty"),
        (
            "--cors-allowed-origins=//a.com",
            "--cors-allowed-origins: invalid regular expression: regular expression does not pin to start/end of host",
        ),
        (
            "--cors-allowed-origins=a.com$",
            "--cors-allowed-origins: invalid regular expression: regular expression does not pin to start/end of host",
        ),
        ("--service-account-issuer=:a", "--service-account-issuer: ':a' contained a ':' but was not a valid URL: "),
        ("--service-account-issuer=", "--service-account-issuer: should not be an empty string"),
        ("--token-auth-file=/no/such", "--token-auth-file: /no/such: No such file or directory"),
        ("--client-ca-file=/no/such", "--client-ca-file: /no/such: No such file or directory"),
        ("--tls-cert-file=/dev/null", "--tls-cert-file and --tls-private-key-file must be given together"),
        ("--enable-admission-plugins=Mood", "--enable-admission-plugins: unknown admission plugin 'Mood'"),
        ("--runtime-config=resource.k8s.io/v9", "group version resource.k8s.io/v9 that has not been registered"),
        ("--runtime-config=foo/v1=true", "unknown api groups foo/v1"),
        ("--runtime-config=apps/v1=no", "invalid value of apps/v1: no, err: strconv.ParseBool"),
        ("-data-dir", "unknown shorthand flag: 'd' in -data-dir"),
        ("-p", "unknown shorthand flag: 'p' in -p"),
        ("-authorization-mode=RBAC", "unknown shorthand flag: 'a' in -authorization-mode=RBAC"),
        ("-v", "--v needs a value"),
        ("---v=1", "bad flag syntax: ---v=1"),
        ("--=1", "bad flag syntax: --=1"),
        ("--data-dir=", "--data-dir: the name of a folder is needed"),
        ("stray", "unexpected argument 'stray'"),
    ],
)
def test_a_value_that_cannot_be_is_told_in_one_line(argument: str, told: str) -> None:
    result = serve(argument)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"steersman: {told}")
    assert result.stderr.count("\n") == 1


def test_two_storages_are_refused() -> None:
    result = serve("--storage=sqlite", "--etcd-servers=http://a:2379")
    assert result.exit_code == 1
    assert result.stderr == "steersman: --storage=sqlite and --etcd-servers contradict each other: omit one\n"


def test_to_enable_what_upstream_has_on_by_default_changes_nothing() -> None:
    """Operators' test environments enable such plugins, as kro's does with ValidatingAdmissionPolicy."""
    for name in sorted({*plugin_names()} - {each.name for each in PLUGINS}):
        assert parsed(f"--enable-admission-plugins={name}").enable_admission_plugins == (name,)


def test_every_flag_sets_an_option_that_exists() -> None:
    fields = set(type(parsed()).__dataclass_fields__)
    assert {flag.option for flag in FLAGS.values()} <= fields


def test_every_flag_but_the_projects_own_is_one_of_kube_apiservers() -> None:
    lines = (Path(__file__).parent / "kube_apiserver_flags.txt").read_text().splitlines()
    upstream = {line.partition(" ")[0] for line in lines}
    own = {
        "data-dir",
        "storage",
        "history",
        "workers",
        "unsafe-no-fsync",
        "controllers",
        "debug-loop-watchdog",
        "faults",
    }
    assert FLAGS.keys() - upstream == own == {name for name, flag in FLAGS.items() if flag.is_own}
    assert upstream - FLAGS.keys() == NOT_SUPPORTED


def test_options_are_shown_as_flags_in_pflags_form() -> None:
    shown = parsed(
        "--request-timeout=1m30s",
        "--shutdown-delay-duration=250ms",
        "--goaway-chance=0.001",
        "--v=2",
        "--authorization-mode=RBAC,AlwaysDeny",
    )
    shown.runtime_config = {"b/v1": "true", "a/v1": "false"}
    assert shown.as_flags().items() >= {
        ("request-timeout", "1m30s"),
        ("shutdown-delay-duration", "250ms"),
        ("event-ttl", "1h0m0s"),
        ("etcd-compaction-interval", "5m0s"),
        ("service-account-max-token-expiration", "0s"),
        ("kubelet-timeout", "5s"),
        ("goaway-chance", "0.001"),
        ("min-request-timeout", "1800"),
        ("authorization-mode", "[RBAC,AlwaysDeny]"),
        ("runtime-config", "a/v1=false,b/v1=true"),
        ("kubelet-preferred-address-types", "[Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP]"),
        ("api-audiences", "[]"),
        ("v", "2"),
    }


def test_flags_are_shown_and_nothing_else() -> None:
    assert parsed().as_flags().keys() == FLAGS.keys()


@pytest.mark.parametrize(
    "value", ["events#http://a", "/events", "/events#", "/events#http://a;", "/a/b#http://a", "/a#b#c"]
)
def test_overrides_of_etcd_that_cannot_be_read_are_refused_in_upstreams_words(value: str) -> None:
    with pytest.raises(OptionsError, match="invalid, must be of format: group/resource#servers"):
        parsed(f"--etcd-servers-overrides={value}")


def test_overrides_of_etcd_add_up() -> None:
    options = parsed(
        "--etcd-servers-overrides=/events#http://a;http://b,apps/deployments#http://c",
        "--etcd-servers-overrides=/pods#http://d",
    )
    assert options.etcd_servers_overrides == (
        "/events#http://a;http://b",
        "apps/deployments#http://c",
        "/pods#http://d",
    )
    assert parse_override("/events#http://a;http://b") == ("", "events", ("http://a", "http://b"))


def test_storage_backends_other_than_etcd3_are_refused() -> None:
    assert parsed("--storage-backend=etcd3").storage_backend == "etcd3"
    with pytest.raises(OptionsError, match="invalid, allowed values: etcd3"):
        parsed("--storage-backend=etcd2")


def test_a_negative_time_for_storage_is_refused() -> None:
    with pytest.raises(OptionsError, match="can not be negative value"):
        parsed("--storage-initialization-timeout=-1s")
