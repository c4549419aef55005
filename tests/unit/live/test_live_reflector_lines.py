"""What a live scheduler logs of its lists and watches: for the kinds of kube-scheduler v1.36, what that one logs."""

from __future__ import annotations

import logging

import pytest
from live_copies import scheduling, tell

from harness.scripted_server import ScriptedServer

TYPES = [
    "*v1.CSIDriver",
    "*v1.CSINode",
    "*v1.CSIStorageCapacity",
    "*v1.DeviceClass",
    "*v1.Namespace",
    "*v1.Node",
    "*v1.PersistentVolume",
    "*v1.PersistentVolumeClaim",
    "*v1.Pod",
    "*v1.PodDisruptionBudget",
    "*v1.ReplicaSet",
    "*v1.ReplicationController",
    "*v1.ResourceClaim",
    "*v1.ResourceSlice",
    "*v1.Service",
    "*v1.StatefulSet",
    "*v1.StorageClass",
    "*v1.VolumeAttachment",
]
"""As in the log of a kube-scheduler v1.36.4 at -v 4."""

LEVELS = {"Starting reflector": 3, "Listing and watching": 3, "Caches populated": 2, "Stopping reflector": 3}


def test_each_kind_is_told_of_once_from_its_start_to_its_stop(caplog: pytest.LogCaptureFixture) -> None:
    async def story(server: ScriptedServer) -> None:
        async with scheduling(server):
            pass

    with caplog.at_level(logging.INFO):
        tell(story)
    for message, v in LEVELS.items():
        lines = [record for record in caplog.records if record.getMessage() == message]
        assert sorted(record.__dict__["fields"]["type"] for record in lines) == TYPES, message
        assert {record.__dict__["fields"]["reflector"] for record in lines} == {"kube-scheduler"}
        assert {record.__dict__["v"] for record in lines} == {v}
