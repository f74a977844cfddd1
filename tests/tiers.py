"""Which cases of parametrized tests a run has.

Usually: of each test so many that any three values of its parameters that meet in one
case of the product do so in one of the run.  ``--quick``: any two; or each value, of
two parameters, as all pairs of these are all cases, and where the device is emulated,
which takes long, but any two of a test that is marked ``pairs``; and none that is
marked ``thorough``: it takes long, and no mutation needs it.  ``--slice K``: with these
a quarter of the others, those whose name hashes to K, so that four runs see all.  Cases
are left out before they are collected, which takes as long as small tests; then whole
tests that are ``thorough``.
"""

from hashlib import blake2b

from covering import covering

SLICES = 4
EMULATED = "device"  # fixture of tests whose device is the CPU


def add_options(parser):
    group = parser.getgroup("tiers")
    group.addoption(
        "--quick", action="store_true", help="of parametrized tests, a covering sample"
    )
    group.addoption(
        "--slice",
        type=int,
        choices=range(SLICES),
        help=f"with --quick: also the cases of this slice of the others, of {SLICES}",
    )


def header(config):
    """What is left out, in a line, or None."""
    if not config.option.quick:
        return None
    part = config.option.slice
    if part is None:
        return "quick: a covering sample of all cases"
    return f"quick, and slice {part} of {SLICES} (--quick --slice {part}) of all cases"


def choose(metafunc):
    """Leave cases of one test out, as the options say."""
    options, calls = metafunc.config.option, metafunc._calls
    if len(calls) < 2:
        return
    calls[:] = sampled(calls, 3)
    if not options.quick:
        return
    short = [call for call in calls if not thorough(call)]
    pairs = metafunc.definition.get_closest_marker("pairs") is not None
    size = 2 if pairs or EMULATED not in metafunc.fixturenames else 1
    quick = {id(call) for call in sampled(short, size, fewer=not pairs)}
    name = metafunc.definition.nodeid
    calls[:] = [
        call
        for call in calls
        if id(call) in quick or slice_of(f"{name}[{call.id}]") == options.slice
    ]


def leave_out(config, items):
    """Leave out ``thorough`` tests of other slices, in place."""
    options, kept, left = config.option, [], []
    for item in items:
        stays = (
            not options.quick
            or item.get_closest_marker("thorough") is None
            or slice_of(item.nodeid) == options.slice
        )
        (kept if stays else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def thorough(call):
    return any(mark.name == "thorough" for mark in call.marks)


def slice_of(nodeid):
    return blake2b(nodeid.encode()).digest()[0] % SLICES


def sampled(calls, size, *, fewer=False):
    """Return cases in which any ``size`` values that meet do so; in their order.

    fewer: so many at most that cases of two parameters or more are left out
    """
    rows = [{x: value_of(call, x) for x in call.params} for call in calls]
    names = {x for row in rows for x in row}
    varied = [x for x in sorted(names) if len({row.get(x) for row in rows}) > 1]
    if fewer:
        size = min(size, len(varied) - 1)
    if not 0 < size <= len(varied):
        return calls
    rows = [{x: row[x] for x in varied if x in row} for row in rows]
    chosen = {id(row) for row in covering(rows, size)}
    return [call for call, row in zip(calls, rows, strict=True) if id(row) in chosen]


def value_of(call, name):
    """Return the value of a parameter; its place in the list where it has no hash."""
    value = call.params[name]
    try:
        hash(value)
    except TypeError:
        return call.indices[name]
    return type(value), value
