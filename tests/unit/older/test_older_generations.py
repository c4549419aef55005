"""Versions that can be emulated, and their feature gates."""

from __future__ import annotations

import pytest

from kubesched.older.config import EMULATED_VERSIONS, generation_of
from kubesched.older.config.generations import feature_gates
from kubesched.scheduler.config import ConfigError


@pytest.mark.parametrize(
    ("asked", "version"),
    [
        pytest.param("1.14", "1.14", id="a minor version"),
        pytest.param("v1.19", "1.19", id="with the letter of tags"),
        pytest.param("1.17.17", "1.17", id="a patch release stands for its minor version"),
    ],
)
def test_a_version_is_found_by_what_people_call_it(asked: str, version: str) -> None:
    found = generation_of(asked)
    assert found is not None
    assert found.version == version


def test_the_present_version_is_no_emulation() -> None:
    assert generation_of("1.36") is None


def test_an_unknown_version_is_an_error_that_lists_those_known() -> None:
    with pytest.raises(ConfigError, match=r"1\.13, 1\.14, 1\.17, 1\.18, 1\.19, 1\.36"):
        generation_of("1.16")


@pytest.mark.parametrize("version", EMULATED_VERSIONS)
def test_an_unknown_gate_is_an_error(version: str) -> None:
    generation = generation_of(version)
    assert generation is not None
    with pytest.raises(ConfigError, match='"NoSuchGate" is not known'):
        feature_gates(generation, {"NoSuchGate": True})


def test_a_gate_that_is_given_goes_before_its_default() -> None:
    generation = generation_of("1.17")
    assert generation is not None
    assert not feature_gates(generation, None).enabled("EvenPodsSpread")
    assert feature_gates(generation, {"EvenPodsSpread": True}).enabled("EvenPodsSpread")
