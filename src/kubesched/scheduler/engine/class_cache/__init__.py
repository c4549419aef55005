"""A class once, pods many: what was found out for a pod stays true for the next one with the same
signature, but for what changed since.

`cache` finds a pod's class or makes one out of `layers`, `pod_class` brings it up to date and searches and
scores with it.
It changes the speed of decisions, never an answer: with the cache off, every decision is the same.
"""

from kubesched.scheduler.engine.class_cache.cache import ClassCache

__all__ = ["ClassCache"]
