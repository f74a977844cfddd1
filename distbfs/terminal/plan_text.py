"""What ``distbfs plan`` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from distbfs.build.cuda.room import LEAST_KEPT
from distbfs.plan.cost_model import CONSTANTS, Prediction
from distbfs.plan.memory import readable
from distbfs.plan.search_time import SearchTime
from distbfs.report.tables import print_fields, print_right, shown
from distbfs.search.domains import counted

GROUPS = ("stored", "building")
LABELS = {
    "stored": "stored arrays",
    "search": "search by openmp",
    "session": "session, at most",
    "process": "process, about",
    "building": "building, about",
    "disk": "on disk",
}


def room_words(about: Mapping[str, Any]) -> str:
    """Return the words for a GPU's memory where rows are split."""
    return f"{readable(about['have'])} ({readable(about['spare'])} of it kept free)"


def tails_words(tails: Mapping[str, Any], devices: int) -> str:
    """Return the words about a GPU's memory for the line about that GPU."""
    size = room_words(tails)
    if not tails["fits"]:
        needs = tails["needs"]
        host = f"{readable(needs['host'], needed=True)} of the host"
        if needs["device"] <= tails["have"]:
            kept = shown(tails["kept"])
            return f"; in {size} with {kept} columns of a row, but not {host}"
        words = f"; {LEAST_KEPT} columns of a row do not fit in {size}, but in "
        return f"{words}{readable(needs['device'], needed=True)}, with {host}"
    if tails["kept"] is None:
        return f"; fits in {readable(tails['have'])}"
    words = f"; in {size} with {shown(tails['kept'])} columns of a row, and about "
    words += f"{readable(tails['host'])} of the host"
    return words if devices == 1 else f"{words} for all of them"


def link_line(tails: Mapping[str, Any] | None, where: str) -> str:
    """Return the line about what a GPU reads of tails, "" where it reads none.

    where: what searches
    """
    if tails is None or tails["link"] is None:
        return ""
    link = tails["link"]
    return (
        f"over the link to the host, {where}: about {readable(link['bytes'])} a search "
        f"for each GPU, {1e3 * link['seconds']:.4g} ms ({link['columns']:.3g} columns "
        f"of {link['visits']:.3g} tails)"
    )


def gpu_line(
    sizes: Mapping[str, int] | None,
    tails: Mapping[str, Any] | None,
    devices: int = 1,
) -> str:
    """Return the line about engine xbfs on one GPU, or on each of a domain."""
    what = "device memory of one GPU search"
    if devices > 1:
        what = f"device memory of each GPU of a domain of {devices}"
    if sizes is None:
        return f"{what}: none, as a GPU has up to 2^32 vertices"
    size = {name: readable(count) for name, count in sizes.items()}
    line = (
        f"{what}: at most {size['total']} (graph {size['graph']}, search by xbfs "
        f"{size['search']})"
    )
    return line if tails is None else line + tails_words(tails, devices)


def validation_line(sizes: Mapping[str, int]) -> str:
    """Return the line about validation on GPUs."""
    shown = {name: readable(size) for name, size in sizes.items()}
    line = (
        f"validation on each GPU besides results: about {shown['table']}, or "
        f"{shown['asked']} where that is not free"
    )
    if sizes["mailbox"]:
        line += f"; and a mailbox of {shown['mailbox']} for the other ranks of the host"
    return line


def part_line(sizes: Mapping[str, Any]) -> str:
    """Return the line about one part on a GPU."""
    names = ("graph", "numbering", "inner", "search", "messages", "streams")
    items = ", ".join(f"{name} {readable(sizes[name])}" for name in names)
    where = "a domain of its own"
    if sizes["domain"] > 1:
        where = f"in domains of {sizes['domain']}"
    line = f"device memory of a part on a GPU, {where}: about "
    line += f"{readable(sizes['total'])} to build it, "
    line += f"{readable(sizes['searching'])} to search it ({items})"
    if sizes["fits"] is None:
        return line
    have = readable(sizes["have"])
    if not sizes["fits"]:
        line += f"; does not fit in {have}"
        if "needs" in sizes:
            needs = {k: readable(x, needed=True) for k, x in sizes["needs"].items()}
            line += f", but in {needs['device']}, with {needs['host']} of its host"
        return line
    if sizes["host"]:
        kept = "all" if sizes["kept"] is None else shown(sizes["kept"])
        line += f"; in {room_words(sizes)} with {kept} columns of a row, and about "
        line += f"{readable(sizes['host'])} of its host"
        if sizes["outer_on_host"]:
            line += ", where its edges to other parts are"
    else:
        line += f"; fits in {have}"
    if sizes["host_building"]:
        line += f"; built with {readable(sizes['host_building'])} of its host"
    return line


def print_search(time: SearchTime) -> None:
    """Print the predicted time of engine xbfs, term by term."""
    layout, exchange = time.layout, time.exchange
    where = "1 domain" if layout.domains == 1 else f"{shown(layout.domains)} domains"
    where += f" of {counted(layout.devices)}"
    if exchange is not None:
        where += f", exchange {exchange.name}"
        where += " between hosts" if exchange.hosts else " inside a host"
        where += f", levels begun by {'devices' if layout.streamed else 'hosts'}"
    click.echo()
    click.echo(
        f"engine xbfs on {time.device.name}, {where}: "
        f"about {time.seconds * 1e3:.4g} ms a search, {time.teps / 1e9:.4g} GTEPS"
    )
    rows = [[name, f"{1e3 * seconds:.3f}"] for name, seconds in time.terms.items()]
    print_right(("term", "ms"), [*rows, ["all", f"{1e3 * time.seconds:.3f}"]])
    if time.bytes:
        sent = ", ".join(f"{name} {readable(x)}" for name, x in time.bytes.items())
        click.echo(f"a device sends in a search: {sent}")
    if time.link is not None:
        tails = f"{readable(time.link.bytes)} of tails in host memory"
        click.echo(f"a device reads in a search: {tails}")
    used = [
        f"{name} {x['value']:.3g} ({x['origin'].partition(':')[0]})"
        for name, x in time.constants().items()
    ]
    click.echo(f"constants: {', '.join(used)}")


def print_model(model: Prediction) -> None:
    """Print what the cost model says, level by level."""
    constants = model.constants
    values = {
        "rate": f"{constants.rate:.3g} visits/s a device",
        "bandwidth": f"{constants.bandwidth / 1e9:.4g} GB/s between ranks",
        "latency": f"{constants.latency * 1e6:.3g} us a level",
        "finish": f"{constants.finish * 1e12:.3g} ps a vertex of a device at the end",
    }
    click.echo()
    click.echo(
        f"cost model (Pan et al. 2018, Section V), p_rank {shown(model.counts.ranks)}: "
        f"about {model.seconds * 1e3:.4g} ms a search, {model.teps / 1e9:.4g} GTEPS"
    )
    used = [f"{values[name]} ({constants.origin[name]})" for name in CONSTANTS]
    click.echo(f"with {', '.join(used)}")
    times = ("work", "masks", "normals", "latency", "seconds")
    rows = []
    for x in model.levels:
        sent = (readable(x.mask_bytes), readable(x.normal_bytes))
        spent = [f"{getattr(x, name) * 1e3:.3f}" for name in times]
        rows.append([str(x.level), f"{x.visits:.3g}", *sent, *spent])
    rows.append(["end", *[""] * 7, f"{model.finish * 1e3:.3f}"])
    sent = (readable(model.total("mask_bytes")), readable(model.total("normal_bytes")))
    spent = [f"{model.total(name) * 1e3:.3f}" for name in times[:-1]]
    spent.append(f"{model.seconds * 1e3:.3f}")
    rows.append(["all", f"{model.total('visits'):.3g}", *sent, *spent])
    heads = ("level", "visits a device", "mask bytes", "normal bytes")
    print_right((*heads, "work", "masks", "normals", "latency", "all, ms"), rows)


def print_thresholds(plan: Mapping[str, Any]) -> None:
    """Print what a search between the parts takes at thresholds, side by side."""
    volumes, times = ("masks", "normals", "parents"), ("work", "latency")
    rows = []
    for x in plan["thresholds"]:
        sent, spent = x["bytes"], x["seconds"]
        wire = sum(spent[name] for name in volumes)
        ms = (wire, *(spent[name] for name in times), x["total"])
        chosen = "*" if x["threshold"] == plan["threshold"] else ""
        rows.append(
            [
                f"{chosen}{x['threshold']}",
                f"{x['delegates'] / plan['n']:.3%}",
                f"{x['outer_edges'] / max(plan['m'], 1):.1%}",
                *(readable(sent[name]) for name in volumes),
                *(f"{1e3 * seconds:.3f}" for seconds in ms),
            ]
        )
    click.echo()
    click.echo(
        "TH, by expected counts of a search between domains: what a part sends, and "
        "the time besides that of inner edges (* planned)"
    )
    heads = ("TH", "delegates, of n", "outer edges, of m", *volumes, "wire", *times)
    print_right((*heads, "all, ms"), rows)


def shown_devices(plan: Mapping[str, Any]) -> str:
    """Return the number of devices, and how many a domain has if several."""
    devices, domain = plan["devices"], plan["domain"]
    return str(devices) if domain == 1 else f"{devices}, in domains of {domain}"


def print_plan(
    plan: Mapping[str, Any], model: Prediction, time: SearchTime | None
) -> None:
    """Print a plan for people."""
    about = "" if plan["exact"] else "about "
    nn = f"{about}{shown(plan['nn'])}, {plan['nn'] / max(plan['m'], 1):.1%} of m"
    delegates = f"{about}{shown(plan['delegates'])}"
    delegates += f"; at most 4n/p = {shown(plan['delegates_allowed'])}: "
    delegates += "holds" if plan["delegates_hold"] else "does not hold"
    print_fields(
        {
            "graph": plan["graph"],
            "figures": plan["basis"],
            "devices p": shown_devices(plan),
            "vertices n": plan["n"],
            "stored edges m": about + shown(plan["m"]),
            "threshold TH": f"{shown(plan['threshold'])}, {plan['threshold_origin']}",
            "delegates d": delegates,
            "nn edges": nn,
            "formula": f"8n + 8dp + 4m + 4|Enn| = {readable(plan['formula_bytes'])}",
        }
    )
    click.echo()
    one = "largest device" if plan["exact"] else "a device"
    rows = []
    for name, size in plan["device"].items():
        if name in GROUPS:
            rows.append([""] * 3)
        label = LABELS.get(name, name.replace("_", " "))
        rows.append([label, readable(size), readable(plan["total"][name])])
    print_right(("bytes", one, "all devices"), rows)
    click.echo()
    host = plan["host"]
    click.echo(
        f"this machine: {readable(host['memory'])} ({host['limit']}), "
        f"{host['devices']} of {plan['devices']} devices on a host"
    )
    for name in ("searching", "building"):
        fits = "fits" if host[f"{name}_fits"] else "does not fit"
        click.echo(f"  {name} needs {readable(host[name])}: {fits}")
    click.echo(gpu_line(plan["gpu_search"], plan["gpu_search_tails"]))
    links = [link_line(plan["gpu_search_tails"], "one GPU")]
    if plan["gpu_domain"] is not None:
        tails = plan["gpu_domain_tails"]
        click.echo(gpu_line(plan["gpu_domain"], tails, plan["devices"]))
        links.append(link_line(tails, f"a domain of {plan['devices']}"))
    click.echo(part_line(plan["gpu_part"]))
    if plan["devices"] > plan["domain"]:
        links.append(link_line(plan["gpu_part"], "several domains"))
    for line in filter(None, links):
        click.echo(line)
    if symmetric := plan["gpu_part"]["symmetric"]:
        click.echo(
            f"boxes of other parts with exchange nvshmem: about {readable(symmetric)} "
            "more on each GPU"
        )
    click.echo(validation_line(plan["gpu_validation"]))
    click.echo(f"building is the {plan['building_basis']}")
    for note in plan["notes"]:
        click.echo(f"note: {note}")
    if plan["thresholds"]:
        print_thresholds(plan)
    if time is not None:
        print_search(time)
    print_model(model)
