"""How long plain pods wait for their binding beside gangs, beside as many single pods, and alone.

    python benchmarks/beside_gangs.py [--rounds 5]

All rows of a table have the same plain pods, which come at the same random times; what comes beside them comes at the
same times, too. Time is virtual, and work is charged with the processor time that it took. Rows are played in turn, and
of each pod the shortest of its waits counts: what others do on the machine falls out.
"""

from __future__ import annotations

import argparse

import numpy as np

from kubesched.k8s.model.meta import PodKey
from kubesched.simulator.bench.run import BenchRun, BenchSettings
from kubesched.simulator.bench.runner import run_operations
from kubesched.simulator.bench.workload_file import load_workloads, select_workloads

TABLES = {
    "1,000 plain pods a second, 10 gangs of 8 on one of 200 racks": {
        "gangs": "beside-gangs/default",
        "single pods": "beside-single-pods/default",
        "nothing": "beside-single-pods/none",
    },
    "480 plain pods a second, 60 gangs of 8 on one of 200 racks": {
        "gangs": "beside-gangs/half",
        "single pods": "beside-single-pods/half",
        "nothing": "beside-single-pods/half-none",
    },
    "480 plain pods a second, 15 gangs of 32": {
        "gangs": "beside-gangs-of-32/default",
        "single pods": "beside-single-pods/of-32",
        "nothing": "beside-single-pods/half-none",
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    shortest: dict[str, dict[PodKey, int]] = {}
    for _ in range(rounds):
        for name in dict.fromkeys(name for rows in TABLES.values() for name in rows.values()):
            known = shortest.setdefault(name, {})
            for pod, waited_ns in waits(name).items():
                known[pod] = min(waited_ns, known.get(pod, waited_ns))
    for title, rows in TABLES.items():
        print(f"\n{title}\n{'beside':<14}{'p50':>10}{'p90':>10}{'p99':>10}{'longest':>10}   p99 beside gangs is")
        p99_of_gangs = np.percentile(list(shortest[rows["gangs"]].values()), 99)
        for beside, name in rows.items():
            p50, p90, p99, longest = np.percentile(list(shortest[name].values()), [50, 90, 99, 100])
            cells = "".join(f"{ns / 1e3:>7,.0f} us" for ns in (p50, p90, p99, longest))
            told = "" if beside == "gangs" else f"{p99_of_gangs / p99:.2f} times this"
            print(f"{beside:<14}{cells}   {told}".rstrip())


def waits(name: str) -> dict[PodKey, int]:
    (workload,) = select_workloads(load_workloads(()), [name], ())
    run = BenchRun(workload, BenchSettings())
    run_operations(run)
    run.measurement.close()
    return run.waited_ns


if __name__ == "__main__":
    main()
