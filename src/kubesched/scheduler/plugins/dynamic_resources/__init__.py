"""DynamicResources: allocates devices to pods, by their ResourceClaims.

Start with `plugin`.
"""

from kubesched.scheduler.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
