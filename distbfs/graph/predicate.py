"""Predicates over attributes of edges: ``weight < 3 and kind in ("road", "rail")``.

Python's own parser parses a text; this module evaluates the tree and never executes it.
Allowed are comparisons of attributes with numbers and texts, also in chains
(``1 <= weight < 3``), ``in`` and ``not in`` with several of these values, ``and``,
``or``, ``not`` and brackets.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from distbfs.errors import UsageError, WrongTypeError
from distbfs.formats.attributes import Values
from distbfs.options import type_name
from distbfs.types import Array, Marks

LONGEST = 4096  # characters
ALLOWED = "comparisons of attributes with numbers and text, and, or, not, in"
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
}


class Predicate:
    """A condition on the attributes of edges.

    text: the condition as the user wrote it; names: the attributes in it, in order

    >>> edges = {"weight": Values(np.array([1, 5, 2]))}
    >>> Predicate("weight < 3").of(edges, 3)
    array([ True, False,  True])
    """

    def __init__(self, text: str) -> None:
        """Parse a text; UsageError if it is not a predicate."""
        if not isinstance(text, str):
            raise WrongTypeError(f"where is of type {type_name(text)}; allowed: text")
        self.text = text
        if len(text) > LONGEST:
            raise UsageError(f"where has {len(text)} characters; allowed: {LONGEST}")
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
            self.names = tuple(dict.fromkeys(_check(self._tree, text)))
        except UsageError:  # a subclass of ValueError
            raise
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            raise UsageError(f"where {text!r:.80} does not parse") from error

    def __repr__(self) -> str:
        return f"Predicate({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Predicate) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def of(self, attributes: dict[str, Values], count: int) -> Marks:
        """Evaluate the predicate for edges, bool [count].

        attributes: arrays [count] by name, at least those of ``names``. Numbers take
        the type of the column that they are compared with, as in NumPy and pandas. A
        comparison with a missing value (NaN) is False, except ``!=``. Raises UsageError
        if text is compared with numbers.
        """
        flags: Marks = _flags(self._tree, attributes, self.text)
        return np.broadcast_to(flags, (count,))


def _refuse(node: ast.AST, text: str) -> UsageError:
    part = ast.unparse(node)
    return UsageError(f"where {text!r:.80}: {part:.40} is not allowed; only {ALLOWED}")


def _constant(node: ast.expr) -> Any:
    """Return the number or text of a constant node, None for other nodes."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        sign, node = (-1 if isinstance(node.op, ast.USub) else 1), node.operand
        if not isinstance(node, ast.Constant) or isinstance(node.value, str):
            return None
    if not isinstance(node, ast.Constant):
        return None
    value = node.value
    if isinstance(value, (str, bool)):
        return value
    return sign * value if isinstance(value, (int, float)) else None


def _members(node: ast.expr) -> list[Any] | None:
    """Return the constants of a tuple, list or set node, None for other nodes."""
    if not isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return None
    values = [_constant(item) for item in node.elts]
    return None if None in values else values


def _pairs(node: ast.Compare) -> list[tuple[ast.expr, ast.cmpop, ast.expr]]:
    """Return the comparisons of a chain as (left, operator, right)."""
    sides = [node.left, *node.comparators]
    return list(zip(sides, node.ops, sides[1:], strict=False))


def _check(node: ast.expr, text: str) -> list[str]:
    """Return the names in a tree; raise UsageError if it is not a predicate."""
    if isinstance(node, ast.BoolOp):
        return [name for item in node.values for name in _check(item, text)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _check(node.operand, text)
    if not isinstance(node, ast.Compare):
        raise _refuse(node, text)
    names = []
    for left, op, right in _pairs(node):
        if isinstance(op, (ast.In, ast.NotIn)):
            if not isinstance(left, ast.Name) or _members(right) is None:
                raise _refuse(node, text)
            names.append(left.id)
            continue
        sides = [x.id for x in (left, right) if isinstance(x, ast.Name)]
        others = [x for x in (left, right) if not isinstance(x, ast.Name)]
        if len(sides) != 1 or type(op) not in COMPARE or _constant(others[0]) is None:
            raise _refuse(node, text)
        names += sides
    return names


def _flags(node: ast.expr, attributes: dict[str, Values], text: str) -> Any:
    if isinstance(node, ast.BoolOp):
        join = operator.and_ if isinstance(node.op, ast.And) else operator.or_
        flags = _flags(node.values[0], attributes, text)
        for item in node.values[1:]:
            flags = join(flags, _flags(item, attributes, text))
        return flags
    if isinstance(node, ast.UnaryOp):
        return ~_flags(node.operand, attributes, text)
    if not isinstance(node, ast.Compare):
        raise _refuse(node, text)
    parts = [_comparison(*pair, attributes, text) for pair in _pairs(node)]
    return np.logical_and.reduce(parts)


def _comparison(
    left: ast.expr,
    op: ast.cmpop,
    right: ast.expr,
    attributes: dict[str, Values],
    text: str,
) -> Array:
    kind = type(op)
    if isinstance(left, ast.Name):
        name, other = left.id, right
    else:
        name, other, kind = right.id, left, TURNED[kind]  # type: ignore[attr-defined]
    if kind in (ast.In, ast.NotIn):
        members = _members(other) or []
        hits = [_compare(name, attributes, operator.eq, x, text) for x in members]
        no = np.zeros(len(attributes[name].array), dtype=np.bool_)
        some: Array = np.logical_or.reduce([no, *hits])
        return ~some if kind is ast.NotIn else some
    return _compare(name, attributes, COMPARE[kind], _constant(other), text)


def _compare(
    name: str,
    attributes: dict[str, Values],
    compare: Callable[[Any, Any], Any],
    value: Any,
    text: str,
) -> Array:
    held = attributes[name]
    if isinstance(value, str) != (held.words is not None):
        wants = "text" if held.words is not None else "a number"
        raise UsageError(
            f"where {text!r:.80}: {name:.40} can only be compared with {wants}"
        )
    if held.words is None:
        try:
            with np.errstate(over="ignore"):  # it is infinite in the type of the column
                flags: Array = np.asarray(compare(held.array, value))
        except OverflowError as error:
            raise UsageError(
                f"where {text!r:.80}: {value!s:.20}… is beyond 1.8e308, the largest of "
                f"{name:.40}"
            ) from error
        return flags
    words = np.array([bool(compare(word, value)) for word in held.words], np.bool_)
    return words[held.array] if len(words) else np.zeros(len(held.array), np.bool_)
