"""The words for a cause that lies with what nodes are: where volumes and devices are, labels, taints.

One function for each kind of obstacle; `cause_of_nodes` chooses among them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from kubesched.explanation.cause import (
    NAME_LABELS,
    ON_NODE,
    VALUES_SHOWN,
    Cause,
    Scene,
    asked_text,
    name_of,
    names_text,
    place_of,
    unsuitable,
)
from kubesched.explanation.findings.finding import HOSTNAME_LABEL, CauseKind, Fact
from kubesched.explanation.findings.node_affinity import BUILT_IN_LABELS, meant_value, requirements_of
from kubesched.explanation.layout import all_of, any_of, counted
from kubesched.scheduler.cluster import Cluster

_DIGITS = re.compile(r"\d+")

# -- volumes and devices ----------------------------------------------------------------------------------------


def volume_limit(scene: Scene) -> Cause:
    fields = scene.facts(CauseKind.VOLUME_LIMIT)[0].fields
    brings = counted(fields["brings"], "volume")
    attached = f"{fields['attached']} of {fields['limit']}"
    if scene.n_left == 1:
        has = f"{scene.subject()}, {scene.lead.nodes[0].name}, has {attached} attached"
    else:
        nearest = f"{scene.lead.nodes[0].name} has {attached}"
        has = f"none of {scene.subject()} can attach that many more: {nearest}"
    text = f"brings {brings} of {fields['driver']}; {has}"
    remedy = "Move a pod with volumes away from there, or add a node."
    return scene.cause(CauseKind.VOLUME_LIMIT, text, remedy, driver=fields["driver"], limit=fields["limit"])


def volume_in_use(scene: Scene) -> Cause:
    fact = scene.facts(CauseKind.VOLUME_IN_USE)[0]
    holder = fact.fields["pod"]
    remedy = (
        f"It is free again when {holder} is gone; a claim that several pods share needs ReadWriteOnce or ReadWriteMany."
    )
    if fact.fields.get("terminating"):
        remedy = f"It is free again when {holder} is gone; finalizers or a long grace period may hold it."
    elif "claim" not in fact.fields:
        remedy = f"It is free again when {holder} is gone; other nodes can take the pod if they fit."
    return scene.cause(CauseKind.VOLUME_IN_USE, fact.text, remedy, pod=holder)


def volume_place(scene: Scene) -> Cause:
    facts = scene.facts(CauseKind.VOLUME_PLACE)
    by_claim: dict[str, Fact] = {fact.fields["claim"]: fact for fact in facts}
    lost = next((fact for fact in facts if "zones" not in fact.fields and "selectedNode" not in fact.fields), None)
    if lost is not None:
        name = name_of(lost.fields["claim"])
        text = f"claim {name} is bound to volume {lost.fields['volume']}, which does not exist"
        remedy = f"Restore the volume, or delete claim {name} and let it be provisioned again (its data is gone)."
        return scene.cause(CauseKind.VOLUME_PLACE, text, remedy, **lost.fields)
    counts = Counter(fact.fields["claim"] for fact in facts)
    single = next((claim for claim, n in counts.items() if n >= scene.n_left), None)
    if single is None and len(by_claim) > 1:
        where = [f"{name_of(claim)} {place_of(fact)}" for claim, fact in sorted(by_claim.items())]
        text = f"its volumes are in different places: {all_of(where)}; no node reaches all of them"
        remedy = "Move one of the volumes (from a snapshot), so that all are in one zone."
        return scene.cause(CauseKind.VOLUME_PLACE, text, remedy, claims=sorted(by_claim))
    fact = by_claim[single] if single is not None else facts[0]
    if "selectedNode" in fact.fields:
        selected = fact.fields["selectedNode"]
        text = (
            f"the volume of claim {name_of(fact.fields['claim'])} is being made for node {selected}, which does not fit"
        )
        return scene.cause(CauseKind.VOLUME_PLACE, text, f"Make {selected} fit, or delete the claim.", **fact.fields)
    text = f"the volume of claim {name_of(fact.fields['claim'])} ({fact.fields['volume']}) is {place_of(fact)}"
    if place_of(fact).startswith(ON_NODE):
        text += ", which is not there" if scene.n_left == scene.n_nodes else f"; {scene.subject()} is another"
        remedy = "Bring that node back, or delete the claim and its volume and start over: its data is on that disk."
        return scene.cause(CauseKind.VOLUME_PLACE, text, remedy, **fact.fields)
    absent = _absent_label(scene, fact)
    if absent:
        return _unlabelled(scene, CauseKind.VOLUME_PLACE, text.rpartition(" is ")[0] + " is", fact, absent)
    text += _nobody_there(scene, fact)
    remedy = f"Add a node {place_of(fact)}, or restore the volume from a snapshot in another zone."
    return scene.cause(CauseKind.VOLUME_PLACE, text, remedy, **fact.fields)


def volume_provisioning(scene: Scene) -> Cause:
    fact = scene.facts(CauseKind.VOLUME_PROVISIONING)[0]
    claim, class_name = name_of(fact.fields["claim"]), fact.fields["storageClass"]
    if "allowedTopologies" in fact.fields:
        text = f"claim {claim} needs a volume of class {class_name}, which is made only"
        absent = _absent_label(scene, fact)
        if absent:
            return _unlabelled(scene, CauseKind.VOLUME_PROVISIONING, text, fact, absent)
        text += f" {place_of(fact)}"
        text += _nobody_there(scene, fact)
        remedy = f"Add a node {place_of(fact)}, or use a class that allows the zones of the nodes."
    else:
        objects = scene.cluster.objects
        there = unsuitable(objects.persistent_volumes, objects.persistent_volume_claims[fact.fields["claim"]])
        text = f"claim {claim} needs a volume of class {class_name} ({fact.fields['requested']}), which has no "
        text += f"provisioner; {there}"
        remedy = f"Create a PersistentVolume of class {class_name} on such a node, or use a class with a provisioner."
    return scene.cause(CauseKind.VOLUME_PROVISIONING, text, remedy, **fact.fields)


def storage_capacity(scene: Scene) -> Cause:
    fields = scene.facts(CauseKind.STORAGE_CAPACITY)[0].fields
    claim, class_name = name_of(fields["claim"]), fields["storageClass"]
    text = (
        f"claim {claim} needs {fields['requested']} of class {class_name}, and {fields['provisioner']} has not so much "
    )
    text += f"left on any of {scene.subject()}"
    remedy = "Ask for a smaller volume, or have storage added to a node."
    return scene.cause(CauseKind.STORAGE_CAPACITY, text, remedy, **fields)


def devices(scene: Scene) -> Cause:
    lead = scene.lead
    fact = next(f for f in lead.findings if isinstance(f, Fact) and f.kind is CauseKind.DEVICES)
    fields = fact.fields
    need = _device_need(fields)
    free = f"{fields['free']} of {fields['matching']} free"
    if scene.n_left == 1:
        has = f"{scene.subject()}, {lead.nodes[0].name}, has {free}"
    elif len(scene.left) == 1 and len({n.findings[0].text for n in lead.nodes}) == 1:
        has = f"{scene.subject()} have {free} each: {names_text(lead.names)}"
    else:
        has = f"none of {scene.subject()} has that many free: nearest is {lead.nodes[0].name} with {free}"
    if fields["matching"] < fields["requested"]:
        remedy = f"No node has so many: ask for {fields['matching']}, or add a node that has."
    elif fields["free"]:
        remedy = f"Free one there, or ask for {fields['free']}."
    else:
        remedy = "Wait until a pod with such a device is done, or add a node that has one."
    return scene.cause(CauseKind.DEVICES, f"{need}; {has}", remedy, **fields)


def no_such_device(scene: Scene) -> Cause:
    facts = scene.facts(CauseKind.NO_SUCH_DEVICE)
    fact = max(facts, key=lambda fact: fact.fields["devices"])
    fields = fact.fields
    need = _device_need(fields)
    if fields["devices"]:
        kinds = sorted({text for fact in facts for text in fact.fields["found"]})
        has = f"no node has one; the devices of that class are {any_of(kinds[:VALUES_SHOWN])}"
        remedy = "Correct the selector, or add a node with such devices."
    else:
        has = "no node has any" if scene.n_left == scene.n_nodes else f"{scene.subject()} have none"
        remedy = "Add a node with such devices, or see why its driver publishes none (ResourceSlice)."
    return scene.cause(CauseKind.NO_SUCH_DEVICE, f"{need}; {has}", remedy, **fields)


def device_taint(scene: Scene) -> Cause:
    fields = scene.facts(CauseKind.DEVICE_TAINT)[0].fields
    taints = all_of(list(fields["taints"])[:VALUES_SHOWN])
    those = "those of the only node that has" if scene.n_left == 1 else f"those of the {scene.n_left} nodes that have"
    text = f"{_device_need(fields)}; {those} such devices are tainted with {taints}, which it does not tolerate"
    remedy = "See what is wrong with these devices, or add a toleration to the claim's request."
    return scene.cause(CauseKind.DEVICE_TAINT, text, remedy, **fields)


def device_place(scene: Scene) -> Cause:
    fact = scene.facts(CauseKind.DEVICE_PLACE)[0]
    text = f"claim {name_of(fact.fields['claim'])} has its devices already, for {fact.fields['required']} only"
    text += "; no such node is there" if scene.n_left == scene.n_nodes else f"; {scene.subject()} are not that"
    remedy = "Delete the claim's other users, so that it is allocated again, or free something on that node."
    return scene.cause(CauseKind.DEVICE_PLACE, text, remedy, **fact.fields)


def _device_need(fields: Any) -> str:
    devices = f"{counted(fields['requested'], 'device')} of class {fields['deviceClass']}"
    which = f" with {all_of(fields['selectors'])}" if fields["selectors"] else ""
    return f"claim {name_of(fields['claim'])} needs {devices}{which}"


def _absent_label(scene: Scene, fact: Fact) -> str:
    """A label that a place is told by, and that no node of the cluster has."""
    nodes = scene.cluster.table.nodes
    return next((key for key in fact.fields.get("labels", ()) if not any(key in node.labels for node in nodes)), "")


def _unlabelled(scene: Scene, kind: CauseKind, text: str, fact: Fact, label: str) -> Cause:
    """`text` ends where the place is told, which here is told in full: nobody would find it by its values."""
    places = any_of(list(fact.fields.get("required") or fact.fields.get("allowedTopologies") or ()))
    text = f"{text} where {places}; no node has a label {label}"
    remedy = f"Label the nodes with {label}, or correct what names it."
    return scene.cause(kind, text, remedy, **fact.fields)


def _nobody_there(scene: Scene, fact: Fact) -> str:
    zones = fact.fields.get("zones") or ()
    label = (
        next((key for key in fact.fields.get("found", ()) or () if key.endswith("/zone")), "")
        if isinstance(fact.fields.get("found"), dict)
        else ""
    )
    values = Counter(_zone(scene.cluster, name, label) for name in scene.verdict.nodes)
    found = [zone for zone, _ in values.most_common(VALUES_SHOWN) if zone]
    has = f" ({'is' if scene.n_left == 1 else 'are'} in {any_of(sorted(found))})" if found and zones else ""
    if scene.n_left == scene.n_nodes:
        return f"; no node is there{has.replace('(are in', '(they are in').replace('(is in', '(it is in')}"
    return f"; {scene.subject()} {'is' if scene.n_left == 1 else 'are'} not there{has}"


def _zone(cluster: Cluster, node: str, label: str) -> str:
    labels = cluster.table.nodes[cluster.table.rows[node]].labels
    return labels.get(label) or labels.get("topology.kubernetes.io/zone", "")


# -- labels and taints -------------------------------------------------------------------------------------------------


def node_affinity(scene: Scene) -> Cause:
    facts = [fact for fact in scene.facts(CauseKind.NODE_AFFINITY) if "label" in fact.fields]
    if not facts:
        text = scene.facts(CauseKind.NODE_AFFINITY)[0].text
        return scene.cause(CauseKind.NODE_AFFINITY, text, "Correct the required node affinity.")
    met_by_none = [fact for fact in _distinct(facts) if _n_meeting(scene, fact) == 0]
    if met_by_none:
        return _no_such_label(scene, min(met_by_none, key=lambda fact: fact.fields["label"] in BUILT_IN_LABELS))
    if scene.n_left == scene.n_nodes:
        distinct = _distinct(facts)
        asked = all_of([f"{asked_text(fact)} ({counted(_n_meeting(scene, fact), 'node')})" for fact in distinct])
        both = "both" if len(distinct) == 2 else "all of"
        text = f"no node meets {both} {asked}" if len(distinct) > 1 else f"no node meets {asked}"
        return scene.cause(CauseKind.NODE_AFFINITY, text, "Drop one of them, or label a node that should take it.")
    fact = _distinct(facts)[0]
    if fact.fields["label"] in NAME_LABELS:
        text = f"asks for {asked_text(fact)}; {scene.subject()} {'is another' if scene.n_left == 1 else 'are others'}"
        remedy = "Ask for one of these, or for none by name."
        return scene.cause(CauseKind.NODE_AFFINITY, text, remedy, label=fact.fields["label"])
    has = _values(scene, fact)
    text = f"asks for {asked_text(fact)}; {scene.subject()} {'has' if scene.n_left == 1 else 'have'} {has}"
    remedy = "Drop it if the pod may run there, or add such a node with it."
    return scene.cause(CauseKind.NODE_AFFINITY, text, remedy, label=fact.fields["label"])


def _no_such_label(scene: Scene, fact: Fact) -> Cause:
    """No node at all meets it: perhaps a slip of the pen."""
    label = fact.fields["label"]
    alternatives = [f for f in _distinct(scene.facts(CauseKind.NODE_AFFINITY)) if f.fields.get("label") == label]
    asked = any_of([asked_text(f) for f in alternatives[:VALUES_SHOWN]]) if "term" in fact.fields else asked_text(fact)
    asked += _by_runtime_class(scene, label)
    values = _label_values(scene.cluster, label)
    wanted = _wanted_value(fact)
    if label in NAME_LABELS:
        near = [name for name in get_close_matches(wanted, scene.cluster.table.names, 1, 0.8) if _is_slip(wanted, name)]
        hint = f"; there is {near[0]}" if near else ""
        remedy = "Name a node that exists, or drop it."
        if label != HOSTNAME_LABEL and not near:  # as the pods of DaemonSets do
            remedy = "The node is gone: whoever made the pod for it should delete it."
        return scene.cause(
            CauseKind.NODE_AFFINITY, f"asks for {asked}; no node is called so{hint}", remedy, label=label
        )
    if values and _operator(scene, fact) in ("NotIn", "DoesNotExist"):
        meant = None
        told = any_of([f"{value} ({n})" for value, n in values[:VALUES_SHOWN]])
        text = f"asks for {asked}; every node has {label}={told}"
        remedy = "Drop it, or add a node that has not."
    elif values and _compared(scene, fact):
        meant, best = None, _compared(scene, fact)
        text = f"asks for {asked}; no node has that: {best}"
        remedy = "Change the number, or add a node that has it."
    elif values:
        meant = meant_value(label, wanted, [value for value, _ in values])
        told = any_of([f"{value} ({n})" for value, n in values[:VALUES_SHOWN]])
        more = f" and {len(values) - VALUES_SHOWN} others" if len(values) > VALUES_SHOWN else ""
        text = f"asks for {asked}; no node has that: {scene.n_nodes} nodes have {label}={told}{more}"
        if sum(n for _, n in values) != scene.n_nodes:
            text = f"asks for {asked}; no node has that value, others have {told}{more}"
        elif len(values) == 1:
            text = f"asks for {asked}; no node has that: {_all_of_them(scene.n_nodes)} {label}={values[0][0]}"
        others = "one of these" if len(values) > 1 else values[0][0]
        remedy = f"Did you mean {meant}? Correct it" if meant else f"Ask for {others}"
        remedy += ", or add a node that has it."
    else:
        keys = {key for node in scene.cluster.table.nodes for key in node.labels}
        meant = meant_value("", label, keys)
        text = f"asks for {asked}; no node has a label {label}"
        remedy = f"Did you mean {meant}? Correct it" if meant else "Label the nodes that should take it"
        remedy += ", or drop it."
    return scene.cause(CauseKind.NODE_AFFINITY, text, remedy, label=label, wanted=wanted, meant=meant)


def _by_runtime_class(scene: Scene, label: str) -> str:
    """Whoever wrote the pod did not ask for that."""
    name = scene.pod.spec.runtime_class_name or ""
    runtime = scene.cluster.objects.runtime_classes.get(name)
    selector = runtime.scheduling.node_selector if runtime is not None and runtime.scheduling is not None else None
    return f" (of its RuntimeClass {name})" if label in (selector or {}) else ""


def _all_of_them(n_nodes: int) -> str:
    return {1: "the only node has", 2: "both nodes have"}.get(n_nodes, f"all {n_nodes} nodes have")


def _compared(scene: Scene, fact: Fact) -> str:
    """The value that comes nearest, for a requirement that compares numbers."""
    requirement = requirements_of(scene.pod).get(fact.fields.get("requirement", ""))
    if requirement is None or _operator(scene, fact) not in ("Gt", "Lt"):
        return ""
    values = _label_values(scene.cluster, requirement.key)
    numbers = sorted((int(value), n) for value, n in values if value.lstrip("-").isdigit())
    if not numbers:
        return ""
    value, n = numbers[-1] if requirement.operator == "Gt" else numbers[0]
    return f"the {'highest' if requirement.operator == 'Gt' else 'lowest'} is {value}, on {counted(n, 'node')}"


def _operator(scene: Scene, fact: Fact) -> str:
    requirement = requirements_of(scene.pod).get(fact.fields.get("requirement", ""))
    return "" if requirement is None else requirement.operator


def _is_slip(wanted: str, name: str) -> bool:
    """Names of machines are numbered: one that differs in a number alone is another machine."""
    return _DIGITS.sub("", wanted) != _DIGITS.sub("", name)


def _distinct(facts: Iterable[Fact]) -> list[Fact]:
    return list({fact.shared: fact for fact in facts}.values())


def _wanted_value(fact: Fact) -> str:
    if "nodeSelector" in fact.fields:
        return str(next(iter(fact.fields["nodeSelector"].values())))
    _, bracket, rest = fact.fields["requirement"].partition("(")
    return str(rest.rstrip(")").partition(",")[0]) if bracket else str(fact.fields["requirement"].rpartition("=")[2])


def _n_meeting(scene: Scene, fact: Fact) -> int:
    """How many nodes of the cluster meet what is asked for, taken alone."""
    nodes = scene.cluster.table.nodes
    if "nodeSelector" in fact.fields:
        ((key, value),) = fact.fields["nodeSelector"].items()
        return sum(node.labels.get(key) == value for node in nodes)
    requirement = requirements_of(scene.pod).get(fact.fields["requirement"])
    if requirement is None:
        return 0
    return sum(requirement.matches(node.labels.get(requirement.key)) for node in nodes)


def _label_values(cluster: Cluster, label: str) -> list[tuple[str, int]]:
    counts = Counter(node.labels[label] for node in cluster.table.nodes if label in node.labels)
    return counts.most_common()


def _values(scene: Scene, fact: Fact) -> str:
    label = fact.fields["label"]
    nodes = scene.cluster.table
    counts = Counter(nodes.nodes[nodes.rows[name]].labels.get(label) for name in scene.verdict.nodes)
    told = [f"{label}={value}" if value is not None else f"no label {label}" for value, _ in counts.most_common(2)]
    return any_of(told)


def _near_toleration(scene: Scene, told: str) -> str:
    """A toleration of the same key that is for another value or effect."""
    key = told.rpartition(":")[0].partition("=")[0]
    for toleration in scene.pod.spec.tolerations or ():
        if toleration.key == key:
            value = "" if toleration.operator == "Exists" else f"={toleration.value}"
            effect = f":{toleration.effect}" if toleration.effect else ""
            return f" (its toleration is for {key}{value}{effect})"
    return ""


def taint(scene: Scene) -> Cause:
    counts: Counter[str] = Counter()
    for group in scene.left:
        for text in {finding.text for finding in group.of_kind(CauseKind.TAINT)}:
            counts[text.removeprefix("taint ").removesuffix(" is not tolerated")] += len(group.nodes)
    is_ours = any(finding.distance < 1 for finding in scene.lead.of_kind(CauseKind.TAINT))
    first, n_first = counts.most_common(1)[0]
    n = scene.n_left
    have = "has" if n == 1 else "have"
    where = names_text(scene.verdict.nodes)
    if len(counts) == 1 or n_first == n:
        near_miss = _near_toleration(scene, first)
        text = f"{scene.subject()} {have} the taint {first}, which it does not tolerate{near_miss}: {where}"
    else:
        told = [f"{taint} on {count}" for taint, count in counts.most_common(VALUES_SHOWN)]
        text = f"{scene.subject()} {have} taints that it does not tolerate: {', '.join(told)}"
    if is_ours:
        remedy = f"Add a toleration for {first}: the pod asks for what that taint keeps for such pods."
    else:
        kept = "It is kept" if n == 1 else "They are kept"
        remedy = f"{kept} for others: add nodes without it, or tolerate it if the pod belongs there."
    return scene.cause(CauseKind.TAINT, text, remedy, taints=dict(counts))
