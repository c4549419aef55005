"""Runs: of a seed, or of a trace. A run that fails comes back as a `ChaosFailure` with the trace that led there."""

from __future__ import annotations

from dataclasses import dataclass

from harness.chaos.checks.violation import Violation
from harness.chaos.simulation import Simulation
from harness.chaos.trace import ChaosStep, ChaosTrace
from harness.chaos.weather import Weather, options_for


@dataclass(frozen=True, slots=True)
class ChaosFailure:
    invariant: str
    message: str
    trace: ChaosTrace

    def __str__(self) -> str:
        return f"{self.invariant}\n  {self.message}\n\n{self.trace}"


@dataclass(frozen=True, slots=True)
class ChaosRun:
    """What came of a run; `digest` is the same for two runs alike."""

    trace: ChaosTrace
    digest: str
    failure: ChaosFailure | None = None


def run_seed(seed: int) -> ChaosRun:
    options = options_for(seed)
    weather = Weather(seed, options)
    done: list[ChaosStep] = []
    sim = Simulation(options)
    try:
        for step in weather.first_steps():
            done.append(step)
            sim.apply(step)
        for _ in range(weather.n_steps):
            step = weather.next_step(sim)
            done.append(step)
            sim.apply(step)
            if weather.is_over_after(step):
                break
        sim.finish()
    except Violation as violation:
        return _failed(violation, ChaosTrace(options, tuple(done)), sim)
    return ChaosRun(ChaosTrace(options, tuple(done)), sim.digest)


def run_trace(trace: ChaosTrace) -> ChaosRun:
    sim = Simulation(trace.options)
    try:
        for step in trace.steps:
            sim.apply(step)
        sim.finish()
    except Violation as violation:
        return _failed(violation, trace, sim)
    return ChaosRun(trace, sim.digest)


def _failed(violation: Violation, trace: ChaosTrace, sim: Simulation) -> ChaosRun:
    return ChaosRun(trace, sim.digest, ChaosFailure(violation.invariant, violation.message, trace))
