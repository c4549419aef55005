"""NodeResourcesFit: does the node have what the pod requests, and how full would it be?

Read `plugin` first; `filtering` has the filter, `scoring` the scoring strategies.
"""

from kubesched.scheduler.plugins.node_resources_fit.plugin import NodeResourcesFit

__all__ = ["NodeResourcesFit"]
