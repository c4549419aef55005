"""Amounts of resources as manifests write them; `quantity` gives their values."""

from __future__ import annotations

Amount = str | int | float
"""A quantity as text or number, not yet parsed."""

ResourceList = dict[str, Amount]
