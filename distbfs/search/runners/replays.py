"""Launches on streams, captured as CUDA graphs and replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from contextlib import AbstractContextManager

    Here = Callable[[int], AbstractContextManager[None]]


class Replays:
    """Launches on streams, as CUDA graphs once captured.

    streams: the streams, each with graphs of its own; if there are none, nothing is
    captured
    here: returns a context in which a stream and its device are current
    wait: waits for an event of a stream
    """

    def __init__(
        self, streams: Sequence[Any], here: Here, wait: Callable[[Any], None]
    ) -> None:
        self._streams, self._here, self._wait = streams, here, wait
        self._running = False  # a graph may be
        self._graphs: dict[Hashable, list[Any]] = {}
        self._forms: set[Hashable] = set()  # considered for capture before

    def __call__(
        self, kind: Hashable, form: Hashable, launch: Callable[[], None]
    ) -> None:
        """Call or replay ``launch``.

        kind, form: key of its graph; if form is None, it is never replayed
        """
        graphs = self._graphs.get((kind, form))
        if graphs is None:
            self.land()
            launch()
            return
        self._running = True
        if len(graphs) == 1:
            graphs[0].launch(self._streams[0])
        else:
            self._each(lambda place, stream: graphs[place].launch(stream))

    def land(self) -> None:
        """Wait for graphs, before launches that are not captured.

        Otherwise NCCL might send messages of the launches to other hosts before those
        of graphs, since the commands turn off ``NCCL_GRAPH_MIXING_SUPPORT``, which
        would slow each launch.
        """
        if not self._running:
            return
        self._running = False
        events: list[Any] = []
        self._each(lambda _, stream: events.append(stream.record()))
        for event in events:
            self._wait(event)

    def lacks(self, form: Hashable) -> bool:
        """Return whether to capture launches of a form: True once for each form."""
        lacks = bool(self._streams) and form not in self._forms
        self._forms.add(form)
        return lacks

    def capture(
        self, kind: Hashable, form: Hashable, launch: Callable[[], None]
    ) -> None:
        """Capture the launches of ``launch`` unless done before; see ``__call__``.

        Run a similar launch before, because a capture cannot create objects on first
        use.
        """
        if (kind, form) in self._graphs:
            return
        graphs: list[Any] = []
        self._each(lambda _, stream: stream.begin_capture())
        try:
            launch()
        finally:
            self._each(lambda _, stream: graphs.append(stream.end_capture()))
        self._each(lambda place, stream: graphs[place].upload(stream))
        self._graphs[kind, form] = graphs

    def forget(self) -> None:
        """Free all graphs, because later launches differ."""
        self._graphs.clear()
        self._forms.clear()

    def _each(self, do: Callable[[int, Any], object]) -> None:
        """Call do(place, stream) for each stream, made current."""
        for place, stream in enumerate(self._streams):
            with self._here(place):
                do(place, stream)
