"""Deployments, replica sets, stateful sets, daemon sets and replication controllers: defaults, validation, tables.

And what all workloads share, jobs, too: a selector that matches the template's labels, a template whose pods restart,
counts that are not negative. Pod templates and controller revisions are only parts of workloads, but kinds.
"""

from __future__ import annotations

import re
from typing import Any

from kubesched.k8s.model import selectors
from kubesched.k8s.model.meta import LabelSelector, LabelSelectorRequirement
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds import warnings
from kubesched.playground.apiserver.kinds.field_errors import dns_label_errors
from kubesched.playground.apiserver.kinds.metadata import annotation_errors, label_errors, label_selector_errors
from kubesched.playground.apiserver.kinds.pods.defaults import set_template_defaults
from kubesched.playground.apiserver.kinds.pods.spec import pod_spec_errors
from kubesched.playground.apiserver.kinds.serving import (
    AGE,
    CONTAINERS_TEXT,
    IMAGES_TEXT,
    NAME,
    KindRules,
    described,
    dig,
    print_labels,
    print_selector,
    template_columns,
)
from kubesched.playground.apiserver.kinds.volume_sources import claim_spec_errors
from kubesched.playground.apiserver.served_resource import DecodeError, InvalidField, Object, TableColumn, WriteContext
from kubesched.playground.apiserver.storage.store import metadata_fields

NOT_NEGATIVE = "must be greater than or equal to 0"


def count_errors(spec: Object, names: tuple[str, ...], path: str) -> list[InvalidField]:
    return [errors.invalid(f"{path}.{n}", spec[n], NOT_NEGATIVE) for n in names if (spec.get(n) or 0) < 0]


def selects(selector: Object | None, labels: dict[str, str]) -> bool:
    """Whether a selector matches; an absent or malformed one matches nothing."""
    if selector is None:
        return False
    expressions = tuple(
        LabelSelectorRequirement(
            key=one.get("key", ""), operator=one.get("operator", ""), values=tuple(one.get("values", []))
        )
        for one in selector.get("matchExpressions", [])
    )
    try:
        compiled = selectors.from_label_selector(
            LabelSelector(match_labels=selector.get("matchLabels", {}), match_expressions=expressions)
        )
    except selectors.SelectorError:
        return False
    return compiled.matches(labels)


def selector_errors(spec: Object, path: str, of: str = "deployment") -> list[InvalidField]:
    selector = spec.get("selector")
    if selector is None:
        return [errors.required(f"{path}.selector")]
    found = label_selector_errors(selector, f"{path}.selector")
    if not selector:
        found.append(errors.invalid(f"{path}.selector", selector, f"empty selector is invalid for {of}"))
    return found


def selector_match_errors(selector: Object | None, template: Object, path: str) -> list[InvalidField]:
    labels = template.get("metadata", {}).get("labels", {})
    if selects(selector, labels):
        return []
    why = "`selector` does not match template `labels`"
    return [errors.invalid(f"{path}.metadata.labels", labels or None, why)]


def template_errors(
    template: Object,
    path: str,
    *,
    restart: tuple[str, ...] = ("Always",),
    selector: Object | None = None,
    must_match: bool,
    owner: str = "ReplicaSet",
) -> list[InvalidField]:
    """The pod template: labels that the selector matches, then metadata and spec, then its restart policy."""
    meta = template.get("metadata", {})
    labels = meta.get("labels", {})
    found = selector_match_errors(selector, template, path) if must_match else []
    found += label_errors(labels, f"{path}.labels")
    found += annotation_errors(meta.get("annotations", {}), f"{path}.metadata.annotations")
    found += pod_spec_errors(template["spec"], "", f"{path}.spec", is_pod=False)
    if restart == ("Always",) and "activeDeadlineSeconds" in template["spec"]:
        why = f"activeDeadlineSeconds in {owner} is not Supported"
        found.append(errors.forbidden(f"{path}.spec.activeDeadlineSeconds", why))
    policy = template["spec"]["restartPolicy"]
    if policy not in restart:
        found.append(errors.unsupported(f"{path}.spec.restartPolicy", policy, restart))
    return found


def int_or_percent_errors(value: Any, path: str) -> list[InvalidField]:
    if isinstance(value, int):
        return [] if value >= 0 else [errors.invalid(path, value, NOT_NEGATIVE)]
    if not value.endswith("%") or not value[:-1].isdigit():
        why = (
            "a valid percent string must be a numeric string followed by an ending '%' "
            "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
        )
        return [errors.invalid(path, value, why)]
    return []


def percent_limit_errors(value: Any, path: str) -> list[InvalidField]:
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdigit() and int(value[:-1]) > 100:
        return [errors.invalid(path, value, "must not be greater than 100%")]
    return []


_DEPLOYMENT_COUNTS = (
    *("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas"),
    *("unavailableReplicas", "terminatingReplicas", "collisionCount"),
)
_REPLICA_COUNTS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")


def deployment_status_errors(obj: Object, _: Object) -> list[InvalidField]:
    return _count_errors(obj.get("status") or {}, _DEPLOYMENT_COUNTS, "updatedReplicas")


def replica_status_errors(obj: Object, _: Object) -> list[InvalidField]:
    """Of ReplicaSets and ReplicationControllers."""
    return _count_errors(obj.get("status") or {}, _REPLICA_COUNTS, "fullyLabeledReplicas")


def _count_errors(status: Object, counts: tuple[str, ...], of_own: str) -> list[InvalidField]:
    """No count is negative, and no part of the replicas is more than all of them."""
    found = [
        errors.invalid(f"status.{name}", status[name], NOT_NEGATIVE) for name in counts if (status.get(name) or 0) < 0
    ]
    n_all, n_ready = status.get("replicas", 0), status.get("readyReplicas", 0)
    found += [
        errors.invalid(f"status.{name}", status[name], "cannot be greater than status.replicas")
        for name in (of_own, "readyReplicas", "availableReplicas")
        if status.get(name, 0) > n_all
    ]
    n_available = status.get("availableReplicas", 0)
    if n_available > n_ready:
        found.append(errors.invalid("status.availableReplicas", n_available, "cannot be greater than readyReplicas"))
    return found


def _names(what: str) -> TableColumn:
    label, text = {"name": ("Containers", CONTAINERS_TEXT), "image": ("Images", IMAGES_TEXT)}[what]
    read = dig("template.spec.containers", [])
    return TableColumn(label, lambda obj: ",".join(one.get(what, "") for one in read(obj)), description=text)


def _validate_pod_template(obj: Object, _: Object | None) -> list[InvalidField]:
    return template_errors(obj["template"], "template", restart=("Always", "OnFailure", "Never"), must_match=False)


def _set_pod_template_defaults(obj: Object) -> None:
    set_template_defaults(obj["template"])


def _controller(obj: Object) -> str:
    for owner in obj["metadata"].get("ownerReferences", []):
        if owner.get("controller"):
            group = owner.get("apiVersion", "").rpartition("/")[0]
            kind = owner.get("kind", "").lower() + (f".{group}" if group else "")
            return f"{kind}/{owner.get('name', '')}"
    return "<none>"


POD_TEMPLATE = KindRules(
    validate=_validate_pod_template,
    set_defaults=_set_pod_template_defaults,
    columns=(
        NAME,
        _names("name"),
        _names("image"),
        TableColumn(
            "Pod Labels",
            lambda obj: print_labels(dig("template.metadata.labels", None)(obj)),
            description="The labels for the pod template.",
        ),
    ),
)


CONTROLLER_REVISION = KindRules(
    columns=(
        NAME,
        TableColumn("Controller", _controller, description="Controller of the object"),
        described("Revision", dig("revision", 0), "io.k8s.api.apps.v1.ControllerRevision", "revision"),
        AGE,
    ),
)


_APPS = "io.k8s.api.apps.v1."
_CORE = "io.k8s.api.core.v1."
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_MUTABLE_STATEFUL = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_STATEFUL_FIXED = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def _warn(obj: Object, ctx: WriteContext) -> None:
    template = obj["spec"].get("template")
    if template is not None:
        ctx.warnings += warnings.for_pod_spec(template["spec"], template.get("metadata", {}), "spec.template.")


def _warn_of_change(obj: Object, old: Object | None, ctx: WriteContext) -> None:
    """Who changes what is wanted is warned of all of it again."""
    if old is not None and obj["metadata"].get("generation") != old["metadata"].get("generation"):
        _warn(obj, ctx)


def _warn_of_new_template(obj: Object, old: Object | None, ctx: WriteContext) -> None:
    if old is not None and obj["spec"]["template"] != old["spec"]["template"]:
        _warn(obj, ctx)


def _set_rolling(strategy: Object, defaults: dict[str, Any]) -> None:
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        for name, value in defaults.items():
            rolling.setdefault(name, value)


def _set_deployment_defaults(obj: Object) -> None:
    spec = obj["spec"]
    set_template_defaults(spec["template"])
    spec.setdefault("replicas", 1)
    _set_rolling(spec["strategy"], {"maxUnavailable": "25%", "maxSurge": "25%"})
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def _validate_deployment(obj: Object, old: Object | None) -> list[InvalidField]:
    spec = obj["spec"]
    found = count_errors(spec, ("replicas",), "spec")
    found += selector_errors(spec, "spec")
    found += template_errors(spec["template"], "spec.template", selector=spec.get("selector"), must_match=True)
    found += _deployment_strategy_errors(spec["strategy"], "spec.strategy")
    found += count_errors(spec, ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"), "spec")
    if "progressDeadlineSeconds" in spec and spec["progressDeadlineSeconds"] <= spec.get("minReadySeconds", 0):
        at = "spec.progressDeadlineSeconds"
        found.append(errors.invalid(at, spec["progressDeadlineSeconds"], "must be greater than minReadySeconds"))
    return found + _selector_change_errors(obj, old)


def _deployment_strategy_errors(strategy: Object, path: str) -> list[InvalidField]:
    sort = strategy["type"]
    rolling: Any = strategy.get("rollingUpdate")
    if sort == "Recreate":
        why = "may not be specified when strategy `type` is 'Recreate'"
        return [errors.forbidden(f"{path}.rollingUpdate", why)] if rolling is not None else []
    if sort != "RollingUpdate":
        return [errors.unsupported(f"{path}.type", sort, ("Recreate", "RollingUpdate"))]
    at = f"{path}.rollingUpdate"
    surge, unavailable = rolling["maxSurge"], rolling["maxUnavailable"]
    found = int_or_percent_errors(unavailable, f"{at}.maxUnavailable")
    found += int_or_percent_errors(surge, f"{at}.maxSurge")
    if surge in (0, "0%") and unavailable in (0, "0%"):
        found.append(errors.invalid(f"{at}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    return found + percent_limit_errors(unavailable, f"{at}.maxUnavailable")


def _selector_change_errors(obj: Object, old: Object | None) -> list[InvalidField]:
    selector = obj["spec"].get("selector")
    if old is None or selector == old["spec"].get("selector"):
        return []
    return [errors.immutable("spec.selector", selector)]


def _set_replica_set_defaults(obj: Object) -> None:
    set_template_defaults(obj["spec"]["template"])
    obj["spec"].setdefault("replicas", 1)


def _validate_replica_set(obj: Object, old: Object | None) -> list[InvalidField]:
    spec = obj["spec"]
    found = count_errors(spec, ("replicas", "minReadySeconds"), "spec")
    found += selector_errors(spec, "spec")
    found += template_errors(spec["template"], "spec.template", selector=spec.get("selector"), must_match=True)
    return found + _selector_change_errors(obj, old)


def _set_stateful_set_defaults(obj: Object) -> None:
    spec = obj["spec"]
    set_template_defaults(spec["template"])
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec["updateStrategy"]
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    for claim in spec.get("volumeClaimTemplates", []):
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim["spec"].setdefault("volumeMode", "Filesystem")
        claim["status"].setdefault("phase", "Pending")


def _validate_stateful_set(obj: Object, old: Object | None) -> list[InvalidField]:
    spec = obj["spec"]
    found: list[InvalidField] = []
    if spec["podManagementPolicy"] not in ("OrderedReady", "Parallel"):
        why = "must be 'OrderedReady' or 'Parallel'"
        found.append(errors.invalid("spec.podManagementPolicy", spec["podManagementPolicy"], why))
    if spec["updateStrategy"]["type"] not in ("RollingUpdate", "OnDelete"):
        why = "must be 'RollingUpdate' or 'OnDelete'"
        found.append(errors.invalid("spec.updateStrategy", _go_strategy(spec["updateStrategy"]), why))
    found += count_errors(spec, ("replicas", "minReadySeconds"), "spec")
    found += _retention_errors(spec.get("persistentVolumeClaimRetentionPolicy"))
    found += selector_errors(spec, "spec", "statefulset")
    template = _as_its_pods_get_it(spec)
    found += template_errors(
        template, "spec.template", selector=spec.get("selector"), must_match=True, owner="StatefulSet"
    )
    if old is None:
        return found + _new_set_errors(spec)
    if _fixed(spec) != _fixed(old["spec"]):
        found.append(errors.forbidden("spec", _STATEFUL_FIXED))
    return found


def _retention_errors(policy: Object | None) -> list[InvalidField]:
    allowed, path = ("Retain", "Delete"), "spec.persistentVolumeClaimRetentionPolicy"
    return [
        errors.unsupported(f"{path}.{name}", policy.get(name, ""), allowed)
        for name in ("whenDeleted", "whenScaled")
        if policy is not None and policy.get(name) not in allowed
    ]


def _new_set_errors(spec: Object) -> list[InvalidField]:
    """What is looked at only when a stateful set is created."""
    found: list[InvalidField] = []
    for position, claim in enumerate(spec.get("volumeClaimTemplates", [])):
        found += claim_spec_errors(claim.get("spec", {}), f"{errors.index('spec.volumeClaimTemplates', position)}.spec")
    if name := spec.get("serviceName", ""):
        found += errors.all_invalid("spec.serviceName", name, dns_label_errors(name))
    return found


def _as_its_pods_get_it(spec: Object) -> Object:
    """The template with a volume for each claim template, and without the names that the controller sets."""
    pod = {name: value for name, value in spec["template"]["spec"].items() if name not in ("hostname", "subdomain")}
    claims = [claim.get("metadata", {}).get("name", "") for claim in spec.get("volumeClaimTemplates", [])]
    if claims:
        made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
        pod["volumes"] = made + [volume for volume in pod.get("volumes", []) if volume.get("name") not in claims]
    return {**spec["template"], "spec": pod}


def _go_strategy(strategy: Object) -> Object:
    return {"Type": strategy["type"], "RollingUpdate": strategy.get("rollingUpdate")}


def _fixed(spec: Object) -> Object:
    return {name: value for name, value in spec.items() if name not in _MUTABLE_STATEFUL}


def _set_daemon_set_defaults(obj: Object) -> None:
    spec = obj["spec"]
    set_template_defaults(spec["template"])
    _set_rolling(spec["updateStrategy"], {"maxUnavailable": 1, "maxSurge": 0})
    spec.setdefault("revisionHistoryLimit", 10)
    given = obj["metadata"].setdefault("annotations", {}).setdefault(_TEMPLATE_GENERATION, "0")
    if not re.fullmatch(r"[+-]?\d+", given):
        raise DecodeError(f'strconv.ParseInt: parsing "{given}": invalid syntax')


def _create_daemon_set(obj: Object, ctx: WriteContext) -> None:
    annotations = obj["metadata"]["annotations"]
    if annotations[_TEMPLATE_GENERATION] in ("", "0"):
        annotations[_TEMPLATE_GENERATION] = "1"
    _warn(obj, ctx)


def _update_daemon_set(obj: Object, old: Object, _: WriteContext) -> None:
    before = int(old["metadata"].get("annotations", {}).get(_TEMPLATE_GENERATION, "0"))
    changed = obj["spec"]["template"] != old["spec"]["template"]
    obj["metadata"].setdefault("annotations", {})[_TEMPLATE_GENERATION] = str(before + changed)


def _validate_daemon_set(obj: Object, old: Object | None) -> list[InvalidField]:
    spec = obj["spec"]
    found = selector_errors(spec, "spec", "daemonset")
    found += template_errors(
        spec["template"], "spec.template", selector=spec.get("selector"), must_match=True, owner="DaemonSet"
    )
    found += count_errors(spec, ("minReadySeconds", "revisionHistoryLimit"), "spec")
    if spec["updateStrategy"]["type"] not in ("RollingUpdate", "OnDelete"):
        at = "spec.updateStrategy.type"
        found.append(errors.unsupported(at, spec["updateStrategy"]["type"], ("RollingUpdate", "OnDelete")))
    return found + _selector_change_errors(obj, old)


def _set_controller_defaults(obj: Object) -> None:
    spec = obj["spec"]
    template = spec.get("template")
    if template is None:
        return
    set_template_defaults(template)
    labels = template.get("metadata", {}).get("labels", {})
    if labels:
        spec.setdefault("selector", dict(labels))
        obj["metadata"].setdefault("labels", dict(labels))


def _validate_controller(obj: Object, _: Object | None) -> list[InvalidField]:
    spec = obj["spec"]
    found = count_errors(spec, ("replicas", "minReadySeconds"), "spec")
    if not spec.get("selector"):
        found.append(errors.required("spec.selector"))
    if "template" not in spec:
        return [*found, errors.required("spec.template")]
    selector = {"matchLabels": spec.get("selector", {})}
    return found + template_errors(
        spec["template"], "spec.template", selector=selector, must_match=True, owner="ReplicationController"
    )


def _selectable_by_replicas(obj: Object) -> dict[str, str]:
    return {**metadata_fields(obj), "status.replicas": str(obj.get("status", {}).get("replicas", 0))}


def _ready_of_desired(obj: Object) -> str:
    return f"{dig('status.readyReplicas', 0)(obj)}/{dig('spec.replicas', 0)(obj)}"


def _selector_column(schema: str) -> TableColumn:
    return described(
        "Selector", lambda obj: print_selector(dig("spec.selector", None)(obj)), schema, "selector", priority=1
    )


def _count(label: str, path: str, schema: str) -> TableColumn:
    return described(label, dig(path, 0), schema, path.rpartition(".")[2], type="integer")


def _replica_columns(prefix: str, selector: TableColumn) -> tuple[TableColumn, ...]:
    return (
        NAME,
        _count("Desired", "spec.replicas", f"{prefix}Spec"),
        _count("Current", "status.replicas", f"{prefix}Status"),
        _count("Ready", "status.readyReplicas", f"{prefix}Status"),
        AGE,
        *template_columns("spec.template"),
        selector,
    )


_READY_TEXT = "Number of the pod with ready state"
_DS_STATUS = _APPS + "DaemonSetStatus"

DEPLOYMENT = KindRules(
    set_defaults=_set_deployment_defaults,
    prepare_create=_warn,
    validate_admission=_warn_of_change,
    validate=_validate_deployment,
    validate_through={"status": deployment_status_errors},
    columns=(
        NAME,
        TableColumn("Ready", _ready_of_desired, description=_READY_TEXT),
        described("Up-to-date", dig("status.updatedReplicas", 0), _APPS + "DeploymentStatus", "updatedReplicas"),
        described("Available", dig("status.availableReplicas", 0), _APPS + "DeploymentStatus", "availableReplicas"),
        AGE,
        *template_columns("spec.template"),
        _selector_column(_APPS + "DeploymentSpec"),
    ),
)
REPLICA_SET = KindRules(
    set_defaults=_set_replica_set_defaults,
    prepare_create=_warn,
    validate_admission=_warn_of_change,
    validate=_validate_replica_set,
    validate_through={"status": replica_status_errors},
    columns=_replica_columns(_APPS + "ReplicaSet", _selector_column(_APPS + "ReplicaSetSpec")),
    selectable_fields=_selectable_by_replicas,
)
STATEFUL_SET = KindRules(
    set_defaults=_set_stateful_set_defaults,
    prepare_create=_warn,
    validate_admission=_warn_of_change,
    validate=_validate_stateful_set,
    columns=(
        NAME,
        TableColumn("Ready", _ready_of_desired, description=_READY_TEXT),
        AGE,
        *template_columns("spec.template"),
    ),
)
DAEMON_SET = KindRules(
    set_defaults=_set_daemon_set_defaults,
    prepare_create=_create_daemon_set,
    prepare_update=_update_daemon_set,
    validate_admission=_warn_of_new_template,
    validate=_validate_daemon_set,
    columns=(
        NAME,
        _count("Desired", "status.desiredNumberScheduled", _DS_STATUS),
        _count("Current", "status.currentNumberScheduled", _DS_STATUS),
        _count("Ready", "status.numberReady", _DS_STATUS),
        _count("Up-to-date", "status.updatedNumberScheduled", _DS_STATUS),
        _count("Available", "status.numberAvailable", _DS_STATUS),
        described(
            "Node Selector",
            lambda obj: print_labels(dig("spec.template.spec.nodeSelector", None)(obj)),
            _CORE + "PodSpec",
            "nodeSelector",
        ),
        AGE,
        *template_columns("spec.template"),
        _selector_column(_APPS + "DaemonSetSpec"),
    ),
)
REPLICATION_CONTROLLER = KindRules(
    set_defaults=_set_controller_defaults,
    prepare_create=_warn,
    validate=_validate_controller,
    validate_through={"status": replica_status_errors},
    columns=_replica_columns(
        _CORE + "ReplicationController",
        described(
            "Selector",
            lambda obj: print_labels(dig("spec.selector", None)(obj)),
            _CORE + "ReplicationControllerSpec",
            "selector",
            priority=1,
        ),
    ),
    selectable_fields=_selectable_by_replicas,
)
