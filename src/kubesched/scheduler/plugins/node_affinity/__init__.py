"""NodeAffinity: which nodes a pod's node selector and node affinity allow, and which it prefers.

`plugin` takes part in the cycle; `required` is what must hold, `preferred` what adds to the score, and `matching`
asks both of the whole table.
"""

from kubesched.scheduler.plugins.node_affinity.plugin import NodeAffinity

__all__ = ["NodeAffinity"]
