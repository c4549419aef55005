"""Service accounts, roles and bindings."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import dns_subdomain_errors, path_segment_errors
from kubesched.playground.apiserver.kinds.metadata import label_selector_errors
from kubesched.playground.apiserver.kinds.serving import AGE, DEFAULT_COLUMNS, NAME, PLAIN, KindRules, field_text
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn

_RBAC = "rbac.authorization.k8s.io"
_SCHEMA = "io.k8s.api.rbac.v1."


def _set_binding_defaults(binding: Object) -> None:
    if not binding["roleRef"].get("apiGroup"):
        binding["roleRef"]["apiGroup"] = _RBAC
    for subject in binding.get("subjects", []):
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", _RBAC)


def _rule_validator(namespaced: bool) -> Callable[[Object, Object | None], list[InvalidField]]:
    def validate(role: Object, _: Object | None) -> list[InvalidField]:
        found: list[InvalidField] = []
        for position, rule in enumerate(role.get("rules") or []):
            found += _rule_errors(rule, errors.index("rules", position), namespaced)
        return found + _aggregation_errors(role.get("aggregationRule"))

    return validate


def _aggregation_errors(aggregation: Object | None) -> list[InvalidField]:
    if aggregation is None:
        return []
    at, selectors = "aggregationRule.clusterRoleSelectors", aggregation.get("clusterRoleSelectors") or []
    if not selectors:
        return [errors.required(at, "at least one clusterRoleSelector required if aggregationRule is non-nil")]
    found: list[InvalidField] = []
    for position, selector in enumerate(selectors):
        wrong = label_selector_errors(selector, errors.index(at, position))
        if wrong:
            wrong.append(errors.invalid(errors.index(at, position), None, "invalid label selector."))
        found += wrong
    return found


def _rule_errors(rule: Object, path: str, namespaced: bool) -> list[InvalidField]:
    found: list[InvalidField] = []
    if not rule.get("verbs"):
        found.append(errors.required(f"{path}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs", [])
    if urls:
        at = f"{path}.nonResourceURLs"
        if namespaced:
            found.append(errors.invalid(at, urls, "namespaced rules cannot apply to non-resource URLs"))
        if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
            found.append(errors.invalid(at, urls, "rules cannot apply to both regular resources and non-resource URLs"))
        return found
    if not rule.get("apiGroups"):
        found.append(errors.required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        found.append(errors.required(f"{path}.resources", "resource rules must supply at least one resource"))
    return found


def _binding_validator(namespaced: bool) -> Callable[[Object, Object | None], list[InvalidField]]:
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)

    def validate(binding: Object, old: Object | None) -> list[InvalidField]:
        role = binding["roleRef"]
        found: list[InvalidField] = []
        if role["apiGroup"] != _RBAC:
            found.append(errors.unsupported("roleRef.apiGroup", role["apiGroup"], (_RBAC,)))
        if role.get("kind") not in kinds:
            found.append(errors.unsupported("roleRef.kind", role.get("kind", ""), kinds))
        if not role.get("name"):
            found.append(errors.required("roleRef.name"))
        else:
            found += errors.all_invalid("roleRef.name", role["name"], path_segment_errors(role["name"]))
        for position, subject in enumerate(binding.get("subjects", [])):
            found += _subject_errors(subject, errors.index("subjects", position), namespaced)
        if old is not None and role != old["roleRef"]:
            shown = {"APIGroup": role["apiGroup"], "Kind": role.get("kind", ""), "Name": role.get("name", "")}
            found.append(errors.invalid("roleRef", shown, "cannot change roleRef"))
        return found

    return validate


def _subject_errors(subject: Object, path: str, namespaced: bool) -> list[InvalidField]:
    found: list[InvalidField] = []
    if not subject.get("name"):
        found.append(errors.required(f"{path}.name"))
    kind = subject.get("kind", "")
    if kind not in ("ServiceAccount", "User", "Group"):
        found.append(errors.unsupported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
    elif kind == "ServiceAccount":
        name, group = subject.get("name", ""), subject.get("apiGroup", "")
        found += errors.all_invalid(f"{path}.name", name, dns_subdomain_errors(name) if name else ())
        if group:
            found.append(errors.unsupported(f"{path}.apiGroup", group, ("",)))
        if not namespaced and not subject.get("namespace"):
            found.append(errors.required(f"{path}.namespace"))
    elif subject.get("apiGroup") != _RBAC:
        found.append(errors.unsupported(f"{path}.apiGroup", subject.get("apiGroup", ""), (_RBAC,)))
    return found


def _subjects(kind: str) -> Callable[[Object], str]:
    def show(binding: Object) -> str:
        chosen = [one for one in binding.get("subjects", []) if one.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{one.get('namespace', '')}/{one.get('name', '')}" for one in chosen)
        return ", ".join(one.get("name", "") for one in chosen)

    return show


def _binding_columns(kind: str, word: str) -> tuple[TableColumn, ...]:
    return (
        NAME,
        TableColumn(
            "Role",
            lambda b: f"{b['roleRef'].get('kind', '')}/{b['roleRef'].get('name', '')}",
            description=field_text(_SCHEMA + kind, "roleRef").removesuffix(" This field is immutable."),
        ),
        AGE,
        TableColumn("Users", _subjects("User"), description=f"Users in the {word}", priority=1),
        TableColumn("Groups", _subjects("Group"), description=f"Groups in the {word}", priority=1),
        TableColumn(
            "ServiceAccounts", _subjects("ServiceAccount"), description=f"ServiceAccounts in the {word}", priority=1
        ),
    )


SERVICE_ACCOUNT = KindRules(columns=PLAIN)
ROLE = KindRules(validate=_rule_validator(namespaced=True), name_rule=path_segment_errors, columns=DEFAULT_COLUMNS)
CLUSTER_ROLE = KindRules(
    validate=_rule_validator(namespaced=False), name_rule=path_segment_errors, columns=DEFAULT_COLUMNS
)
ROLE_BINDING = KindRules(
    set_defaults=_set_binding_defaults,
    validate=_binding_validator(namespaced=True),
    name_rule=path_segment_errors,
    columns=_binding_columns("RoleBinding", "roleBinding"),
)
CLUSTER_ROLE_BINDING = KindRules(
    set_defaults=_set_binding_defaults,
    validate=_binding_validator(namespaced=False),
    name_rule=path_segment_errors,
    columns=_binding_columns("ClusterRoleBinding", "clusterRoleBinding"),
)
