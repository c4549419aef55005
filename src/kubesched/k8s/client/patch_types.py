"""The media types that tell an API server how to read a patch."""

from __future__ import annotations

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
"""Lists are merged by their keys: conditions by type, say."""

APPLY_PATCH = "application/apply-patch+yaml"
"""What there should be, made or changed: `fieldManager` must be among the parameters. JSON is YAML enough."""
