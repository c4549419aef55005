"""What aws, gcloud and az list as JSON becomes a catalogue; prices come from a list of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.cli.main import main
from kubesched.k8s.errors import KubeschedError
from kubesched.planning.catalogue import Shape
from kubesched.planning.catalogue_files import catalogue_from

MI = 1 << 20


def of_aws(**changes: Any) -> dict[str, Any]:
    return {
        "InstanceType": "g5.2xlarge",
        "SupportedUsageClasses": ["on-demand", "spot"],
        "Hypervisor": "nitro",
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"], "Manufacturer": "AMD"},
        "VCpuInfo": {"DefaultVCpus": 8},
        "MemoryInfo": {"SizeInMiB": 32768},
        "InstanceStorageInfo": {"TotalSizeInGB": 450},
        "EbsInfo": {"MaximumEbsAttachments": 28, "AttachmentLimitType": "shared"},
        "NetworkInfo": {"MaximumNetworkInterfaces": 4, "Ipv4AddressesPerInterface": 15},
        "GpuInfo": {
            "Gpus": [{"Name": "A10G", "Manufacturer": "NVIDIA", "Count": 1, "MemoryInfo": {"SizeInMiB": 22888}}]
        },
        **changes,
    }


def of_gcloud(zone: str = "us-central1-a", **changes: Any) -> dict[str, Any]:
    return {
        "name": "a2-highgpu-1g",
        "guestCpus": 12,
        "memoryMb": 87040,
        "zone": zone,
        "architecture": "X86_64",
        "maximumPersistentDisks": 128,
        "accelerators": [{"guestAcceleratorType": "nvidia-tesla-a100", "guestAcceleratorCount": 1}],
        **changes,
    }


def of_azure(**changes: Any) -> dict[str, Any]:
    can = {
        "vCPUs": "4",
        "MemoryGB": "16",
        "CpuArchitectureType": "x64",
        "LowPriorityCapable": "True",
        "MaxDataDiskCount": "8",
        "MaxResourceVolumeMB": "153600",
        "GPUs": "1",
    }
    return {
        "resourceType": "virtualMachines",
        "name": "Standard_NC4as_T4_v3",
        "locations": ["EastUS"],
        "locationInfo": [{"location": "EastUS", "zones": ["2", "1"]}],
        "capabilities": [{"name": name, "value": value} for name, value in can.items()],
        "restrictions": [],
        **changes,
    }


def only_shape(document: Any) -> Shape:
    (shape,) = catalogue_from(document, "c.json").shapes
    return shape


def test_what_aws_lists() -> None:
    shape = only_shape({"InstanceTypes": [of_aws()]})
    memory_mib = int(32768 * 0.925) - (255 + 11 * 58) - 100
    assert dict(shape.allocatable) == {
        "cpu": "7910m",
        "memory": f"{memory_mib}Mi",
        "pods": "58",  # 4 interfaces with 15 addresses, of each the first is the node's; 2 more
        "nvidia.com/gpu": "1",
        "ephemeral-storage": "17Gi",
    }
    assert [(one.zone, one.capacity_type, one.price) for one in shape.offers] == [
        ("", "on-demand", None),
        ("", "spot", None),
    ]
    assert shape.labels["kubernetes.io/arch"] == "amd64"
    about = {key.removeprefix("karpenter.k8s.aws/instance-"): value for key, value in shape.labels.items()}
    assert (about["category"], about["family"], about["generation"], about["size"]) == ("g", "g5", "5", "2xlarge")
    assert (about["gpu-name"], about["gpu-count"], about["local-nvme"]) == ("a10g", "1", "450")
    assert shape.volume_limits == {"ebs.csi.aws.com": 26}


def test_a_list_cut_out_of_the_answer_is_read_too_without_mac_machines() -> None:
    mac = of_aws(InstanceType="mac2.metal", ProcessorInfo={"SupportedArchitectures": ["arm64_mac"]})
    assert only_shape([of_aws(), mac]).name == "g5.2xlarge"


def test_what_gcloud_lists() -> None:
    zone = "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-b"
    old = of_gcloud(name="n1-old", deprecated={"state": "OBSOLETE"})
    shape = only_shape([of_gcloud(), of_gcloud(zone), old])
    assert [one.zone for one in shape.offers] == ["us-central1-a", "us-central1-b"]
    assert shape.capacity == {"cpu": "12", "memory": "87040Mi", "pods": "110", "nvidia.com/gpu": "1"}
    assert shape.allocatable["cpu"] == "11900m"
    assert shape.labels["topology.kubernetes.io/region"] == "us-central1"
    assert shape.volume_limits == {"pd.csi.storage.gke.io": 127}
    assert only_shape([of_gcloud(bundledLocalSsds={"partitionCount": 2})]).capacity["ephemeral-storage"] == "750G"


def test_what_az_lists() -> None:
    disk = {"resourceType": "disks", "name": "Premium_LRS"}
    shape = only_shape([of_azure(), disk])
    assert [(one.zone, one.capacity_type) for one in shape.offers] == [
        ("eastus-1", "on-demand"),
        ("eastus-1", "spot"),
        ("eastus-2", "on-demand"),
        ("eastus-2", "spot"),
    ]
    assert (shape.allocatable["cpu"], shape.allocatable["nvidia.com/gpu"]) == ("3860m", "1")
    assert (shape.capacity["memory"], shape.capacity["ephemeral-storage"]) == ("15155Mi", "153600Mi")
    assert shape.volume_limits == {"disk.csi.azure.com": 8}


def test_what_a_subscription_may_not_use_is_left_out() -> None:
    closed = {"type": "Zone", "restrictionInfo": {"zones": ["1"]}}
    assert {one.zone for one in only_shape([of_azure(restrictions=[closed])]).offers} == {"eastus-2"}
    with pytest.raises(KubeschedError, match=r"c\.json: no shape in it"):
        catalogue_from([of_azure(restrictions=[{"type": "Location"}])], "c.json")


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([of_aws(VCpuInfo={})], "machine g5.2xlarge: VCpuInfo.DefaultVCpus: missing"),
        ([of_aws(VCpuInfo=3)], "machine g5.2xlarge: VCpuInfo.DefaultVCpus: missing"),
        ([of_aws(), {}], "machine 1: InstanceType: missing"),
        (
            [of_aws(MemoryInfo={"SizeInMiB": "much"})],
            "machine g5.2xlarge: MemoryInfo.SizeInMiB: 'much' is not expected",
        ),
        ([of_aws(GpuInfo={"Gpus": [{"Count": -1}]})], "machine g5.2xlarge: GpuInfo.Gpus[0].Count: -1 is not a number"),
        ([of_gcloud(memoryMb=0)], "machine a2-highgpu-1g: memoryMb: 0 is not a number of what a machine could have"),
        ([of_gcloud(accelerators=3)], "machine a2-highgpu-1g: accelerators: 3 is not expected there"),
        ([of_azure(capabilities=[])], "machine Standard_NC4as_T4_v3: capabilities.MemoryGB: None is not a number"),
        ([of_gcloud(memoryMb=200, guestCpus=1)], "machine a2-highgpu-1g: capacity: less than what is reserved"),
    ],
)
def test_what_is_wrong_is_told_with_file_machine_and_field(document: Any, problem: str) -> None:
    with pytest.raises(KubeschedError) as caught:
        catalogue_from(document, "c.json")
    expected = f"c.json: {problem}"
    assert str(caught.value)[: len(expected)] == expected


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@given(st.sampled_from([of_aws(), of_gcloud(), of_azure()]), st.data())
@settings(max_examples=300, deadline=None)
def test_a_damaged_list_is_read_or_told_about(entry: dict[str, Any], data: st.DataObject) -> None:
    damaged = json.loads(json.dumps(entry))
    inside = damaged
    while True:
        key = data.draw(st.sampled_from(sorted(inside) if isinstance(inside, dict) else range(len(inside))))
        if not isinstance(inside[key], dict | list) or not inside[key] or data.draw(st.booleans()):
            break
        inside = inside[key]
    inside[key] = data.draw(_ANYTHING)
    try:
        catalogue_from([entry, damaged], "c.json")
    except KubeschedError as problem:
        assert "\n" not in str(problem)


def test_prices_by_zone_make_the_offers(tmp_path: Path) -> None:
    machines, prices = tmp_path / "aws.json", tmp_path / "prices.csv"
    machines.write_text(json.dumps({"InstanceTypes": [of_aws()]}))
    prices.write_text("instanceType,zone,capacityType,hourly\ng5.2xlarge,a,spot,0.4\ng5.2xlarge,b,,1.2\n")
    result = CliRunner().invoke(main, ["catalogue", "convert", str(machines), "--prices", str(prices), "-o", "json"])
    assert (
        json.loads(result.stdout)["shapes"][0]["offers"]
        == [
            {"zone": "b", "capacityType": "on-demand", "price": "1.2"},
            {"zone": "a", "capacityType": "spot", "price": "0.4"},
            {"zone": "b", "capacityType": "spot", "price": "1.2"},
        ]
        or json.loads(result.stdout)["shapes"][0]["offers"]
    )


def test_a_plan_by_cost_needs_prices(tmp_path: Path) -> None:
    machines, pods = tmp_path / "aws.json", tmp_path / "pods.yaml"
    machines.write_text(json.dumps({"InstanceTypes": [of_aws()]}))
    pods.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n")
    asked = ["plan", "-f", str(pods), "--from-scratch", "--catalogue", str(machines)]
    result = CliRunner().invoke(main, asked)
    assert result.exit_code == 2
    assert result.stderr == f"error: {machines}: no offer has a price; give --prices, or --objective nodes\n"
    assert CliRunner().invoke(main, [*asked, "--objective", "nodes"]).exit_code == 0
