"""Which exchange ranks take, and which they refuse with one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import device_stand_in
import pytest

from distbfs.errors import DeviceMissing, LaunchError, UsageError
from distbfs.exchange import cuda_aware, symmetric
from distbfs.exchange import nccl_link as link
from distbfs.exchange import peer_memory as peers
from distbfs.exchange.cuda_aware import (
    CudaAwareExchange,
    kinds_have_cuda,
    missing_proof,
)
from distbfs.exchange.nccl import NcclExchange
from distbfs.options import ExchangeOptions
from distbfs.partition.layout import Placement
from distbfs.ranks.mpi import MpiWorld
from distbfs.search.domains import choose_exchange

if TYPE_CHECKING:
    from distbfs.ranks.world import Ranks


PLAIN = ExchangeOptions()


def install(world: Ranks, monkeypatch: pytest.MonkeyPatch, uuid: int) -> None:
    comm = world.comm.Dup() if world.size > 1 else None
    device_stand_in.install(monkeypatch, comm, uuid)


def no_nccl() -> None:
    raise DeviceMissing("CuPy finds no NCCL")


def make(
    kind: type, world: Ranks, chosen: ExchangeOptions = PLAIN, *, on_device: bool = True
) -> None:
    placement = Placement(world.size, world.size)
    kind(world, placement, 10, chosen, on_device=on_device)


@pytest.mark.parametrize("on_device", [False, True])
def test_auto(world: Ranks, on_device: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    install(world, monkeypatch, uuid=world.rank)
    name, why = choose_exchange(world, "auto", [0] if on_device else [])
    if world.size == 1:
        assert (name, why) == ("host", "one rank")
    elif on_device:
        assert name == "nccl"
        assert why == "exchange nccl: no two ranks share a device"
    else:
        assert (name, why) == ("host", "arrays are in host memory")


def test_a_name_is_taken_as_it_is(world: Ranks) -> None:
    for name, devices in (("host", []), ("host", [0]), ("nccl", [0])):
        wanted = (name, f"exchange {name} as requested")
        assert choose_exchange(world, name, devices) == wanted


@pytest.mark.parametrize("name", ["nccl", "cuda_aware"])
def test_names_for_devices_alone(world: Ranks, name: str) -> None:
    wanted = f"'{name}' is for parts on devices; allowed: auto, host$"
    with pytest.raises(UsageError, match=wanted):
        choose_exchange(world, name)


def test_an_unknown_name(world: Ranks) -> None:
    with pytest.raises(
        UsageError, match="unknown exchange 'p2p'; allowed: cuda_aware, host"
    ):
        choose_exchange(world, "p2p", [0])


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("missing", ["", "peers", "library"])
def test_auto_where_a_search_may_be_one_launch(
    world: Ranks, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NVSHMEM is taken where it is installed and devices map each other's memory."""
    install(world, monkeypatch, uuid=world.rank)
    some = {name: "no" if name == missing else "" for name in ("peers", "library")}
    monkeypatch.setattr(peers, "peer_problem", lambda *_: some["peers"])
    monkeypatch.setattr(symmetric, "nvshmem_problem", lambda _: some["library"])
    taken = "nccl" if missing else "nvshmem"
    streams = Placement(world.size, world.size)
    assert choose_exchange(world, "auto", [0], streams)[0] == taken
    assert choose_exchange(world, "auto", [0])[0] == "nccl"


@pytest.mark.mpi(min_size=2)
def test_auto_where_one_rank_has_several_devices(
    world: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Levels on streams use all of them, and all ranks know it alike."""
    install(world, monkeypatch, uuid=world.rank)
    devices = [0, 1] if world.rank == 1 else [0]
    owners = [(rank,) * (1 + (rank == 1)) for rank in range(world.size)]
    streams = Placement.of_domains(owners, world.size)
    assert choose_exchange(world, "auto", devices, streams)[0] == "nccl"
    wanted = ("host", "exchange host: rank 1: it has 2 devices")
    assert choose_exchange(world, "auto", devices) == wanted
    world.barrier()


@pytest.mark.mpi(min_size=2)
def test_auto_with_a_shared_device(
    world: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last two ranks have the same one."""
    install(world, monkeypatch, uuid=min(world.rank, world.size - 2))
    text = f"ranks {world.size - 2} and {world.size - 1} use the same device"
    name, why = choose_exchange(world, "auto", [0])
    assert name == "host"
    assert why.startswith(f"exchange host: {text}")
    with pytest.raises(LaunchError, match=text) as caught:
        make(NcclExchange, world)
    assert "--exchange host" in str(caught.value)


@pytest.mark.mpi(min_size=2)
def test_one_rank_without_nccl_is_enough(
    world: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(world, monkeypatch, uuid=world.rank)
    if world.rank == 1:
        monkeypatch.setattr(link, "load_nccl", no_nccl)
    wanted = "exchange host: rank 1: CuPy finds no NCCL"
    assert choose_exchange(world, "auto", [0]) == ("host", wanted)
    with pytest.raises(LaunchError, match="rank 1: CuPy finds no NCCL"):
        make(NcclExchange, world)


@pytest.mark.mpi(min_size=2)
def test_one_rank_without_peer_access_is_enough(
    world: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(world, monkeypatch, uuid=world.rank)
    far = "device 0 has no peer access to device 1" if world.rank == 1 else ""
    monkeypatch.setattr(peers, "access_problem", lambda devices: far)
    assert peers.peer_problem(world, [0]).startswith("rank 1: device 0 has no peer")


@pytest.mark.mpi(min_size=2)
def test_what_peers_wrote_is_looked_for(
    world: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(world, monkeypatch, uuid=world.rank)
    assert peers.peer_problem(world, [0]) == ""
    if world.rank == 1:
        runtime = peers.cuda.cupy().cuda.runtime
        monkeypatch.setattr(runtime, "memcpy", lambda *arguments: None)
    said = peers.peer_problem(world, [0])
    assert said == "rank 0: what other devices wrote did not arrive"


def test_one_communicator_for_all_exchanges(
    world: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(world, monkeypatch, uuid=world.rank)
    first = link.link_of(world)
    assert link.link_of(world) is first
    first.broken = world.rank == 0  # on one rank only
    again = link.link_of(world)
    assert again is not first
    assert not again.broken


def test_only_device_arrays(world: Ranks) -> None:
    for kind in (NcclExchange, CudaAwareExchange):
        with pytest.raises(UsageError, match="device memory only; allowed: host"):
            make(kind, world, on_device=False)


def test_cuda_aware_needs_a_proof(
    world: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(world, monkeypatch, uuid=world.rank)
    if missing_proof(world):
        with pytest.raises(LaunchError, match=r"'cuda_aware'.*--exchange host"):
            make(CudaAwareExchange, world)
        if world.size > 1:
            forced = ExchangeOptions("cuda_aware", trust_mpi=True)
            make(CudaAwareExchange, world, forced)
    if not isinstance(world, MpiWorld):
        assert missing_proof(world) == "there is no MPI in a single process"
        return
    from mpi4py import MPI  # noqa: PLC0415

    # the library of this test run is asked, and answers
    assert cuda_aware.query_cuda_support(MPI) in {None, False, True}
    for kinds, support, found in (
        ("mpi,system", None, "MPIX_Query_cuda_support is not there"),
        ("mpi,system", False, "MPIX_Query_cuda_support says no"),
        ("mpi,system", True, ""),
        ("mpi,cuda:device", False, ""),
    ):
        monkeypatch.setattr(cuda_aware, "memory_kinds", lambda comm, kinds=kinds: kinds)
        monkeypatch.setattr(cuda_aware, "query_cuda_support", lambda _, s=support: s)
        said = missing_proof(world)
        assert said.endswith(found)
        assert bool(said) is bool(found)


@pytest.mark.mpi(min_size=2)
def test_cuda_aware_needs_a_proof_on_all_ranks(
    world: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(world, monkeypatch, uuid=world.rank)
    said = "not here" if world.rank == 1 else ""
    monkeypatch.setattr(cuda_aware, "missing_proof", lambda world: said)
    with pytest.raises(LaunchError, match="rank 1: not here; use --exchange host, "):
        make(CudaAwareExchange, world)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", False),
        ("mpi,system", False),
        ("system,mpi,cuda", True),
        ("cuda:device", True),
        ("cuda:host:device , mpi", True),
        ("cuda:host", False),
        ("cuda:managed,rocm:device", False),
        ("cuda2", False),
    ],
)
def test_memory_kinds(text: str, expected: bool) -> None:
    assert kinds_have_cuda(text) is expected
