"""What workloads share, and the kinds that are only parts of them: pod templates and controller revisions.

A selector that matches the template's labels, a template whose pods restart, counts that are not negative.
"""

from __future__ import annotations

from typing import Any

from kubesched.k8s.model import selectors
from kubesched.k8s.model.meta import LabelSelector, LabelSelectorRequirement
from kubesched.playground.apiserver.kinds import field_errors as errors
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
)
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn

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
