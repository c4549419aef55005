"""Every input of the corpora, and some made out of them: parsers answer, or refuse. `make fuzz` tries many more."""

from __future__ import annotations

from random import Random

import pytest
from fuzz_targets import CORPUS, TARGETS, FuzzTarget
from mutation import mutated

_N_MADE = {"http-server": 60, "patterns": 150, "manifests": 150, "configuration": 150}


@pytest.mark.parametrize("name", TARGETS)
def test_parsers_answer_or_refuse(name: str) -> None:
    target = TARGETS[name]
    pool = target.corpus()
    chance = Random(name)
    for data in pool:
        target.try_input(data)
    for _ in range(_N_MADE.get(name, 300)):
        data = mutated(chance.choice(pool), pool, chance)
        try:
            target.try_input(data)
        except Exception as error:  # noqa: BLE001 - to name the input
            pytest.fail(f"{name}: {data!r} raises {error!r}")


def test_every_corpus_is_small_and_has_a_target() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} == TARGETS.keys()
    assert sum(file.stat().st_size for file in CORPUS.glob("*/*")) < 200_000
    assert all(len(target.corpus()) >= 4 for target in TARGETS.values())


def test_a_parser_that_breaks_is_found() -> None:
    """Planted: a parser that trips over a certain byte."""

    def trip(data: bytes) -> None:
        if b"\xff" in data:
            raise KeyError("never documented")

    target = FuzzTarget("yaml", trip, (ValueError,))
    pool, chance = target.corpus(), Random(1)
    with pytest.raises(KeyError):
        for _ in range(5000):
            target.try_input(mutated(chance.choice(pool), pool, chance))


def test_changes_are_bounded_and_repeatable() -> None:
    pool = TARGETS["yaml"].corpus()
    first = [mutated(pool[0], pool, Random(seed)) for seed in range(200)]
    assert first == [mutated(pool[0], pool, Random(seed)) for seed in range(200)]
    assert max(map(len, first)) <= 4096
