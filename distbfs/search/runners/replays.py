"""Launches on streams that are captured as CUDA graphs and launched again."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from contextlib import AbstractContextManager

    Here = Callable[[int], AbstractContextManager[None]]


class Replays:
    """What is launched on streams, as CUDA graphs once it was captured.

    streams: a graph for each; none: nothing is
    """

    def __init__(self, streams: Sequence[Any]) -> None:
        self._streams = streams
        self._graphs: dict[Hashable, list[Any]] = {}
        self._kinds: dict[Hashable, Hashable] = {}  # by form

    def __call__(
        self,
        kind: Hashable,
        form: Hashable,
        here: Here,
        launch: Callable[[], None],
    ) -> None:
        """Do ``launch``; kind, form: what it depends on; form None: just once.

        here: makes the device of a stream current
        """
        graphs = self._graphs.get((kind, form))
        if graphs is None:
            launch()
            return
        for place, (graph, stream) in enumerate(
            zip(graphs, self._streams, strict=True)
        ):
            with here(place):
                graph.launch(stream)

    def lacks(self, form: Hashable, kinds: Hashable) -> bool:
        """Return whether there may be something to capture.

        kinds: changes where there are more kinds than before
        """
        lacks = bool(self._streams) and self._kinds.get(form) != kinds
        self._kinds[form] = kinds
        return lacks

    def capture(
        self,
        kind: Hashable,
        form: Hashable,
        here: Here,
        launch: Callable[[], None],
    ) -> None:
        """Capture what ``launch`` does, unless that was done; see ``__call__``.

        What is made at first use must have been made: something like it has run.
        """
        if (kind, form) in self._graphs:
            return
        graphs, streams = [], self._streams
        for place, stream in enumerate(streams):
            with here(place):
                stream.begin_capture()
        try:
            with here(0) if len(streams) == 1 else nullcontext():
                launch()
        finally:
            for place, stream in enumerate(streams):
                with here(place):
                    graphs.append(stream.end_capture())
        for place, (graph, stream) in enumerate(zip(graphs, streams, strict=True)):
            with here(place):
                graph.upload(stream)
        self._graphs[kind, form] = graphs
