"""A picture of all that can be read from a cluster, to see that a trial left no trace."""

from __future__ import annotations

from typing import Any

from kubesched.scheduler.cluster import Cluster


def picture(cluster: Cluster) -> dict[str, Any]:
    table = cluster.table
    n = table.n
    return {
        "names": list(table.names),
        "nodes": list(table.nodes),
        "rows": dict(table.rows),
        "order": cluster.rows_in_order.tolist(),
        "pods": [[info.key for info in table.pods.on(row)] for row in range(n)],
        "allocatable": {name: column.data[:n].tolist() for name, column in table.allocatable.items()},
        "requested": {
            name: amounts for name, column in table.requested.items() if any(amounts := column.data[:n].tolist())
        },
        "counts": table.pod_counts.data[:n].tolist(),
        "allowed": table.allowed_pods.data[:n].tolist(),
        "nonzero": (table.nonzero_cpu_milli.data[:n].tolist(), table.nonzero_memory_bytes.data[:n].tolist()),
        "unschedulable": table.unschedulable.data[:n].tolist(),
        "taints": [table.taints.values[code] for code in table.taints.codes.data[:n].tolist()],
        "labels": {
            key: [None if code < 0 else column.values[code] for code in column.codes.data[:n].tolist()]
            for key, column in table.labels.items()
        },
        "ports": {
            (key, address): dict(sorted(users.items()))
            for key, by_address in table.ports.items()
            for address, users in by_address.items()
            if users
        },
        "claims": {claim: dict(sorted(users.items())) for claim, users in table.claims.items() if users},
        "images": {name: (found.size_bytes, sorted(found.rows)) for name, found in table.images.items()},
        "affinity": sorted(
            (group.namespace, repr(group.terms), sorted(group.rows.tolist())) for group in table.pods.affinity_groups()
        ),
        "pending": {key: info.pod for key, info in cluster.pending.items()},
        "nominated": {name: [p.key for p in cluster.nominations.on(name)] for name in cluster.nominations.node_names()},
    }
