"""What must hold about pods and nodes when a scenario is over. Each check gives its findings, one line each.

Next: `event_checks`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from harness.live_scenarios.manifests import ZONE
from harness.live_scenarios.pod_follower import FollowedPod
from harness.live_scenarios.site import ScenarioFailedError, Site
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.requests import node_units, pod_resources

_MOST_SHOWN = 10


def must_hold(*findings: list[str]) -> None:
    problems = [line for lines in findings for line in lines]
    if problems:
        rest = [f"and {len(problems) - _MOST_SHOWN} more"] if len(problems) > _MOST_SHOWN else []
        raise ScenarioFailedError("\n".join([*problems[:_MOST_SHOWN], *rest]))


def every_pod_is_bound_once(site: Site, pods: Iterable[FollowedPod]) -> list[str]:
    problems = []
    for one in pods:
        if len(one.nodes) > 1:
            problems.append(f"pod {one.name} was bound to {sorted(one.nodes)}")
        elif one.node_name not in site.nodes:
            problems.append(f"pod {one.name} is on {one.node_name or 'no node'}, which is none of ours")
        elif one.pod is not None and not _is_scheduled(one.pod):
            problems.append(f"pod {one.name} has no condition PodScheduled=True")
    return problems


def no_node_is_over_committed(site: Site) -> list[str]:
    used: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in site.pods:
        if one.pod is not None and one.is_bound and not one.is_gone:
            used[one.node_name].update({**pod_resources(one.pod).requests, "pods": 1})
    problems = []
    for name, amounts in used.items():
        room = node_units(site.nodes[name]["status"]["allocatable"], "status.allocatable")
        problems += [
            f"node {name} has {room[resource]} of {resource}, and its pods ask for {amount}"
            for resource, amount in amounts.items()
            if amount > room[resource]
        ]
    return problems


def counts_differ_by_at_most(skew: int, key: str, site: Site, pods: Iterable[FollowedPod]) -> list[str]:
    """Over all domains of this label, also those without a pod."""
    counts = Counter({domain_of(site, name, key): 0 for name in site.nodes})
    counts.update(domain_of(site, one.node_name, key) for one in pods)
    most, fewest = max(counts.values()), min(counts.values())
    if most - fewest <= skew:
        return []
    return [f"by {key} there are between {fewest} and {most} pods; at most {skew} apart is allowed"]


def all_in_one_zone(site: Site, pods: Iterable[FollowedPod], group: str) -> list[str]:
    zones = sorted({domain_of(site, one.node_name, ZONE) for one in pods})
    return [] if len(zones) == 1 else [f"the pods of {group} are in {zones}, and want to be in one zone"]


def domain_of(site: Site, node_name: str, key: str) -> str:
    labels: dict[str, str] = site.nodes[node_name]["metadata"]["labels"]
    return labels[key]


def _is_scheduled(pod: Pod) -> bool:
    return any(one.type == "PodScheduled" and one.status == "True" for one in pod.status.conditions or ())
