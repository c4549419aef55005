"""InterPodAffinity: places pods near to, or away from, other pods.

Read in this order: `terms` (which pods a term matches, and how they are counted by topology), `filtering` (required
terms), `scoring` (preferred terms); `plugin` has the extension points and the queueing hints.
"""

from kubesched.scheduler.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
