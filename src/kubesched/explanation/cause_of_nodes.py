"""The words for a cause that lies with the nodes: what is needed, who comes nearest, what they lack, what to do.

One function for each kind of obstacle. All speak of the nodes that `find_nearest` left. Where the containers of a pod
alone do not explain an amount, it is said where it comes from:

    needs 4 cpu (for init container restore; 200m afterwards)
    needs 3 cpu (2 of it for sidecar istio-proxy)
    needs 1750m cpu (250m of it overhead)

Next: `cause_of_places`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches

from kubesched.explanation import cause_of_places
from kubesched.explanation.cause import NAMES_SHOWN, VALUES_SHOWN, Cause, NearestNodes, Scene, find_nearest, names_text
from kubesched.explanation.findings.finding import (
    HOSTNAME_LABEL,
    CauseKind,
    Fact,
    Finding,
    Nearness,
    Shortage,
    amount_of,
    comes_with_node,
    meant_resource,
    offered_resources,
)
from kubesched.explanation.findings.pod_affinity import UnmetPodAffinity
from kubesched.explanation.findings.taints import LEAVING_TAINTS
from kubesched.explanation.groups import RejectedNodes
from kubesched.explanation.layout import all_of, any_of, counted, listed, readable
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Container, Pod
from kubesched.k8s.model.requests import CPU, PODS, in_node_units, is_restartable, to_nanos
from kubesched.scheduler.cluster import Cluster

OTHERS_SHOWN = 2
NEAREST_ASKED = 20
_CLOSED = (CauseKind.CORDONED, CauseKind.NOT_READY)
_PRESSURE = "-pressure"


def cause_of_nodes(
    cluster: Cluster, pod: PodInfo, groups: Sequence[RejectedNodes], nominated: dict[str, list[str]]
) -> tuple[Cause, NearestNodes]:
    """For a pod that fits on none of the nodes in these groups."""
    verdict = find_nearest(groups)
    scene = Scene(cluster, pod, verdict, nominated)
    if verdict.culprit is not None:
        return _WORDS[verdict.culprit](scene), verdict
    return _what_is_lacking(scene), verdict


def _what_is_lacking(scene: Scene) -> Cause:
    """Nodes are left that would do: they lack an amount, or take nobody for the moment."""
    closed = [group for group in scene.left if group.kinds and group.kinds <= set(_CLOSED)]
    lacking = [group for group in scene.left if group.nearness is Nearness.LACKS]
    n_closed = sum(len(group.nodes) for group in closed)
    if closed and (not lacking or 2 * n_closed > scene.n_left):
        return _closed(scene, closed)
    lead = scene.lead
    kinds = list(dict.fromkeys(finding.kind for finding in lead.findings))
    only = kinds[0] if len(kinds) == 1 else None
    words = _LACKING.get(only) if only is not None else None
    alike = scene.about([group for group in scene.left if _lacks_as(lead, group)])
    cause = _several(scene) if words is None else words(alike)
    if words is None or not alike.others:
        return cause
    return replace(cause, text=cause.text + _about_others(alike.others, closed))


def _lacks_as(lead: RejectedNodes, group: RejectedNodes) -> bool:
    """Whether a group lacks what the nearest one lacks, and nothing of another kind."""
    return group.kinds == lead.kinds and _resources_of(group) >= _resources_of(lead)


def _resources_of(group: RejectedNodes) -> frozenset[str]:
    return frozenset(finding.resource for finding in group.findings if isinstance(finding, Shortage))


def _about_others(others: Sequence[RejectedNodes], closed: Sequence[RejectedNodes]) -> str:
    """What stands against the nodes that the cause does not speak of: those that lack something, and the closed."""
    told: list[str] = []
    n_untold = 0
    lacking: dict[str, int] = {}
    for group in others:
        if group not in closed:
            what = _in_short(group)
            lacking[what] = lacking.get(what, 0) + len(group.nodes)
    for what, n in lacking.items():
        if len(told) < OTHERS_SHOWN:
            told.append(f"{counted(n, 'more node')} {'has' if n == 1 else 'have'} {what}")
        else:
            n_untold += n
    if n_untold:
        told.append(f"{counted(n_untold, 'more node')} {'lacks' if n_untold == 1 else 'lack'} something else")
    n_closed = sum(len(group.nodes) for group in closed)
    if closed:
        told.append(f"{counted(n_closed, 'more node')} {'is' if n_closed == 1 else 'are'} {_state(closed)}")
    return "".join(f"; {text}" for text in told)


def _in_short(group: RejectedNodes) -> str:
    """What a group has, or has not, after `have`."""
    short = [f for f in group.findings if isinstance(f, Shortage)]
    if len(short) == len(group.findings):
        return f"less than {_amounts((s.resource, s.requested) for s in short)} free"
    told = all_of(list(dict.fromkeys(finding.shared for finding in group.findings)))
    return f"another obstacle: {told}"


# -- amounts -----------------------------------------------------------------------------------------------------------


def _resources(scene: Scene) -> Cause:
    lead = scene.lead
    nearest = lead.nodes[0]
    shortages = [finding for finding in nearest.findings if isinstance(finding, Shortage)]
    held = scene.nominated.get(nearest.name, [])
    if held and all(shortage.missing <= shortage.nominated for shortage in shortages):
        return _kept(scene, nearest.name, shortages, held)
    if [shortage.resource for shortage in shortages] == [PODS]:
        return _full_of_pods(scene, shortages[0])
    need = f"needs {_amounts((s.resource, s.requested) for s in shortages)}"
    need += made_of(scene.pod.pod, [s.resource for s in shortages])
    free = _bare_amounts((s.resource, s.free) for s in shortages)
    is_same = len(scene.left) == 1 and len({_free_amounts(node.findings) for node in lead.nodes}) == 1
    if scene.n_left == 1 and not scene.others:
        has = f"{scene.subject()}, {nearest.name}, has {free} free"
    elif is_same:
        have = f"has {free} free" if scene.n_left == 1 else f"have {free} free each"
        has = f"{scene.subject()} {have}: {names_text(lead.names)}"
    elif scene.others:
        has = f"{scene.subject()} have less free: nearest is {nearest.name} with {free}"
    else:
        has = f"none of {scene.subject()} has that much free: nearest is {nearest.name} with {free} free"
    missing = _bare_amounts((s.resource, s.missing) for s in shortages)
    has_some = all(shortage.free > 0 for shortage in shortages)
    most = "" if is_same or scene.n_left == 1 else "at most "
    if _is_left_to_daemons(scene, shortages):
        has += "; what runs there comes with every node (DaemonSets)"
        remedy = f"Ask for {most}{free}, or add a larger node" if has_some else "Add a larger node"
    else:
        remedy = f"Free {missing} there" + (f", or ask for {most}{free}" if has_some else "")
    return scene.cause(
        CauseKind.RESOURCES,
        f"{need}; {has}",
        f"{remedy}.",
        resources={s.resource: {"requested": s.requested, "free": s.free, "missing": s.missing} for s in shortages},
    )


def _is_left_to_daemons(scene: Scene, shortages: Sequence[Shortage]) -> bool:
    """Whether on none of the nearest nodes enough would become free even if all pods left that can leave."""
    table = scene.cluster.table
    for node in scene.lead.nodes[:NEAREST_ASKED]:
        pods = table.pods.on(table.rows[node.name])
        movable = [pod for pod in pods if not comes_with_node(pod)]
        is_enough = all(sum(amount_of(pod, short.resource) for pod in movable) >= short.missing for short in shortages)
        if is_enough or len(movable) == len(pods):
            return False
    return True


def _kept(scene: Scene, node: str, shortages: Sequence[Shortage], held: Sequence[str]) -> Cause:
    need = _amounts((s.resource, s.requested) for s in shortages)
    pods = all_of(held)
    text = f"needs {need}; {node} has that free, but keeps it for {pods} (nominated there, no lower in priority)"
    remedy = f"Wait until {pods} {'has' if len(held) == 1 else 'have'} been bound, or add a node."
    return scene.cause(CauseKind.NOMINATED, text, remedy, pods=list(held))


def _full_of_pods(scene: Scene, shortage: Shortage) -> Cause:
    lead = scene.lead
    if scene.n_left == 1:
        full = f"{scene.subject()}, {lead.nodes[0].name}, runs {shortage.used} of {shortage.allocatable} pods"
    else:
        nearest = f"{lead.nodes[0].name} runs {shortage.used} of {shortage.allocatable}"
        full = f"none of {scene.subject()} has a place for one more pod: {nearest}"
    return scene.cause(
        CauseKind.RESOURCES,
        f"needs a place among the pods of a node; {full}",
        "Move a pod away from there, or add a node.",
        resources={PODS: {"requested": 1, "free": shortage.free, "missing": shortage.missing}},
    )


def _too_large(scene: Scene) -> Cause:
    """Whatever is missing even on an empty node, where least is missing."""
    lead = scene.lead
    shortages = [f for f in lead.findings if isinstance(f, Shortage) and f.kind is CauseKind.TOO_LARGE]
    resources = {shortage.resource for shortage in shortages}
    best = {
        resource: max(
            (f for f in scene.findings(CauseKind.TOO_LARGE) if isinstance(f, Shortage) and f.resource == resource),
            key=lambda shortage: shortage.allocatable,
        )
        for resource in resources
    }
    order = sorted(resources)
    need = _amounts((resource, best[resource].requested) for resource in order) + made_of(scene.pod.pod, order)
    largest = _amounts((resource, best[resource].allocatable) for resource in order)
    if scene.n_left == 1:
        has = f"{scene.subject()}, {lead.nodes[0].name}, has {largest} even when empty"
    else:
        has = f"the largest of {scene.subject()} has {largest} even when empty: {lead.nodes[0].name}"
    meant = _meant_milli(best.get(CPU))
    return scene.cause(
        CauseKind.TOO_LARGE,
        f"needs {need}; {has}",
        f"{meant}No eviction helps: ask for at most {largest}, or add a larger node.",
        resources={
            r: {"requested": best[r].requested, "free": best[r].free, "allocatable": best[r].allocatable} for r in order
        },
    )


def _meant_milli(cpu: Shortage | None) -> str:
    """Cpus by the hundred where nodes have a few are mostly millicores whose `m` is missing."""
    if cpu is None or cpu.requested < 10 * cpu.allocatable or cpu.requested // 1000 > cpu.allocatable:
        return ""
    return f"Did you mean {cpu.requested // 1000}m cpu? "


def _no_such_resource(scene: Scene) -> Cause:
    missing = [f for f in scene.findings(CauseKind.NO_SUCH_RESOURCE) if isinstance(f, Shortage)]
    shortage = missing[0]
    offered = offered_resources(scene.cluster)
    similar = get_close_matches(shortage.resource, [name for name in offered if "/" in name or "-" in name], 2, 0.6)
    meant = meant_resource(shortage.resource, offered)
    hint = f"; there is {meant or any_of(similar)}" if meant or similar else ""
    lacking = "no node has any" if scene.n_left == scene.n_nodes else f"{scene.subject()} have none"
    if meant:
        remedy = f"Did you mean {meant}? Correct the name, or add a node that has it."
    else:
        remedy = "Add a node that has it"
        remedy += f", or ask for {any_of(similar)}." if similar else ", or have its device plugin report it."
    return scene.cause(
        CauseKind.NO_SUCH_RESOURCE,
        f"needs {readable(shortage.resource, shortage.requested)} {shortage.resource}; {lacking}{hint}",
        remedy,
        resources={shortage.resource: {"requested": shortage.requested, "free": 0, "allocatable": 0}},
    )


def _amounts(pairs: Iterable[tuple[str, int]]) -> str:
    """`4 cpu and 8Gi memory`."""
    return all_of([f"{readable(resource, max(units, 0))} {resource}" for resource, units in pairs])


def _bare_amounts(pairs: Iterable[tuple[str, int]]) -> str:
    """As `_amounts`; of a single resource that was just named, the amount alone."""
    known = list(pairs)
    return readable(known[0][0], max(known[0][1], 0)) if len(known) == 1 else _amounts(known)


def _free_amounts(findings: Iterable[Finding]) -> tuple[tuple[str, int], ...]:
    return tuple((finding.resource, finding.free) for finding in findings if isinstance(finding, Shortage))


# -- nodes that take nobody --------------------------------------------------------------------------------------------


def _closed(scene: Scene, closed: Sequence[RejectedNodes]) -> Cause:
    names = [name for group in closed for name in group.names]
    kind = next(kind for group in closed for kind in (CauseKind.NOT_READY, CauseKind.CORDONED) if kind in group.kinds)
    if len(names) == scene.n_left:
        who, rest = f"{scene.subject()} {'is' if len(names) == 1 else 'are'} {_state(closed)}", ""
    else:
        lacking = scene.about(closed).others
        short = _in_short(lacking[0])
        is_one = len({_in_short(group) for group in lacking}) == 1
        who = f"{len(names)} of {scene.subject()} are {_state(closed)}"
        rest = f"; the other {scene.n_left - len(names)} {f'have {short}' if is_one else 'lack something'}"
    if kind is CauseKind.CORDONED:
        which = "one of them" if len(names) > 1 else "it"
        remedy = f"Uncordon {which} when whoever cordoned it is done."
    elif _state(closed).startswith("about to be removed"):
        remedy = "Whoever removes nodes has to bring others: see the autoscaler, or add a node."
    elif len(names) == 1:
        remedy = "Find out what is wrong with it; the pod is scheduled when it is ready again."
    elif _state(closed).startswith("cordoned"):
        remedy = "Uncordon one, or find out what is wrong with those that are not ready."
    else:
        remedy = "Find out what is wrong with them; the pod is scheduled when one is ready again."
    return scene.cause(kind, f"{who}: {names_text(names)}{rest}", remedy, names)


def _state(closed: Sequence[RejectedNodes]) -> str:
    taints: Counter[str] = Counter()
    is_cordoned = False
    for group in closed:
        for finding in group.findings:
            if isinstance(finding, Fact) and finding.kind is CauseKind.NOT_READY:
                taints[finding.fields["taint"]["key"]] += len(group.nodes)
            is_cordoned |= finding.kind is CauseKind.CORDONED
    told = ["cordoned"] if is_cordoned else []
    of_state: dict[str, list[str]] = {}
    for key in taints:
        words = "under pressure" if key.endswith(_PRESSURE) else "not ready"
        words = "about to be removed" if key in LEAVING_TAINTS else words
        of_state.setdefault(words, []).append(key)
    for words, keys in of_state.items():
        if keys:
            told.append(f"{words} ({', '.join(sorted(keys, key=lambda key: -taints[key])[:2])})")
    return " or ".join(told)


def _host_port(scene: Scene) -> Cause:
    fact = scene.facts(CauseKind.HOST_PORT)[0]
    port = f"{fact.fields['hostPort']}/{fact.fields['protocol']}"
    where = f"{scene.lead.nodes[0].name} by {fact.fields['pod']}"
    is_all = scene.n_left > 1 or bool(scene.others)
    taken = f"on {scene.subject(every=True)}, for example on {where}" if is_all else f"on {where}"
    remedy = "Drop the hostPort (a Service needs none), or run at most one such pod per node."
    return scene.cause(
        CauseKind.HOST_PORT, f"needs host port {port}, which is taken {taken}", remedy, hostPort=fact.fields["hostPort"]
    )


# -- other pods --------------------------------------------------------------------------------------------------------


def _pod_affinity(scene: Scene) -> Cause:
    fact = scene.facts(CauseKind.POD_AFFINITY)[0]
    term = fact.fields["podAffinity"]
    unmet = UnmetPodAffinity(scene.cluster, scene.pod, {})
    somewhere = unmet.places_near()
    unknown = unmet.keys_without_nodes()
    if unknown:
        text = f"must run near pods {term}; no node has the label {all_of(unknown)}"
        remedy = "Correct the topologyKey of the affinity term, or label the nodes."
    elif somewhere:
        text = f"must run near pods {term}; such pods are in {listed(somewhere, VALUES_SHOWN)}"
        text += f", and {scene.subject()} {'is' if scene.n_left == 1 else 'are'} not"
        remedy = "Free something where these pods run, or run one of them elsewhere, too."
    else:
        stray, elsewhere = unmet.outside_topology(), unmet.in_another_namespace()
        if stray is not None:
            text = f"must run near pods {term}; {stray[0].key} is on {stray[0].spec.node_name}, which has no label"
            text += f" {stray[1]}"
            remedy = "Label that node, or run such a pod on a node that has the label."
        elif elsewhere is not None:
            text = f"must run near pods {term}; none runs in namespace {scene.pod.namespace}, but {elsewhere.key} does"
            text += " in another"
            remedy = "Name that namespace in the affinity term (namespaces or namespaceSelector), or start such a pod."
        else:
            text = f"must run near pods {term}; no such pod runs anywhere"
            remedy = "Start such a pod first, or correct the selector or its namespace."
    return scene.cause(CauseKind.POD_AFFINITY, text, remedy, podAffinity=term, domains=somewhere)


def _pod_anti_affinity(scene: Scene) -> Cause:
    fact = scene.facts(CauseKind.POD_ANTI_AFFINITY)[0]
    where = "node" if fact.fields["topologyKey"] == HOSTNAME_LABEL else fact.fields["topologyKey"]
    example = (
        f"{fact.fields['pod']} is {'nominated there' if not fact.fields['node'] else 'on ' + str(fact.fields['node'])}"
    )
    if "podAntiAffinity" in fact.fields:
        selector = fact.fields["podAntiAffinity"].partition(" within ")[0]
        text = f"must not share a {where} with pods {selector}; {scene.subject(every=True)} has one ({example})"
        more = "add a node" if where == "node" else f"add a node in another {where}"
        remedy = f"Run fewer of them, {more}, or make the anti-affinity preferred."
    else:
        selector = fact.fields["existingAntiAffinity"]
        text = f"pods on {scene.subject()} want no pod {selector} on their {where}, as this one is ({example})"
        remedy = "Their anti-affinity decides, not this pod's: add a node, or talk to their owner."
    return scene.cause(CauseKind.POD_ANTI_AFFINITY, text, remedy, pod=fact.fields["pod"])


def _spread(scene: Scene) -> Cause:
    facts = scene.facts(CauseKind.TOPOLOGY_SPREAD)
    fact = min(facts, key=lambda fact: fact.distance)
    key = fact.fields["topologyKey"]
    if fact.fields["domain"] is None:
        none = f"{scene.subject()} has not" if scene.n_left == 1 else f"none of {scene.subject()} has"
        text = f"its topology spread needs the label {key}, which {none}"
        return scene.cause(CauseKind.TOPOLOGY_SPREAD, text, f"Label the nodes with {key}.", topologyKey=key)
    domains: dict[str, int] = fact.fields["domains"]
    minimum, max_skew = fact.fields["minimum"], fact.fields["maxSkew"]
    emptiest = [domain for domain, n in sorted(domains.items()) if n == minimum]
    held = ", ".join(
        f"{domain} {n}" for domain, n in sorted(domains.items(), key=lambda d: (-d[1], d[0]))[:VALUES_SHOWN]
    )
    text = (
        f"its topology spread on {key} (maxSkew {max_skew}) allows no more where it could run: matching pods are {held}"
    )
    if not fact.fields["isOwnKind"]:
        text += " (it is not one of them itself)"
    if emptiest:
        why = _why_not_in(scene, key, emptiest)
        text += f"; {any_of(emptiest[:NAMES_SHOWN])} should come next{why}"
        remedy = f"Make {emptiest[0]} fit for it, or raise maxSkew to {fact.fields['skew']}."
    else:
        least = fact.fields["minDomains"]
        text += f"; there are {len(domains)} domains, and minDomains is {least}, so that another one counts as empty"
        remedy = f"Add a node in another {key}, or lower minDomains to {len(domains)}."
    return scene.cause(CauseKind.TOPOLOGY_SPREAD, text, remedy, topologyKey=key, domains=domains)


def _why_not_in(scene: Scene, key: str, domains: Sequence[str]) -> str:
    """The reasons against the nodes of the domains that should come next."""
    nodes, rows = scene.cluster.table.nodes, scene.cluster.table.rows
    found: Counter[str] = Counter()
    for ruling in scene.verdict.rulings:
        for group in ruling.ruled_out:
            n = sum(nodes[rows[name]].labels.get(key) in domains for name in group.names)
            if n:
                found[next(group.of_kind(ruling.kind)).shared] += n
    if not found:
        return ""
    shared, n = found.most_common(1)[0]
    return f", but {counted(n, 'node')} there: {shared}"


# -- the rest ----------------------------------------------------------------------------------------------------------


def _plugin(scene: Scene) -> Cause:
    fact = scene.facts(CauseKind.PLUGIN)[0]
    reasons = any_of(list(fact.fields.get("reasons", ()))) or "no reason given"
    text = f"{fact.plugin or 'a plugin'} rejects {scene.subject()}: {reasons}"
    return scene.cause(CauseKind.PLUGIN, text, "", plugin=fact.plugin)


def _features(scene: Scene) -> Cause:
    text = f"needs features that the kubelets of {scene.subject()} do not declare"
    return scene.cause(CauseKind.FEATURES, text, "Upgrade a node, or do without the feature.")


def _several(scene: Scene) -> Cause:
    """The nearest node lacks more than one kind of thing."""
    nearest = scene.lead.nodes[0]
    told = "; ".join(dict.fromkeys(finding.text for finding in nearest.findings))
    who = f"{scene.subject()}, {nearest.name}," if scene.n_left == 1 else f"none of {scene.subject()} fits"
    text = (
        f"{who} lacks more than one thing: {told}"
        if scene.n_left == 1
        else f"{who}: nearest is {nearest.name} ({told})"
    )
    kind = next((f.kind for f in nearest.findings if f.kind is CauseKind.RESOURCES), nearest.findings[0].kind)
    return scene.cause(kind, text, "Each of these has to change.")


_WORDS: dict[CauseKind, Callable[[Scene], Cause]] = {
    CauseKind.NO_SUCH_RESOURCE: _no_such_resource,
    CauseKind.VOLUME_PLACE: cause_of_places.volume_place,
    CauseKind.DEVICE_PLACE: cause_of_places.device_place,
    CauseKind.NO_SUCH_DEVICE: cause_of_places.no_such_device,
    CauseKind.DEVICE_TAINT: cause_of_places.device_taint,
    CauseKind.VOLUME_PROVISIONING: cause_of_places.volume_provisioning,
    CauseKind.STORAGE_CAPACITY: cause_of_places.storage_capacity,
    CauseKind.NODE_AFFINITY: cause_of_places.node_affinity,
    CauseKind.FEATURES: _features,
    CauseKind.TAINT: cause_of_places.taint,
    CauseKind.PLUGIN: _plugin,
    CauseKind.TOO_LARGE: _too_large,
    CauseKind.POD_AFFINITY: _pod_affinity,
    CauseKind.TOPOLOGY_SPREAD: _spread,
    CauseKind.POD_ANTI_AFFINITY: _pod_anti_affinity,
}
_LACKING: dict[CauseKind, Callable[[Scene], Cause]] = {
    CauseKind.RESOURCES: _resources,
    CauseKind.HOST_PORT: _host_port,
    CauseKind.VOLUME_LIMIT: cause_of_places.volume_limit,
    CauseKind.VOLUME_IN_USE: cause_of_places.volume_in_use,
    CauseKind.DEVICES: cause_of_places.devices,
    CauseKind.PLUGIN: _plugin,
}


def made_of(pod: Pod, resources: Sequence[str]) -> str:
    """Nothing where the pod's containers ask for all of it, or the pod as a whole does."""
    named = (pod.spec.resources.requests or {}) if pod.spec.resources is not None else {}
    asked = [resource for resource in resources if resource not in named]
    parts = [*_while_starting(pod, asked), *_of_sidecars(pod, asked), *_of_overhead(pod, asked)]
    return f" ({'; '.join(parts)})" if parts else ""


def _while_starting(pod: Pod, resources: Iterable[str]) -> Iterable[str]:
    """An init container that asks for more than all that runs after it."""
    starting = [container for container in pod.spec.init_containers or () if not is_restartable(container)]
    peaks: dict[str, list[str]] = {}
    for resource in resources:
        running = _sum((*pod.spec.containers, *_sidecars(pod)), resource)
        largest = max(starting, key=lambda container: _asks(container, resource), default=None)
        if largest is not None and _asks(largest, resource) > running:
            peaks.setdefault(largest.name, []).append(f"{readable(resource, running)} {resource}")
    for name, afterwards in peaks.items():
        yield f"for init container {name}; {all_of(afterwards)} afterwards"


def _of_sidecars(pod: Pod, resources: Iterable[str]) -> Iterable[str]:
    sidecars = _sidecars(pod)
    shares = [(resource, _sum(sidecars, resource)) for resource in resources]
    told = [f"{readable(resource, units)} {resource}" for resource, units in shares if units]
    if told:
        names = [container.name for container in sidecars]
        yield f"{all_of(told)} of it for {'sidecar' if len(names) == 1 else 'sidecars'} {all_of(names)}"


def _of_overhead(pod: Pod, resources: Iterable[str]) -> Iterable[str]:
    overhead = in_node_units(to_nanos(pod.spec.overhead, "spec.overhead"))
    told = [f"{readable(resource, overhead[resource])} {resource}" for resource in resources if overhead.get(resource)]
    if told:
        yield f"{all_of(told)} of it overhead of its runtime class"


def _sidecars(pod: Pod) -> list[Container]:
    return [container for container in pod.spec.init_containers or () if is_restartable(container)]


def _sum(containers: Iterable[Container], resource: str) -> int:
    return sum(_asks(container, resource) for container in containers)


def _asks(container: Container, resource: str) -> int:
    requests = {} if container.resources is None else container.resources.requests
    return in_node_units(to_nanos(requests, "requests")).get(resource, 0)
