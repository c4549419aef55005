"""The command line of the pauses; `make pauses` calls it. Exit code 1 if a pod was lost."""

from __future__ import annotations

import asyncio
import sys

import click

from harness.pauses.scene import Paused, PodsLostError, Scene, play

_PAUSED = {"only": Paused.ONLY, "leader": Paused.LEADER, "server": Paused.SERVER}


@click.command()
@click.option("--for", "lengths", default="12,40,300", show_default=True, help="Seconds, by commas.")
@click.option("--pods", default=200, show_default=True)
@click.option("--paused", type=click.Choice([*_PAUSED, "all"]), default="all", show_default=True)
@click.option("--together", is_flag=True, help="All at once, which takes less time and more of the machine.")
def main(lengths: str, pods: int, paused: str, together: bool) -> None:
    """Stops schedulers and API servers for a while, and looks whether every pod is bound afterwards."""
    who = list(_PAUSED.values()) if paused == "all" else [_PAUSED[paused]]
    scenes = [Scene(one, float(for_s), pods) for for_s in lengths.split(",") for one in who]
    sys.exit(asyncio.run(_play_all(scenes, together=together)))


async def _play_all(scenes: list[Scene], *, together: bool) -> int:
    one_by_one = asyncio.Semaphore(len(scenes) if together else 1)

    async def play_one(scene: Scene) -> bool:
        async with one_by_one:
            title = f"{scene.paused} stands still for {scene.for_s:g} s"
            try:
                outcome = await play(scene)
            except PodsLostError as lost:
                click.echo(f"{title}: {lost}")
                return False
            when = f"all of them {outcome.seen_after_s:.1f} s after waking"
            click.echo(f"{title}: {outcome.n_bound} pods bound once, {when}; {outcome.n_starts} starts")
            return True

    return int(not all(await asyncio.gather(*map(play_one, scenes))))


if __name__ == "__main__":
    main()
