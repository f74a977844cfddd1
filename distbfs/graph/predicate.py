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
from functools import reduce
from typing import Any, TypeAlias

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
    ast.In: operator.eq,
    ast.NotIn: operator.eq,
}
Test: TypeAlias = Callable[[dict[str, Values]], Any]


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
            tree, names = ast.parse(text.strip(), mode="eval").body, list[str]()
            self._test = _compiled(tree, text, names)
            self.names = tuple(dict.fromkeys(names))
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
        flags: Marks = self._test(attributes)
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


def _compiled(node: ast.expr, text: str, names: list[str]) -> Test:
    """Return a function from attributes to the flags of a tree; add its names.

    Raises UsageError if the tree is not a predicate.
    """
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        test = _compiled(node.operand, text, names)
        return lambda held: ~test(held)
    join = operator.and_
    if isinstance(node, ast.BoolOp):
        join = operator.and_ if isinstance(node.op, ast.And) else operator.or_
        tests = [_compiled(item, text, names) for item in node.values]
    elif isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        pairs = zip(sides, node.ops, sides[1:], strict=False)
        tests = [_comparison(node, *pair, text, names) for pair in pairs]
    else:
        raise _refuse(node, text)
    return lambda held: reduce(join, (test(held) for test in tests))


def _comparison(
    node: ast.Compare,
    left: ast.expr,
    op: ast.cmpop,
    right: ast.expr,
    text: str,
    names: list[str],
) -> Test:
    """Return the test of one comparison of a chain; see ``_compiled``."""
    among, compare = isinstance(op, (ast.In, ast.NotIn)), COMPARE.get(type(op))
    turned = not among and not isinstance(left, ast.Name)
    if turned:
        left, right = right, left
    values = _members(right) if among else [_constant(right)]
    if not isinstance(left, ast.Name) or compare is None or values in (None, [None]):
        raise _refuse(node, text)
    name, members = left.id, values or []
    names.append(name)

    def in_order(column: Any, value: Any) -> Any:
        return compare(value, column) if turned else compare(column, value)

    def test(held: dict[str, Values]) -> Array:
        hits = [_compare(name, held[name], in_order, x, text) for x in members]
        if not among:
            return hits[0]
        no = np.zeros(len(held[name].array), dtype=np.bool_)
        some: Array = np.logical_or.reduce([no, *hits])
        return ~some if isinstance(op, ast.NotIn) else some

    return test


def _compare(
    name: str,
    held: Values,
    compare: Callable[[Any, Any], Any],
    value: Any,
    text: str,
) -> Array:
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
