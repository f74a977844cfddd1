"""Answers as bytes: a line of JSON, followed by NumPy arrays.

In the JSON text, ``{"npy": k}`` stands for an array of the answer: the k-th of those
that follow the line, each a complete ``.npy`` file. Arrays are never converted to text,
and are sent without a copy.
"""

from __future__ import annotations

from io import BufferedIOBase, BytesIO

import msgspec
import numpy as np

from distbfs.types import Array

MEDIA_TYPE = "application/vnd.distbfs.npy"
PLACE = {"npy"}
ENCODER = msgspec.json.Encoder()

Buffer = bytes | memoryview


def encode(answer: object) -> list[Buffer]:
    """Return a line and the arrays that follow, which share the answer's memory."""
    try:
        return [ENCODER.encode(answer) + b"\n"]
    except TypeError:  # it has arrays
        return _with_arrays(answer)


def _with_arrays(answer: object) -> list[Buffer]:
    """Return a line and the arrays that follow; TypeError for values of other types."""
    arrays: list[Array] = []

    def place(value: object) -> dict[str, int]:
        if not isinstance(value, np.ndarray):
            raise TypeError(f"{type(value).__name__} in an answer")
        arrays.append(value)
        return {"npy": len(arrays) - 1}

    buffers: list[Buffer] = [msgspec.json.encode(answer, enc_hook=place) + b"\n"]
    for array in map(np.ascontiguousarray, arrays):
        head = BytesIO()
        about = np.lib.format.header_data_from_array_1_0(array)
        np.lib.format.write_array_header_1_0(head, about)
        buffers += head.getvalue(), array.reshape(-1).view(np.uint8).data
    return buffers


def decode(line: bytes, stream: BufferedIOBase) -> object:
    """Return the answer of a line, with its arrays, which follow it in the stream.

    Raises ValueError if the line or an array is invalid.
    """
    answer = msgspec.json.decode(line)
    if isinstance(answer, dict):
        for name, value in answer.items():
            if isinstance(value, dict) and value.keys() == PLACE:
                answer[name] = np.lib.format.read_array(stream, allow_pickle=False)
    return answer
