"""The DynamicResources plugin: devices for pods, by claims. Start with `plugin`."""

from kubesched.scheduler.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
