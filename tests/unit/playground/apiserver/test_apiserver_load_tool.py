"""The load measurement runs from an empty directory to a restart; how fast is not asserted."""

from __future__ import annotations

from pathlib import Path

from harness.apiserver_load.run import LoadSize, measure


def test_a_small_load_gives_all_figures(tmp_path: Path) -> None:
    found = measure(tmp_path, LoadSize(nodes=3, pods=8, watchers=2, connections=2))
    for name, count in (("create_nodes", 3), ("create_pods", 8), ("bind_json", 4), ("bind_protobuf", 4)):
        assert found[name]["count"] == count
    assert found["watch_list_pods"]["events"] == 8 + 1  # and the bookmark that ends them
    assert found["after_restart"]["list_pods"]["bytes"] > found["list_pods"]["bytes"]  # the pods are bound now
    assert {"patch_status", "memory_mb", "start_s", "restart_s"} <= set(found)
