"""Pods with a volume each; the volumes are there already, each on one node: pod and volume must come together."""

from __future__ import annotations

from typing import Any

from harness.live_scenarios import checks, event_checks, manifests
from harness.live_scenarios.site import Site

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


async def volumes(site: Site) -> None:
    n_pods, per_node = site.size.n_pods, -(-site.size.n_pods // site.size.n_nodes)
    class_name = f"{site.run_id}-local"
    await site.create(manifests.storage_class(class_name, site.run_id))
    await site.add_nodes(cpu=4 + per_node)
    await site.create_all(
        manifests.volume(f"{name}-volume-{i}", site.run_id, class_name, name)
        for name in site.nodes
        for i in range(per_node)
    )
    await site.settle(lambda: _unavailable(site), site.patience_s)
    await site.create_all(manifests.claim(f"claim-{i}", site.run_id, class_name) for i in range(n_pods))
    await site.create_all(site.pod(f"pod-{i}", volumes=[_volume_of(f"claim-{i}")]) for i in range(n_pods))
    await site.until(lambda: site.pods.n_bound == n_pods, "every pod is bound")
    checks.must_hold(checks.every_pod_is_bound_once(site, site.pods), checks.no_node_is_over_committed(site))
    await site.settle(lambda: _claims_are_bound_where_their_pods_are(site))
    await site.settle(lambda: event_checks.every_binding_is_told(site, site.pods))


def _volume_of(claim_name: str) -> dict[str, Any]:
    return {"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}


async def _unavailable(site: Site) -> list[str]:
    """Volumes that the volume controller has not seen yet: no claim may have them."""
    found = await site.listed("PersistentVolume")
    names = [one["metadata"]["name"] for one in found if (one.get("status") or {}).get("phase") != "Available"]
    return [f"volume {name} is not available: is there a volume controller?" for name in names[:1]]


async def _claims_are_bound_where_their_pods_are(site: Site) -> list[str]:
    found = {volume["metadata"]["name"]: volume for volume in await site.listed("PersistentVolume")}
    problems = []
    for claim in await site.listed("PersistentVolumeClaim"):
        name = claim["metadata"]["name"]
        volume = found.get(claim["spec"].get("volumeName", ""))
        if volume is None or (claim.get("status") or {}).get("phase") != "Bound":
            problems.append(f"{name} is not bound")
            continue
        on_node = site.pods[name.replace("claim", "pod")].node_name
        problems += [f"{name}: {problem}" for problem in _mismatches(volume, claim, on_node)]
    taken = [volume for volume in found.values() if volume["spec"].get("claimRef")]
    if len(taken) != site.size.n_pods:
        problems.append(f"{len(taken)} volumes are taken by {site.size.n_pods} claims")
    return problems


def _mismatches(volume: dict[str, Any], claim: dict[str, Any], node_name: str) -> list[str]:
    problems = []
    metadata, reference = volume["metadata"], volume["spec"].get("claimRef") or {}
    if reference.get("uid") != claim["metadata"]["uid"] or reference.get("name") != claim["metadata"]["name"]:
        problems.append(f"its volume {metadata['name']} is for {reference}")
    if (metadata.get("annotations") or {}).get(BOUND_BY_CONTROLLER) != "yes":
        problems.append(f"its volume {metadata['name']} does not say that we chose it")
    term = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]
    if term["matchExpressions"][0]["values"] != [node_name]:
        problems.append(f"its volume {metadata['name']} is not on {node_name}, where the pod is")
    return problems
