"""NodeVolumeLimits: no more volumes of a CSI driver on a node than the driver can attach there.

Read `plugin` first, then `ledger` for what counts as a volume, and what is attached already.
"""

from kubesched.scheduler.plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
