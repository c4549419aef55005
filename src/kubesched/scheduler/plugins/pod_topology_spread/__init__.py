"""PodTopologySpread: keeps pods of a kind spread over zones, hosts or any other topology.

Read in this order: `constraints` (what is asked for), `inclusion` (which nodes count), `row_counts` and `counted_pods`
(which pods do), `filtering`, `scoring`, `hints`; `plugin` joins them.
"""

from kubesched.scheduler.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
