"""Many searches of domains whose devices are the CPU: inside and through sessions."""

import numpy as np
from device_parts import LARGE, device_parts
from directed_between import directed_parts
from drawn_examples import examples
from graphs import sources
from hypothesis import strategies as st
from resident_parts import device_searches
from sessions import open_tuples
from test_between_kernels import StreamedThreads
from worlds import ThreadExchange, on_ranks

from distbfs.build.cuda import inner_domains
from distbfs.multisearch.part_messages import PartMessages
from distbfs.options import ExchangeOptions
from distbfs.partition.layout import Placement
from distbfs.search.choose import Request
from distbfs.search.domains import split_by_domain

# the rank of each device of each domain
PLACEMENTS = {
    "one": ((0,),),
    "two of one rank": ((0,), (0,)),
    "two ranks": ((0,), (1,)),
    "three ranks": ((0,), (1,), (2,)),
    "four of two ranks": ((0,), (1,), (0,), (1,)),
    "pairs of a rank": ((0, 0), (1, 1)),
    "pairs of ranks": ((0, 1), (2, 3)),
    "two and one": ((0, 0), (1,)),
    "three and two of a rank": ((0, 0, 0), (0, 0)),
}


# decorators of a test of any graph, in domains of all kinds
few_examples = examples(15)
ANY_DOMAINS = {
    "source": sources(),
    "owners": st.sampled_from(list(PLACEMENTS.values())),
    "threshold": st.sampled_from([0, 1, 3, LARGE]),
    "kind": st.sampled_from([ThreadExchange, StreamedThreads]),
}


def searching(source, owners, threshold, kind, work, **options):
    """Return work(world, searches, members) of each rank; kind: of exchange.

    Offsets of every second share have 64 bits.
    """
    placement = Placement.of_domains(owners, 1 + max(x for own in owners for x in own))
    make = directed_parts if source.directed else device_parts
    placed = make(source, placement.parts, threshold=threshold)

    def rank(world):
        domain, own = split_by_domain(world, placement), placement.parts_of(world.rank)
        every = list(placement.places_of(world.rank).values())
        groups = [[placed[own[place]] for place in places] for places in every]
        made = inner_domains.inner_domains(
            groups, placement.domains, domain, world, None
        )
        shares = {}
        for places, some in zip(every, made, strict=True):
            shares.update(zip(places, some, strict=True))
        for share in (shares[place] for place in shares if own[place] % 2):
            object.__setattr__(
                share.out, "offsets", share.out.offsets.astype(np.uint64)
            )
        members = [shares[place] for place in sorted(shares)]
        messages = None
        if len(owners) > 1:
            d = len(placed[0].delegates)
            facts = {"on_device": True}
            exchange = kind(world, placement, d, ExchangeOptions(), **facts)
            messages = PartMessages(world, placement, [0] * len(own), exchange)
        searches = device_searches(world, members, messages=messages, **options)
        result = work(world, searches, members)
        searches.close()
        return result

    return on_ranks(placement.ranks, rank)


# hosts of ranks, devices of each rank, devices of a domain that are asked for
FORMS = {
    "a device": ("a", (1,), None),
    "a domain": ("a", (3,), None),
    "domains of a rank": ("a", (4,), 1),
    "pairs of a rank": ("a", (4,), 2),
    "unequal domains of a rank": ("a", (3,), 2),
    "a domain of ranks": ("aaa", (1, 1, 1), None),
    "ranks": ("aa", (1, 1), 1),
    "four ranks": ("aabb", (1, 1, 1, 1), 1),
    "hosts": ("aabb", (1, 1, 1, 1), None),
    "unequal hosts": ("abb", (1, 1, 1), None),
}


def session_of(world, source, domain, threshold):
    return open_tuples(
        source,
        world=world if world.size > 1 else None,
        request=Request(domain=domain, divided=True),
        threshold=threshold,
        directed=source.directed,
        engine="xbfs",
        parents=False,
    )


def by_id(world, members, arrays):
    """Join values of members by local id, on all ranks."""
    out = np.zeros(members[0].layout.n, dtype=arrays[0].dtype)
    for member, values in zip(members, arrays, strict=True):
        ids = member.layout.global_of(member.index, np.arange(len(values)))
        out[ids] = values
    return world.allreduce(out)
