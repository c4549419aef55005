"""NodeResourcesFit: does the node have what the pod asks for, and how full would it be?

Read `plugin` first; `filtering` has the filter, `scoring` and `shape` the scoring strategies, `hints` the requeueing.
"""

from kubesched.scheduler.plugins.node_resources_fit.plugin import NodeResourcesFit

__all__ = ["NodeResourcesFit"]
