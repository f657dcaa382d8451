"""Files that an administrator gives, some of which are read again while the server runs."""

from __future__ import annotations

from typing import Final

from steersman.audit.policy_file import PolicyError, read_policy
from steersman.authentication.jwt import configuration, validation
from steersman.authorization.configuration import ConfigurationError, read_configuration
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.status import StatusError
from tools.fuzz.target import Target


def audit_policy(data: bytes) -> int:
    """The number of rules."""
    return len(read_policy(data).rules)


def authorization_configuration(data: bytes) -> int:
    """The number of authorizers."""
    return len(read_configuration(data))


def authentication_configuration(data: bytes) -> int:
    """The number of things that are wrong with it."""
    found = configuration.read_configuration(data)
    return sum(1 for _ in validation.configuration_errors(found, ["https://kubernetes.default.svc"]))


_AUDIT_WORDS: Final = (b"apiVersion: audit.k8s.io/v1\nkind: Policy\n", b"rules:\n- level: Metadata\n",
                       b"  omitStages: [a]\n",
                       b"  users: [a]\n", b"  resources:\n  - group: a\n", b"  nonResourceURLs: ['/a*']\n",
                       b"Request", b"*")  # fmt: skip
_AUTHORIZATION_WORDS: Final = (
    b"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n",
    b"authorizers:\n- type: RBAC\n  name: rbac\n",
    b"- type: Webhook\n  name: w\n  webhook:\n", b"    timeout: 3s\n", b"    failurePolicy: Deny\n",
    b"    authorizedTTL: 1s\n",
    b"    matchConditions:\n    - expression: \"request.user == 'a'\"\n",
    b"    connectionInfo:\n      type: InClusterConfig\n",
    b"    subjectAccessReviewVersion: v1\n    matchConditionSubjectAccessReviewVersion: v1\n",
)  # fmt: skip
_AUTHENTICATION_WORDS: Final = (
    b"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n", b"jwt:\n- issuer:\n    url: https://a\n",
    b"    audiences: [a]\n", b"    audienceMatchPolicy: MatchAny\n",
    b"  claimMappings:\n    username:\n      claim: sub\n",
    b"      prefix: ''\n", b"      expression: claims.sub\n",
    b"  claimValidationRules:\n  - claim: a\n    requiredValue: b\n",
    b"  userValidationRules:\n  - expression: \"user.username != 'a'\"\n", b"anonymous:\n  enabled: true\n",
    b"    extra:\n    - key: a.b/c\n      valueExpression: claims.x\n", b"    discoveryURL: https://b\n",
)  # fmt: skip

TARGETS: Final = (
    Target("audit-policy", audit_policy, (PolicyError, StatusError), _AUDIT_WORDS, base=0.4, each=0.1),
    Target("authorization-configuration", authorization_configuration, (ConfigurationError, StatusError),
           _AUTHORIZATION_WORDS, base=0.4, each=0.2),
    Target("authentication-configuration", authentication_configuration, (DecodeError, StatusError),
           _AUTHENTICATION_WORDS, base=0.4, each=0.2),
)  # fmt: skip
