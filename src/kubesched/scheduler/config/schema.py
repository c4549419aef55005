"""What all structs of the configuration share: settings, and integers of Kubernetes' widths.

The structs hold the configuration as it stands after defaulting. A field that a file leaves out, or sets to null,
takes the struct's default. The text under a field is its description in `docs/reference/configuration.md`.

Next: `configuration` for the whole, `profile` for plugins, `plugin_args` for their arguments.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

API_VERSION = "kubescheduler.config.k8s.io/v1"

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class ConfigStruct(msgspec.Struct, frozen=True, rename="camel"):
    """Written to a manifest with every field, so that a reader sees the defaults."""


class SparseConfigStruct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Written to a manifest with only the fields that say something."""
