"""Kinds that tell an API server how to behave: admission webhooks, flow control, addresses of services.

They are stored and shown as the real server does, with its defaults; none of them has an effect here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.playground.apiserver.kinds.field_errors import path_segment_errors
from kubesched.playground.apiserver.kinds.serving import AGE, NAME, KindRules, described, dig
from kubesched.playground.apiserver.served_resource import Object, TableColumn

_FLOW = "io.k8s.api.flowcontrol.v1."


def _default(part: Object, name: str, value: Any) -> None:
    if part.get(name) is None:
        part[name] = value


def _set_webhook_defaults(obj: Object) -> None:
    for webhook in obj.get("webhooks") or []:
        _set_match_defaults(webhook)
        _default(webhook, "failurePolicy", "Fail")
        _default(webhook, "timeoutSeconds", 10)
        for rule in webhook.get("rules") or []:
            _default(rule, "scope", "*")
        service = webhook.get("clientConfig", {}).get("service")
        if service is not None:
            _default(service, "port", 443)


def _set_mutating_webhook_defaults(obj: Object) -> None:
    _set_webhook_defaults(obj)
    for webhook in obj.get("webhooks") or []:
        _default(webhook, "reinvocationPolicy", "Never")


def _set_match_defaults(matching: Object) -> None:
    _default(matching, "matchPolicy", "Equivalent")
    _default(matching, "namespaceSelector", {})
    _default(matching, "objectSelector", {})


def _set_flow_schema_defaults(obj: Object) -> None:
    if not obj["spec"].get("matchingPrecedence"):
        obj["spec"]["matchingPrecedence"] = 1000


def _set_priority_level_defaults(obj: Object) -> None:
    for sort, shares in (("exempt", 0), ("limited", 30)):
        part = obj["spec"].get(sort)
        if part is not None:
            _default(part, "nominalConcurrencyShares", shares)
            _default(part, "lendablePercent", 0)
    queuing = dig("spec.limited.limitResponse.queuing", None)(obj)
    for name, value in (("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)):
        if queuing is not None and not queuing.get(name):
            queuing[name] = value


def _missing_level(obj: Object) -> str:
    conditions = dig("status.conditions", None)(obj) or []
    return next((one.get("status", "") for one in conditions if one.get("type") == "Dangling"), "?")


def _count_of(path: str) -> Callable[[Object], int]:
    read = dig(path, None)
    return lambda obj: len(read(obj) or [])


def _parent(obj: Object) -> str:
    reference: Any = obj["spec"].get("parentRef")
    if reference is None:
        return "<none>"
    resource = ".".join(filter(None, (reference.get("resource", ""), reference.get("group", "")))).lower()
    return "/".join(filter(None, (resource, reference.get("namespace", ""), reference.get("name", ""))))


_WEBHOOK_COLUMNS = (
    NAME,
    TableColumn(
        "Webhooks",
        _count_of("webhooks"),
        type="integer",
        description="Webhooks indicates the number of webhooks registered in this configuration",
    ),
    AGE,
)
VALIDATING_WEBHOOKS = KindRules(set_defaults=_set_webhook_defaults, columns=_WEBHOOK_COLUMNS)
MUTATING_WEBHOOKS = KindRules(set_defaults=_set_mutating_webhook_defaults, columns=_WEBHOOK_COLUMNS)
FLOW_SCHEMA = KindRules(
    name_rule=path_segment_errors,
    set_defaults=_set_flow_schema_defaults,
    columns=(
        NAME,
        described(
            "PriorityLevel",
            dig("spec.priorityLevelConfiguration.name"),
            _FLOW + "PriorityLevelConfigurationReference",
            "name",
        ),
        described(
            "MatchingPrecedence", dig("spec.matchingPrecedence", 0), _FLOW + "FlowSchemaSpec", "matchingPrecedence"
        ),
        described(
            "DistinguisherMethod",
            dig("spec.distinguisherMethod.type", "<none>"),
            _FLOW + "FlowSchemaSpec",
            "distinguisherMethod",
        ),
        AGE,
        TableColumn(
            "MissingPL", _missing_level, description="references a broken or non-existent PriorityLevelConfiguration"
        ),
    ),
)
PRIORITY_LEVEL = KindRules(
    name_rule=path_segment_errors,
    set_defaults=_set_priority_level_defaults,
    columns=(
        NAME,
        described("Type", dig("spec.type"), _FLOW + "PriorityLevelConfigurationSpec", "type"),
        described(
            "NominalConcurrencyShares",
            dig("spec.limited.nominalConcurrencyShares", "<none>"),
            _FLOW + "LimitedPriorityLevelConfiguration",
            "nominalConcurrencyShares",
        ),
        *(
            described(
                label, dig(f"spec.limited.limitResponse.queuing.{name}", "<none>"), _FLOW + "QueuingConfiguration", name
            )
            for label, name in (
                ("Queues", "queues"),
                ("HandSize", "handSize"),
                ("QueueLengthLimit", "queueLengthLimit"),
            )
        ),
        AGE,
    ),
)
ADDRESS = KindRules(
    columns=(
        NAME,
        described("ParentRef", _parent, "io.k8s.api.networking.v1.IPAddressSpec", "parentRef"),
        TableColumn("", AGE.value),
    ),
)
ADDRESS_RANGE = KindRules(
    columns=(
        NAME,
        described(
            "CIDRs",
            lambda obj: ",".join(obj["spec"].get("cidrs") or []),
            "io.k8s.api.networking.v1.ServiceCIDRSpec",
            "cidrs",
        ),
        AGE,
    ),
)
