"""A pytest plugin: generated cases are the same in every run, so that a red test is about a change and not about luck.

Loaded by the project's own pytest settings; plugin authors may do the same. `KUBESCHED_HYPOTHESIS=fuzz` (`make fuzz`)
looks for new cases.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("fuzz", derandomize=False, deadline=None)
settings.load_profile(os.environ.get("KUBESCHED_HYPOTHESIS", "steady"))
