"""RBAC decisions: compared with an evaluator written from the documentation, and upstream's messages."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.rbac.v1 import (
    PolicyRule,
    RoleRef,
    Subject,
)
from steersman.authentication.user import UserInfo
from steersman.authorization import rbac, rbac_bindings
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, Verdict, decide
from steersman.authorization.rbac import RbacAuthorizer, RoleNotFound
from steersman.authorization.rbac_bindings import Binding, RoleRules
from steersman.machinery.identity.action import Action
from steersman.machinery.large_work.sizes import MAX_VALUES
from tests.counted_work import calls, with_texts
from tests.example_counts import examples

API = "rbac.authorization.k8s.io"


# An evaluator without index or memory, from https://kubernetes.io/docs/reference/access-authn-authz/rbac/.


def documented_rule_allows(rule: Any, attributes: Any) -> Any:
    a = attributes.action
    if "*" not in rule.verbs and a.verb not in rule.verbs:
        return False
    if attributes.path is not None:
        return any(
            attributes.path == url or (url.endswith("*") and attributes.path.startswith(url.rstrip("*")))
            for url in rule.non_resource_urls
        )
    if "*" not in rule.api_groups and a.group not in rule.api_groups:
        return False
    wanted = {"*", f"{a.resource}/{a.subresource}", f"*/{a.subresource}"} if a.subresource else {"*", a.resource}
    if not wanted & set(rule.resources):
        return False
    return not rule.resource_names or a.name in rule.resource_names


def documented_subject_is(subject: Any, namespace: Any, user: Any) -> Any:
    if subject.kind == "User":
        return user.name == subject.name
    if subject.kind == "Group":
        return subject.name in user.groups
    account_namespace = subject.namespace or namespace
    return bool(account_namespace) and user.name == f"system:serviceaccount:{account_namespace}:{subject.name}"


def documented_allowed(objects: Any, a: Any) -> Any:
    roles, bindings = objects
    for (namespace, _), (role_ref, subjects) in bindings.items():
        if namespace not in ("", a.action.namespace):
            continue
        if not any(documented_subject_is(subject, namespace, a.user) for subject in subjects):
            continue
        role_namespace = "" if role_ref.kind == "ClusterRole" else namespace
        if role_ref.kind == "Role" and not namespace:
            continue
        rules = roles.get((role_namespace, role_ref.name), [])
        if any(documented_rule_allows(rule, a) for rule in rules):
            return True
    return False


NAMESPACES = ("one", "two")
NAMES = st.sampled_from(["a", "b", "c"])


def some(*values: Any) -> Any:
    return st.lists(st.sampled_from(values), max_size=2)


RULES = st.builds(
    PolicyRule,
    verbs=some("get", "list", "create", "*"),
    api_groups=some("", "apps", "*"),
    resources=some("pods", "pods/log", "*/log", "things", "*"),
    resource_names=st.one_of(st.just([]), some("a", "b")),
    non_resource_urls=some("/healthz", "/api/*", "*", "/api*"),
)
USER_NAMES = ["alice", "bob", "system:serviceaccount:one:robot", "system:serviceaccount:two:robot"]
SUBJECTS = st.one_of(
    st.builds(Subject, kind=st.just("User"), name=st.sampled_from(USER_NAMES)),
    st.builds(Subject, kind=st.just("Group"), name=st.sampled_from(["dev", "ops"])),
    st.builds(
        Subject, kind=st.just("ServiceAccount"), name=st.just("robot"), namespace=st.sampled_from(["", *NAMESPACES])
    ),
)
CHANGES = st.one_of(
    st.tuples(
        st.just("role"),
        st.sampled_from(["", *NAMESPACES]),
        NAMES,
        st.one_of(st.none(), st.lists(RULES, max_size=3)),
    ),
    st.tuples(
        st.just("binding"),
        st.sampled_from(["", *NAMESPACES]),
        NAMES,
        st.one_of(
            st.none(),
            st.tuples(
                st.builds(RoleRef, api_group=st.just(API), kind=st.sampled_from(["Role", "ClusterRole"]), name=NAMES),
                st.lists(SUBJECTS, max_size=3),
            ),
        ),
    ),
)
USERS = st.builds(
    UserInfo,
    name=st.sampled_from(USER_NAMES),
    groups=st.lists(st.sampled_from(["dev", "ops", "other"]), max_size=2, unique=True).map(tuple),
)
RESOURCE_QUESTIONS = st.builds(
    Attributes,
    USERS,
    st.builds(
        Action,
        verb=st.sampled_from(["get", "list", "delete"]),
        namespace=st.sampled_from(["", *NAMESPACES, "three"]),
        group=st.sampled_from(["", "apps"]),
        resource=st.sampled_from(["pods", "things"]),
        subresource=st.sampled_from(["", "log"]),
        name=st.sampled_from(["", "a", "c"]),
    ),
)
PATH_QUESTIONS = st.builds(
    Attributes,
    USERS,
    st.builds(Action, verb=st.sampled_from(["get", "post"])),
    path=st.sampled_from(["/healthz", "/api", "/api/v1"]),
)


def apply(authorizer: Any, change: Any) -> None:
    kind, namespace, name, value = change
    if kind == "role":
        authorizer.put_role(namespace, name, None if value is None else RoleRules(value))
    else:
        authorizer.put_binding(namespace, name, None if value is None else Binding(namespace, name, *value))


HISTORIES = st.lists(
    st.tuples(CHANGES, st.lists(st.one_of(RESOURCE_QUESTIONS, PATH_QUESTIONS), max_size=4)), min_size=1, max_size=15
)


def asked(authorizer: Any, history: Any) -> Iterator[Any]:
    """Apply changes in order; yield each question after a change with the documented answer."""
    roles: dict[Any, Any] = {}
    bindings: dict[Any, Any] = {}
    for change, questions in history:
        kind, namespace, name, value = change
        objects = roles if kind == "role" else bindings
        objects.pop((namespace, name), None)
        if value is not None:
            objects[namespace, name] = value
        apply(authorizer, change)
        for question in questions * 2:  # once found, once remembered
            yield question, documented_allowed((roles, bindings), question)


@given(HISTORIES)
def test_decisions_are_those_of_the_documentation_after_every_change(history: Any) -> None:
    authorizer = RbacAuthorizer()
    for question, expected in asked(authorizer, history):
        verdict = authorizer.authorize(question)
        assert isinstance(verdict, Verdict)
        assert verdict.allowed == expected


async def test_decisions_are_the_same_where_there_is_much_to_look_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rbac_bindings, "WIDE", 1)

    async def judged(history: Any) -> None:
        authorizer = RbacAuthorizer(few_bindings=-1)
        for question, expected in asked(authorizer, history):
            assert (await decide(authorizer, question)).allowed == expected

    @settings(max_examples=examples(60), deadline=None)
    @given(HISTORIES)
    def check(history: Any) -> None:
        asyncio.run_coroutine_threadsafe(judged(history), loop).result()

    loop = asyncio.get_running_loop()
    await asyncio.to_thread(check)


def everything_allowed(authorizer: Any, user: Any, namespace: Any, name: Any = "") -> Any:
    return authorizer.authorize(Attributes(user, Action("get", namespace=namespace, resource="pods", name=name)))


READ_PODS = [PolicyRule(verbs=["get"], api_groups=[""], resources=["pods"])]


@pytest.fixture
def cluster() -> Any:
    """An authorizer with short methods to fill it."""
    return cluster_of(RbacAuthorizer())


@pytest.fixture
def served() -> Any:
    """An authorizer filled as a server does it."""
    return cluster_of(RbacAuthorizer())


def cluster_of(authorizer: Any) -> Any:
    def bind(name: Any, role: Any, *subjects: Any, namespace: Any = "", kind: Any = "ClusterRole") -> None:
        ref = RoleRef(api_group=API, kind=kind, name=role)
        apply(authorizer, ("binding", namespace, name, (ref, list(subjects))))

    def role(name: Any, rules: Any, namespace: Any = "") -> None:
        apply(authorizer, ("role", namespace, name, rules))

    return SimpleNamespace(authorizer=authorizer, bind=bind, role=role)


ALICE = UserInfo("alice", groups=("dev", "system:authenticated"))


class TestReasons:
    def test_a_cluster_role_binding_to_a_group(self, cluster: Any) -> None:
        cluster.role("view", READ_PODS)
        cluster.bind("viewers", "view", Subject(kind="User", name="zoe"), Subject(kind="Group", name="dev"))
        verdict = everything_allowed(cluster.authorizer, ALICE, "n")
        assert verdict.reason == ('RBAC: allowed by ClusterRoleBinding "viewers" of ClusterRole "view" to Group "dev"')

    def test_a_role_binding_names_its_namespace_last(self, cluster: Any) -> None:
        cluster.role("r", READ_PODS, namespace="n")
        cluster.bind("b", "r", Subject(kind="User", name="alice"), namespace="n", kind="Role")
        verdict = everything_allowed(cluster.authorizer, ALICE, "n")
        assert verdict.reason == 'RBAC: allowed by RoleBinding "b/n" of Role "r" to User "alice"'

    def test_a_service_account_without_namespace_is_of_the_binding_s(self, cluster: Any) -> None:
        cluster.role("r", READ_PODS)
        cluster.bind("b", "r", Subject(kind="ServiceAccount", name="robot"), namespace="n")
        robot = UserInfo("system:serviceaccount:n:robot")
        verdict = everything_allowed(cluster.authorizer, robot, "n")
        assert verdict.reason == 'RBAC: allowed by RoleBinding "b/n" of ClusterRole "r" to ServiceAccount "robot/n"'
        assert not everything_allowed(cluster.authorizer, robot, "other").allowed

    def test_the_first_subject_that_applies_is_named(self, cluster: Any) -> None:
        cluster.role("r", READ_PODS)
        subjects = [Subject(kind="Group", name="dev"), Subject(kind="User", name="alice")]
        cluster.bind("b", "r", *subjects)
        assert everything_allowed(cluster.authorizer, ALICE, "").reason.endswith('to Group "dev"')
        cluster.bind("b", "r", *reversed(subjects))
        assert everything_allowed(cluster.authorizer, ALICE, "").reason.endswith('to User "alice"')

    def test_missing_roles_are_told_with_a_refusal_only(self, cluster: Any) -> None:
        cluster.bind("a", "gone", Subject(kind="User", name="alice"))
        verdict = everything_allowed(cluster.authorizer, ALICE, "n")
        assert verdict.decision is Decision.NO_OPINION
        assert verdict.reason == 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found'
        cluster.bind("b", "lost", Subject(kind="User", name="alice"), namespace="n", kind="Role")
        cluster.bind("c", "lost", Subject(kind="Group", name="dev"), namespace="n", kind="Role")
        assert everything_allowed(cluster.authorizer, ALICE, "n").reason == (
            'RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, '
            'role.rbac.authorization.k8s.io "lost" not found]'
        )
        cluster.role("lost", READ_PODS, namespace="n")
        assert everything_allowed(cluster.authorizer, ALICE, "n").allowed

    def test_a_refusal_without_missing_roles_has_no_reason(self, cluster: Any) -> None:
        assert everything_allowed(cluster.authorizer, ALICE, "n").reason == ""


class TestMuchToLookThrough:
    """Large evaluations run in worker threads, and cached results are bounded."""

    @pytest.fixture
    def at(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        """The threads in which grants were evaluated."""
        found = set()
        judged, listed = rbac.evaluate, rbac.list_rules

        def see(work: Callable[..., Any]) -> Callable[..., Any]:
            def seen(*args: Any) -> Any:
                found.add(threading.get_ident())
                return work(*args)

            return seen

        monkeypatch.setattr(rbac, "evaluate", see(judged))
        monkeypatch.setattr(rbac, "list_rules", see(listed))
        return found

    async def judge(self, served: Any, name: Any = "") -> Any:
        question = Attributes(ALICE, Action("get", namespace="n", resource="pods", name=name))
        verdict = served.authorizer.authorize(question)
        assert not isinstance(verdict, Verdict)
        verdict = await verdict
        assert served.authorizer.authorize(question) == verdict  # remembered
        return verdict

    async def test_many_bindings(self, served: Any, at: Any) -> None:
        for number in range(200):
            rule = PolicyRule(verbs=["get"], api_groups=[""], resources=["pods"], resource_names=[f"p{number}"])
            served.role(f"r{number}", [rule], namespace="n")
            subject = Subject(kind="User", name="alice") if number % 2 else Subject(kind="Group", name="dev")
            served.bind(f"b{number}", f"r{number}", subject, namespace="n", kind="Role")
        assert (await self.judge(served, "p199")).reason == (
            'RBAC: allowed by RoleBinding "b199/n" of Role "r199" to User "alice"'
        )
        assert not everything_allowed(served.authorizer, ALICE, "n", "p200").allowed
        assert threading.get_ident() not in at

    async def test_a_large_role(self, served: Any, at: Any) -> None:
        rules = [
            PolicyRule(verbs=["get"], api_groups=[""], resources=["pods"], resource_names=[f"p{number}"])
            for number in range(2_000)
        ]
        served.role("r", rules, namespace="n")
        served.bind("b", "r", Subject(kind="User", name="alice"), namespace="n", kind="Role")
        assert (await self.judge(served, "p1999")).allowed
        assert not everything_allowed(served.authorizer, ALICE, "n", "p2000").allowed
        assert len((await served.authorizer.rules_for(ALICE, "n")).resource_rules) == 2_000
        assert threading.get_ident() not in at

    async def test_bindings_of_many_subjects(self, served: Any) -> None:
        served.role("r", READ_PODS)
        crowd = [Subject(kind="User", name=f"user{number}") for number in range(1_500)]
        for number in range(150):
            served.bind(f"b{number:03}", "r", *crowd, Subject(kind="Group", name="dev"), namespace="n")
        assert (await self.judge(served)).reason == (
            'RBAC: allowed by RoleBinding "b000/n" of ClusterRole "r" to Group "dev"'
        )
        assert calls(lambda: served.bind("b000", "r", namespace="n")) < 100

    async def test_a_right_that_is_taken_away_meanwhile_does_not_count(self, served: Any) -> None:
        served.role("r", READ_PODS * 2_000, namespace="n")
        served.bind("b", "r", Subject(kind="User", name="alice"), namespace="n", kind="Role")
        question = Attributes(ALICE, Action("get", namespace="n", resource="pods"))
        changes: tuple[Callable[[], Any], ...] = (
            lambda: served.role("r", None, namespace="n"),
            lambda: served.bind("b", "r", Subject(kind="User", name="bob"), namespace="n", kind="Role"),
        )
        for take_away in changes:
            assert (await decide(served.authorizer, question)).allowed
            served.role("r", READ_PODS * 2_000, namespace="n")
            judging = asyncio.ensure_future(decide(served.authorizer, question))
            await asyncio.sleep(0)
            take_away()
            assert not (await judging).allowed
            served.role("r", READ_PODS * 2_000, namespace="n")

    async def test_a_user_of_many_groups(self, served: Any) -> None:
        served.role("r", READ_PODS)
        for number in range(0, 20_000, 1_000):
            served.bind(f"b{number:05}", "r", Subject(kind="Group", name=f"g{number}"), namespace="n")
        crowd = UserInfo("alice", groups=tuple(f"g{number}" for number in reversed(range(20_000))))
        question = Attributes(crowd, Action("get", namespace="n", resource="pods"))
        assert calls(lambda: asyncio.ensure_future(served.authorizer.authorize(question)).cancel()) < 50
        assert (await decide(served.authorizer, question)).reason == (
            'RBAC: allowed by RoleBinding "b00000/n" of ClusterRole "r" to Group "g0"'
        )
        assert len((await served.authorizer.rules_for(crowd, "n")).resource_rules) == 20

    @pytest.mark.slow
    async def test_refusals_tell_of_missing_roles_within_a_bound(self, served: Any) -> None:
        for number in range(3_000):
            served.bind(f"b{number}", f"{'r' * 200}{number}", Subject(kind="User", name="alice"), namespace="n")
        assert 60_000 < len((await self.judge(served)).reason) < 80_000
        for number in range(400):
            question = Attributes(ALICE, Action("get", namespace="n", resource=f"r{number}"))
            await decide(served.authorizer, question)
        assert len(served.authorizer.judgements) < 300


class TestListedRules:
    async def test_rules_given_twice_are_listed_twice(self, served: Any) -> None:
        served.role("a", READ_PODS)
        for name in ("x", "y"):
            served.bind(name, "a", Subject(kind="User", name="alice"))
        resolved = await served.authorizer.rules_for(ALICE, "n")
        assert (resolved.resource_rules, resolved.incomplete, resolved.error) == (tuple(READ_PODS * 2), False, "")

    async def test_more_than_any_role_has_is_told_to_be_incomplete(self, served: Any) -> None:
        served.role("a", READ_PODS * 6_500, namespace="n")
        for number in range(300):
            served.bind(f"b{number}", "a", Subject(kind="User", name="alice"), namespace="n", kind="Role")
        resolved = await served.authorizer.rules_for(ALICE, "n")
        assert resolved.incomplete
        assert len(resolved.resource_rules) == MAX_VALUES // 4
        assert resolved.error == ("rbac authorizer does not list rules of more than 65536 values or 4194304 characters")

    async def test_long_rules_are_bounded_too(self, served: Any) -> None:
        served.role("a", [PolicyRule(verbs=["get"], api_groups=[""], resources=["x" * 1_000_000])])
        for number in range(300):
            served.bind(f"b{number}", "a", Subject(kind="User", name="alice"), namespace="n")
        resolved = await served.authorizer.rules_for(ALICE, "n")
        assert (resolved.incomplete, len(resolved.resource_rules)) == (True, 4)

    async def test_each_role_is_compared_once(self, served: Any) -> None:
        served.role("a", READ_PODS * 6_500, namespace="n")
        for number in range(300):
            served.bind(f"b{number}", "a", Subject(kind="User", name="alice"), namespace="n", kind="Role")
        held, error = await served.authorizer.policy_rules_for(ALICE, "n")
        assert (len(held), len(held[0]), error) == (1, 6_500, "")


def test_names_limit_a_rule_to_these_objects(cluster: Any) -> None:
    cluster.role("r", [PolicyRule(verbs=["get"], api_groups=[""], resources=["pods"], resource_names=["p"])])
    cluster.bind("b", "r", Subject(kind="User", name="alice"))
    assert everything_allowed(cluster.authorizer, ALICE, "n", name="p").allowed
    assert not everything_allowed(cluster.authorizer, ALICE, "n", name="q").allowed
    assert not everything_allowed(cluster.authorizer, ALICE, "n").allowed


def test_what_clients_ask_does_not_fill_the_memory(cluster: Any) -> None:
    authorizer = cluster.authorizer
    cluster.role("r", READ_PODS)
    cluster.bind("b", "r", Subject(kind="User", name="alice"))
    for number in range(40_000):
        authorizer.authorize(Attributes(ALICE, Action("get"), f"/{number}"))
    authorizer.authorize(Attributes(ALICE, Action("get"), "/" + "x" * 10_000))
    assert len(authorizer.judgements) <= 32_768
    assert not any(len(part) > 512 for key in authorizer.judgements for part in key)
    assert everything_allowed(authorizer, ALICE, "n").allowed


@pytest.mark.parametrize(
    "rule",
    [
        lambda n: PolicyRule(verbs=["get"], api_groups=[""], resources=["pods"], resource_names=[f"a{n}"]),
        lambda n: PolicyRule(verbs=[f"v{n}"], api_groups=[""], resources=["pods"]),
        lambda n: PolicyRule(verbs=["get"], api_groups=[f"g{n}"], resources=["*"], resource_names=["a"]),
        lambda n: PolicyRule(verbs=["get"], api_groups=[""], resources=[f"r{n}"]),
        lambda n: PolicyRule(verbs=["get"], non_resource_urls=[f"/a{n:06}"]),
        lambda n: PolicyRule(verbs=["get"], non_resource_urls=[f"/a{n:06}*"]),
    ],
    ids=["names", "verbs", "groups", "resources", "urls", "patterns"],
)
def test_a_role_of_many_rules_is_not_gone_through_for_each_request(
    rule: Callable[..., Any],
) -> None:
    cluster = cluster_of(RbacAuthorizer(few_values=1 << 20))  # so that it is judged here, where calls are counted
    cluster.role("r", [with_texts(rule(n)) for n in range(3000)])
    cluster.bind("b", "r", Subject(kind="User", name="alice"))
    counts = [calls(partial(everything_allowed, cluster.authorizer, ALICE, f"n{number}")) for number in range(20)]
    assert max(counts[8:]) < 300  # the first find out how the rules differ


async def test_rules_are_listed_with_what_could_not_be_found(cluster: Any) -> None:
    cluster.role("a", READ_PODS)
    urls = PolicyRule(verbs=["get"], non_resource_urls=["/x"])
    cluster.role("r", [urls], namespace="n")
    cluster.bind("a", "a", Subject(kind="Group", name="dev"))
    cluster.bind("r", "r", Subject(kind="User", name="alice"), namespace="n", kind="Role")
    cluster.bind("s", "none", Subject(kind="User", name="alice"), namespace="n", kind="Role")
    resolved = await cluster.authorizer.rules_for(ALICE, "n")
    assert resolved.resource_rules == tuple(READ_PODS)
    assert resolved.non_resource_rules == (urls,)
    assert not resolved.incomplete
    assert resolved.error == 'role.rbac.authorization.k8s.io "none" not found'


async def test_role_references_lead_to_rules(cluster: Any) -> None:
    cluster.role("a", READ_PODS)
    rules_of = cluster.authorizer.rules_of
    assert await rules_of(RoleRef(kind="ClusterRole", name="a"), "n") == tuple(READ_PODS)
    with pytest.raises(RoleNotFound) as missing:
        await rules_of(RoleRef(kind="Role", name="a"), "")
    assert (missing.value.resource, missing.value.name) == ("roles", "a")
    with pytest.raises(ValueError, match='unsupported role reference kind: "Thing"'):
        await rules_of(RoleRef(kind="Thing", name="a"), "n")
