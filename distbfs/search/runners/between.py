"""TEMPORARY until the branch `between` is merged."""

from typing import Any

from distbfs.engines.base import WHOLE
from distbfs.search.driver import Driver
from distbfs.search.parents import CarriedParents, ParentFinder
from distbfs.search.runners.base import Found


class BetweenDomains:
    mode = "stepwise"

    def __init__(self, world: Any, searches: Any, exchange: Any, options: Any) -> None:
        part = searches[0].part
        from distbfs.partition.layout import Placement

        placement = Placement(part.layout.parts, world.size)
        carried = exchange.on_device if hasattr(exchange, "on_device") else False
        finder: Any = (
            CarriedParents(exchange, searches)
            if carried
            else ParentFinder(world, placement, searches)
        )
        self._exchange = exchange
        self._driver = Driver(world, searches, exchange, options, finder)

    @property
    def trace(self) -> Any:
        return self._driver.trace

    @trace.setter
    def trace(self, trace: Any) -> None:
        self._driver.trace = trace

    def search(
        self,
        root: int,
        *,
        parents: bool = True,
        until: Any = WHOLE,
        stop: Any = None,
        records: bool = False,
    ) -> Found:
        r = self._driver.search(root, records=records, parents=parents, stop=stop)
        return Found(
            r.level,
            r.parent,
            r.levels,
            None,
            [x.as_dict() for x in r.records],
            r.seconds,
            r.parent_cost,
        )

    def describe(self) -> Any:
        return {"method": "parts", "mode": self.mode, "exchange": self._exchange.name}

    def close(self) -> None:
        self._exchange.close()
