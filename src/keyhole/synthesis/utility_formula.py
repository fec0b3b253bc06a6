"""What a regression formula asks for: one column to explain, and terms made of others.

A formula is evaluated as Python by patsy. Only names of columns, arithmetic and a list of functions are let
through, so that a formula from elsewhere can do no harm.
"""

import ast
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from keyhole.errors import InputError, UnknownKeyVariable
from keyhole.io.extras import need
from keyhole.keys.columns import suggestion

CODINGS = ("C", "Treatment", "Sum", "Diff", "Helmert", "Poly")
TRANSFORMS = ("Q", "I", "center", "standardize", "scale", "bs", "cr", "cc", "te")
FUNCTIONS = frozenset(CODINGS + TRANSFORMS)
"""Functions of patsy that a formula may use."""

NUMPY = frozenset(("abs", "clip", "exp", "log", "log10", "log1p", "log2", "maximum", "minimum", "sign", "sqrt"))
"""Functions that a formula may use with ``np.`` before them."""

PLAIN = (
    ast.Constant, ast.List, ast.Tuple, ast.keyword, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.operator,
    ast.unaryop, ast.boolop, ast.cmpop, ast.Load,
)  # fmt: skip
"""Parts of an expression that need no look at their names."""


class Formula(NamedTuple):
    """A formula that was read: its parts as patsy has them, and the columns that it names.

    ``grouped`` are the columns inside ``C(...)``, whose numbers stand for groups.
    """

    text: str
    response: str
    terms: Any
    predictors: frozenset[str]
    grouped: frozenset[str]


def read_formula(text: str, columns: Sequence[str]) -> Formula:
    """Read a formula such as ``"Y ~ A + C(B) + np.log(X)"`` over columns of these names.

    Raises
    ------
    UnknownKeyVariable
        A name that is not a column.
    InputError
        A formula that cannot be read, or asks for more than a formula may.

    Examples
    --------
    >>> found = read_formula("Y ~ A + C(B):np.log(X)", ["A", "B", "X", "Y"])
    >>> found.response, sorted(found.predictors), sorted(found.grouped)
    ('Y', ['A', 'B', 'X'], ['B'])
    """
    patsy = need("patsy", "utility")
    try:
        parts = patsy.ModelDesc.from_formula(text)
    except patsy.PatsyError as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"The formula {text!r} cannot be read: {reason}. An example: 'Y ~ A + C(B)'.") from None
    reader = _Reader(text, columns)
    left = [reader.parse(factor.code) for term in parts.lhs_termlist for factor in term.factors]
    response = reader.one_column(left[0]) if len(left) == 1 else None
    if response is None:
        raise InputError(f"The formula {text!r} needs exactly one column to the left of '~': 'Y ~ A + B'.")
    reader.add_column(response)
    if not parts.rhs_termlist:
        raise InputError(f"The formula {text!r} has nothing to the right of '~': name a column there, or 1.")
    reader.columns.clear()
    for code in sorted({factor.code for term in parts.rhs_termlist for factor in term.factors}):
        reader.visit(reader.parse(code))
    for name in sorted(reader.columns & reader.functions):
        raise InputError(f"{name!r} is both a column and a function of the formula {text!r}: rename the column.")
    return Formula(text, response, parts.rhs_termlist, frozenset(reader.columns), frozenset(reader.grouped))


class _Reader(ast.NodeVisitor):
    """Collects the columns and functions of expressions, and refuses everything else."""

    def __init__(self, text: str, known: Sequence[str]) -> None:
        self.text = text
        self.known = known
        self.columns: set[str] = set()
        self.functions: set[str] = set()
        self.grouped: set[str] = set()

    def parse(self, code: str) -> ast.expr:
        try:
            return ast.parse(code, mode="eval").body
        except (SyntaxError, ValueError):
            raise InputError(f"The part {code!r} of the formula {self.text!r} cannot be read.") from None

    def one_column(self, node: ast.expr) -> str | None:
        """The column that an expression is, by its name or as ``Q("name")``; None for anything else."""
        match node:
            case ast.Name(id=name):
                return name
            case ast.Call(func=ast.Name(id="Q"), args=[ast.Constant(value=str(name))], keywords=[]):
                return name
        return None

    def add_column(self, name: str) -> None:
        if name not in self.known:
            raise UnknownKeyVariable(
                f"The formula {self.text!r} names {name!r}, which is not a column of the data. "
                f"{suggestion(name, self.known)}"
            )
        self.columns.add(name)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in FUNCTIONS and node.id not in self.known:
            self.functions.add(node.id)
        else:
            self.add_column(node.id)

    def visit_Call(self, node: ast.Call) -> None:
        function = ast.unparse(node.func)
        if function in FUNCTIONS:
            self.functions.add(function)
        elif function.startswith("np.") and function.removeprefix("np.") in NUMPY:
            self.functions.add("np")
        else:
            self._refuse()
        if function == "Q":
            column = self.one_column(node)
            if column is None:
                raise InputError(
                    f"Q in the formula {self.text!r} needs the name of one column in quotes: Q('A B')."
                )
            self.add_column(column)
            return
        if function == "C" and node.args and (column := self.one_column(node.args[0])) is not None:
            self.grouped.add(column)
        for part in (*node.args, *node.keywords):
            self.visit(part)

    def generic_visit(self, node: ast.AST) -> None:
        if not isinstance(node, PLAIN):
            self._refuse()
        super().generic_visit(node)

    def _refuse(self) -> NoReturn:
        raise InputError(
            f"The formula {self.text!r} uses something that is not let through. It may use columns, numbers, "
            f"arithmetic, the functions {', '.join(sorted(FUNCTIONS))}, and with np. before them "
            f"{', '.join(sorted(NUMPY))}."
        )
