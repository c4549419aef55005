"""DynamicResources: devices for pods, by ResourceClaims. Start with `plugin`."""

from kubesched.scheduler.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
