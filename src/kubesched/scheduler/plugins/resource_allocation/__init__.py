"""How full nodes are, resource by resource: what both scores on resources look at. Not a plugin itself.

Read `uses` first; `devices` counts devices where these stand for an extended resource.
"""

from kubesched.scheduler.plugins.resource_allocation.device_changes import asks_for_devices, devices_do_not_matter
from kubesched.scheduler.plugins.resource_allocation.uses import (
    NodeUse,
    ResourceUse,
    ResourceUses,
    ScoredResource,
    scored_resources,
)

__all__ = [
    "NodeUse",
    "ResourceUse",
    "ResourceUses",
    "ScoredResource",
    "asks_for_devices",
    "devices_do_not_matter",
    "scored_resources",
]
