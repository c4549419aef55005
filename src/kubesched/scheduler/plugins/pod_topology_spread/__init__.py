"""PodTopologySpread: spreads matching pods over zones, hosts or any other topology.

Read in this order: `constraints` (what is asked for, and which nodes and pods count), `filtering`, `scoring`; `plugin`
has the extension points and the queueing hints.
"""

from kubesched.scheduler.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
