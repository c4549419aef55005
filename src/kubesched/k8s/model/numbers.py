"""Whole numbers as large as Kubernetes' API has them: a larger one is damage, as it is to Go."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
