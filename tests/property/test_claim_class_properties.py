"""Pods with volumes and devices are decided alike with and without the class cache, whatever their claims become."""

from __future__ import annotations

from claim_histories import Step, histories, outcome
from hypothesis import event, given, settings


@settings(max_examples=150, deadline=None)
@given(histories())
def test_with_the_cache_off_every_decision_on_pods_with_claims_is_the_same(history: list[Step]) -> None:
    kept, without = outcome(history, keeps_classes=True), outcome(history, keeps_classes=False)
    event(f"bound: {min(len(kept['bound']), 5)}, by class: {min(kept.pop('by class'), 5)}")
    assert without.pop("by class") == 0
    assert kept == without
