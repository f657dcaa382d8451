"""Files that an administrator gives, some of which are read again while the server runs."""

from __future__ import annotations

from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

from steersman.audit.policy_file import PolicyError, read_policy
from steersman.authentication.jwt import configuration, validation
from steersman.authorization.configuration import ConfigurationError, read_configuration
from steersman.controlplane.egress_selector import egress_of
from steersman.controlplane.options import OptionsError
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.status import StatusError
from steersman.machinery.metrics import Registry
from steersman.storage.encryption import configuration as encryption
from steersman.storage.encryption.metrics import EnvelopeMetrics, TransformationMetrics
from steersman.storage.encryption.providers import Metrics, Providers
from tools.fuzz.target import Target


def audit_policy(data: bytes) -> int:
    """The number of rules."""
    return len(read_policy(data).rules or ())


def authorization_configuration(data: bytes) -> int:
    """The number of authorizers."""
    return len(read_configuration(data))


def authentication_configuration(data: bytes) -> int:
    """The number of things that are wrong with it."""
    found = configuration.read_configuration(data)
    return sum(1 for _ in validation.configuration_errors(found, ["https://kubernetes.default.svc"]))


def encryption_configuration(data: bytes) -> int:
    """The number of resources; what is judged good makes providers."""
    configuration = encryption.parse_configuration(data, Path("encryption.yaml"), reloads=True)
    resources = configuration.resources or []
    for each in resources:
        each.providers = [provider for provider in each.providers or [] if provider.kms is None]  # needs a loop
    Providers.from_configuration(configuration, Metrics(TransformationMetrics(), EnvelopeMetrics("server")))
    return len(resources)


def egress_configuration(data: bytes) -> int:
    """The length of what is told of it, 0 if it is good."""
    with NamedTemporaryFile(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as file:
        file.write(data)
        file.flush()
        try:
            egress_of(file.name, Registry())
        except OptionsError as error:
            return len(str(error))
    return 0


_ENCRYPTION_WORDS: Final = (
    b"apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n",
    b"resources:\n- resources: [secrets]\n",
    b"  providers:\n",
    b"  - aescbc:\n      keys:\n      - name: a\n        secret: YWFhYWFhYWFhYWFhYWFhYQ==\n",
    b"  - aesgcm: {keys: []}\n",
    b"  - secretbox:\n",
    b"  - identity: {}\n",
    b"'*.*'",
    b"*.apps",
    b"events.k8s.io",
    b"  - kms:\n      apiVersion: v2\n      name: a\n      endpoint: unix:///a\n",
    b"      timeout: 3s\n",
    b"      cachesize: 0\n",
)
_EGRESS_WORDS: Final = (
    b"apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\n",
    b"egressSelections:\n- name: cluster\n",
    b"  connection:\n    proxyProtocol: HTTPConnect\n",
    b"    transport:\n      tcp:\n        url: https://a:1\n",
    b"        tlsConfig:\n          caBundle: /a\n          clientKey: /b\n          clientCert: /c\n",
    b"      uds:\n        udsName: /s\n",
    b"proxyProtocol: GRPC",
    b"proxyProtocol: Direct",
    b"master",
    b"controlplane",
)
_AUDIT_WORDS: Final = (
    b"apiVersion: audit.k8s.io/v1\nkind: Policy\n",
    b"rules:\n- level: Metadata\n",
    b"  omitStages: [a]\n",
    b"  users: [a]\n",
    b"  resources:\n  - group: a\n",
    b"  nonResourceURLs: ['/a*']\n",
    b"Request",
    b"*",
)
_AUTHORIZATION_WORDS: Final = (
    b"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n",
    b"authorizers:\n- type: RBAC\n  name: rbac\n",
    b"- type: Webhook\n  name: w\n  webhook:\n",
    b"    timeout: 3s\n",
    b"    failurePolicy: Deny\n",
    b"    authorizedTTL: 1s\n",
    b"    matchConditions:\n    - expression: \"request.user == 'a'\"\n",
    b"    connectionInfo:\n      type: InClusterConfig\n",
    b"    subjectAccessReviewVersion: v1\n    matchConditionSubjectAccessReviewVersion: v1\n",
)
_AUTHENTICATION_WORDS: Final = (
    b"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n",
    b"jwt:\n- issuer:\n    url: https://a\n",
    b"    audiences: [a]\n",
    b"    audienceMatchPolicy: MatchAny\n",
    b"  claimMappings:\n    username:\n      claim: sub\n",
    b"      prefix: ''\n",
    b"      expression: claims.sub\n",
    b"  claimValidationRules:\n  - claim: a\n    requiredValue: b\n",
    b"  userValidationRules:\n  - expression: \"user.username != 'a'\"\n",
    b"anonymous:\n  enabled: true\n",
    b"    extra:\n    - key: a.b/c\n      valueExpression: claims.x\n",
    b"    discoveryURL: https://b\n",
)

TARGETS: Final = (
    Target("audit-policy", audit_policy, (PolicyError, StatusError), _AUDIT_WORDS, base=0.4, each=0.1),
    Target(
        "authorization-configuration",
        authorization_configuration,
        (ConfigurationError, StatusError),
        _AUTHORIZATION_WORDS,
        base=0.4,
        each=0.2,
    ),
    Target(
        "authentication-configuration",
        authentication_configuration,
        (DecodeError, StatusError),
        _AUTHENTICATION_WORDS,
        base=0.4,
        each=0.2,
    ),
    Target(
        "encryption-configuration",
        encryption_configuration,
        (encryption.ConfigurationError,),
        _ENCRYPTION_WORDS,
        base=0.4,
        each=0.2,
    ),
    Target("egress-configuration", egress_configuration, (), _EGRESS_WORDS, base=0.4, each=0.2),
)
