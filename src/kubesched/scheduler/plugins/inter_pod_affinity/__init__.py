"""InterPodAffinity: places pods near to, or away from, other pods.

Read in this order: `terms` (whom a pod speaks of), `topology` (counting by topology), `term_index` (who speaks of a
pod), `concerns` (what a pod that comes or goes changes), `filtering` (required terms), `scoring` (preferred terms),
`hints`; `plugin` joins them.
"""

from kubesched.scheduler.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
