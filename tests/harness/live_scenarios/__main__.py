"""The command line of the live scenarios; `make test-cluster` calls it. Exit code 1 if any of them failed."""

from __future__ import annotations

import asyncio
import secrets
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import click

from harness.live_scenarios.run import SCENARIOS, ScenarioResult, run_scenario
from harness.live_scenarios.scheduler_process import SchedulerProcess, scheduler_process
from harness.live_scenarios.site import LOOK_AGAIN_S, ScenarioFailedError, ScenarioSize
from harness.live_scenarios.volume_controller import volume_controller
from kubesched.k8s.client.errors import AnswerLost, ApiError, ClientConfigError, Unreachable
from kubesched.k8s.client.kubeconfig import load_target
from kubesched.k8s.client.rest import RestClient

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_LOG_LINES = 20


@click.command()
@click.option("--kubeconfig", type=_FILE, required=True, help="Of a user who may do everything.")
@click.option("--scenario", "names", multiple=True, type=click.Choice(list(SCENARIOS)), help="Only these.")
@click.option("--nodes", default=1000, show_default=True)
@click.option("--pods", default=2000, show_default=True)
@click.option("--patience", default=300.0, show_default=True, help="Seconds until a scenario has failed.")
@click.option("--bind-claims", is_flag=True, help="Do the volume controller's work, on a server without one.")
@click.option("--scheduler-name", default="", help="Of a scheduler that runs already; none is started then.")
def main(
    kubeconfig: Path,
    names: tuple[str, ...],
    nodes: int,
    pods: int,
    patience: float,
    bind_claims: bool,
    scheduler_name: str,
) -> None:
    """Runs scenarios on a live cluster, with a kubesched of their own."""
    chosen = names or tuple(SCENARIOS)
    runs = _Runs(kubeconfig, chosen, ScenarioSize(nodes, pods), patience, bind_claims, scheduler_name)
    try:
        sys.exit(asyncio.run(runs.run()))
    except (ApiError, Unreachable, AnswerLost, ClientConfigError) as problem:
        raise click.ClickException(str(problem)) from problem


class _Runs:
    def __init__(
        self,
        kubeconfig: Path,
        names: tuple[str, ...],
        size: ScenarioSize,
        patience_s: float,
        bind_claims: bool,
        scheduler_name: str,
    ) -> None:
        base = f"kubesched-live-{secrets.token_hex(3)}"
        self._kubeconfig = kubeconfig
        self._size = size
        self._patience_s = patience_s
        self._bind_claims = bind_claims
        self._lease_name = "" if scheduler_name else base
        self._schedulers = {name: scheduler_name or f"{base}-{name}" for name in names}
        self._n_failed = 0

    async def run(self) -> int:
        async with AsyncExitStack() as stack:
            client = RestClient(load_target(self._kubeconfig, None, None), qps=0, user_agent="kubesched/live-scenarios")
            stack.push_async_callback(client.close)
            process = None
            if self._lease_name:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                started = scheduler_process(self._kubeconfig, self._schedulers.values(), self._lease_name, folder)
                process = await stack.enter_async_context(started)
                await _until_it_leads(client, self._lease_name, process)
            if self._bind_claims:
                await stack.enter_async_context(volume_controller(client))
            for name in self._schedulers:
                await self._run_one(client, name, process)
        return int(self._n_failed > 0)

    async def _run_one(self, client: RestClient, name: str, process: SchedulerProcess | None) -> None:
        before_s = None if process is None else process.cpu_s()
        try:
            result = await run_scenario(client, name, self._schedulers[name], self._size, patience_s=self._patience_s)
        except ScenarioFailedError as problem:
            self._n_failed += 1
            click.echo(f"{name:12} FAILED\n{problem}")
            if process is not None:
                click.echo("\n".join(process.log_path.read_text().splitlines()[-_LOG_LINES:]), err=True)
            return
        after_s = None if process is None else process.cpu_s()
        cpu_s = None if before_s is None or after_s is None else after_s - before_s
        click.echo(_line(result, cpu_s))


async def _until_it_leads(client: RestClient, lease_name: str, process: SchedulerProcess) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{lease_name}"
    while not process.has_ended:
        try:
            await client.request("GET", path)
            return
        except ApiError as problem:
            if not problem.is_not_found:
                raise
        await asyncio.sleep(LOOK_AGAIN_S)
    raise click.ClickException(f"kubesched ended:\n{process.log_path.read_text()}")


def _line(result: ScenarioResult, cpu_s: float | None) -> str:
    times = f"{result.pods_per_s:7.0f} pods/s  p50 {result.p50_s * 1000:6.0f} ms  p99 {result.p99_s * 1000:6.0f} ms"
    cost = "" if cpu_s is None else f"  {cpu_s * 1000 / result.n_pods:5.2f} ms CPU per pod"
    return f"{result.name:12} {result.n_pods:5} pods {times}{cost}"


if __name__ == "__main__":
    main()
