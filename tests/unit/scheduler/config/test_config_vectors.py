"""Every configuration of the test vectors loads, resolves and writes out again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kubesched.scheduler.config import Capabilities, load, resolve_profiles, to_manifest

VECTORS = Path(__file__).parents[3] / "vectors"


def _configurations() -> list[Any]:
    """Each distinct configuration once, named after the first case that has it."""
    found: dict[str, Any] = {}
    for file in sorted(VECTORS.glob("*/*.jsonl.gz")):
        for line in gzip.decompress(file.read_bytes()).splitlines():
            case = json.loads(line)
            if case.get("config") is not None:
                text = json.dumps(case["config"], sort_keys=True)
                found.setdefault(text, pytest.param(text, id=case["name"]))
    return list(found.values())


CONFIGURATIONS = _configurations()


@pytest.mark.parametrize("text", CONFIGURATIONS)
def test_a_configuration_of_the_vectors_loads_and_resolves(text: str, capabilities: Capabilities) -> None:
    config = load(text, "vector")
    (profile,) = resolve_profiles(config, capabilities, "vector")
    assert profile.scheduler_name == "default-scheduler"
    assert load(to_manifest(config), "again") == config


def test_there_are_configurations_in_the_vectors() -> None:
    assert len(CONFIGURATIONS) > 50
