"""What the guide shows works."""

from __future__ import annotations

from pathlib import Path

import yaml

from kubesched.scheduler.config import load
from kubesched.scheduler.engine.extender import build_extenders
from kubesched.scheduler.engine.extender.cycle import MOST_AT_ONCE
from kubesched.scheduler.engine.extender.verbs import MAX_EXTENDER_PRIORITY

GUIDE = (Path(__file__).parents[4] / "docs" / "guides" / "extenders.md").read_text()


def test_the_configuration_in_the_guide_can_be_loaded() -> None:
    shown = GUIDE.partition("```yaml\n")[2].partition("```")[0]
    (extender,) = build_extenders(load(yaml.safe_load(shown), "guide").extenders)
    assert extender.decides and extender.compares_nodes
    assert extender.call("filter", b"").url == "http://gpu-extender.kube-system.svc:8888/scheduler/filter"
    assert extender.call("filter", b"").timeout_s == 2.0


def test_the_numbers_in_the_guide_are_those_of_the_code() -> None:
    assert f"Up to {MOST_AT_ONCE} pods" in GUIDE
    assert f"0 to {MAX_EXTENDER_PRIORITY} |" in GUIDE
