"""Kinds with few rules of their own.

Network policies, ingresses, pod templates.
"""

from __future__ import annotations

from kubesched.playground.apiserver.kinds import traffic_checks
from kubesched.playground.apiserver.kinds.pods.defaults import set_template_defaults
from kubesched.playground.apiserver.kinds.serving import KindRules
from kubesched.playground.apiserver.kinds.table_columns import (
    AGE,
    CONTAINERS_TEXT,
    IMAGES_TEXT,
    NAME,
    described,
    dig,
    print_labels,
    print_selector,
)
from kubesched.playground.apiserver.kinds.workload_checks import template_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn

_CLASS_TEXT = "The name of the IngressClass resource that should be used for additional configuration"


def _set_policy_defaults(obj: Object) -> None:
    spec = obj["spec"]
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for sort in ("ingress", "egress"):
        for rule in spec.get(sort, []):
            for port in rule.get("ports", []):
                port.setdefault("protocol", "TCP")


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


def _parameters(obj: Object) -> str:
    reference = dig("spec.parameters", None)(obj)
    if reference is None:
        return "<none>"
    group = f".{reference['apiGroup']}" if reference.get("apiGroup") else ""
    return f"{reference.get('kind', '')}{group}/{reference.get('name', '')}"


def _set_ingress_class_defaults(obj: Object) -> None:
    parameters = obj["spec"].get("parameters")
    if parameters is not None and parameters.get("scope") is None:
        parameters["scope"] = "Cluster"


def _hosts(obj: Object) -> str:
    hosts = [rule["host"] for rule in obj["spec"].get("rules", []) if rule.get("host")]
    return ",".join(hosts[:3]) + (f" + {len(hosts) - 3} more..." if len(hosts) > 3 else "") if hosts else "*"


def _addresses(obj: Object) -> str:
    entries = dig("status.loadBalancer.ingress", [])(obj)
    return ",".join(entry.get("ip") or entry.get("hostname", "") for entry in entries)


NETWORK_POLICY = KindRules(
    validate=traffic_checks.network_policy_errors,
    set_defaults=_set_policy_defaults,
    columns=(
        NAME,
        described(
            "Pod-Selector",
            lambda obj: print_selector(obj["spec"].get("podSelector")),
            "io.k8s.api.networking.v1.NetworkPolicySpec",
            "podSelector",
        ),
        AGE,
    ),
)
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
INGRESS_CLASS = KindRules(
    validate=traffic_checks.ingress_class_errors,
    set_defaults=_set_ingress_class_defaults,
    columns=(
        NAME,
        TableColumn(
            "Controller",
            dig("spec.controller"),
            description="Controller that is responsible for handling this class",
        ),
        TableColumn("Parameters", _parameters, description="A reference to a resource with additional parameters"),
        AGE,
    ),
)
INGRESS = KindRules(
    validate=traffic_checks.ingress_errors,
    columns=(
        NAME,
        TableColumn("Class", dig("spec.ingressClassName", "<none>"), description=_CLASS_TEXT),
        TableColumn(
            "Hosts", _hosts, description="Hosts that incoming requests are matched against before the ingress rule"
        ),
        TableColumn(
            "Address", _addresses, description="Address is a list containing ingress points for the load-balancer"
        ),
        TableColumn(
            "Ports",
            lambda obj: "80, 443" if obj["spec"].get("tls") else "80",
            description="Ports of TLS configurations that open",
        ),
        AGE,
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
