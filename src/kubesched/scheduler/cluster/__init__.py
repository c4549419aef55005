"""What is known of the cluster: the node table, pods by class, nominated pods, and all other objects.

`cluster` takes facts; `table` keeps nodes and pods as rows and columns, `view` is what plugins read, `pod_table` counts
pods by label class, `signatures` finds pods with the same signature, `objects` holds the rest by key, `node_order` is
the order in which nodes are looked at.
"""

from kubesched.scheduler.cluster.cluster import Cluster

__all__ = ["Cluster"]
