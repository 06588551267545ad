"""What ``make lint`` checks beyond the contracts of imports: families are closed, a name is one class, legends have a place.

Concrete families and their parameters are named only where one is chosen, or is what a class is about. Everything else asks the
base classes of ``families/family.py``, so that a new family is one file, a line in the registry, its twin and its page.

    python tests/house.py
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
BASES = ("Family", "Parameters")
CONTRACT = "banbury.families.family"  # which has what everyone may name
MAY_NAME = (  # modules, with what is in them
    "banbury.families",
    "banbury.tally.schema",
    "banbury.estimators.drop_in",
)
STILL_NAME: dict[str, set[str]] = {}  # known exceptions, each with all that it names; none may be added
FLAGS = ("shape", "name", "__name__")  # attributes that have told families apart, or could
SHAPES = {"keys", "bins", "words", "moments", "products"}


@cache
def modules() -> dict[str, ast.Module]:
    """The package's modules by name."""
    return {_name(path): ast.parse(path.read_text("utf-8"), str(path)) for path in SOURCE.rglob("*.py")}


@cache
def _nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """All of a module, walked through once for all that is asked of it."""
    return tuple(ast.walk(tree))


def _name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def concrete(every: Mapping[str, ast.Module]) -> dict[str, str | None]:
    """The classes that only some may name, with the word a user says for a family; None for what has no such word."""
    inside = {name: tree for name, tree in every.items() if name.startswith("banbury.families.")}
    classes = {
        node.name: (module, node)
        for module, tree in inside.items()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }

    def derives(name: str) -> bool:
        bases = [ast.unparse(base) for base in classes[name][1].bases] if name in classes else []
        return any(base in BASES or derives(base) for base in bases)

    own = {name: node for name, (module, node) in classes.items() if module != CONTRACT and derives(name)}
    return {name: _word(node) for name, node in own.items()}


def _word(family: ast.ClassDef) -> str | None:
    for node in family.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "name" and node.value is not None:
            return str(ast.literal_eval(node.value))
    return None


def offences(
    module: str, tree: ast.Module, every: Mapping[str, ast.Module], closed: Mapping[str, str | None]
) -> Iterator[str]:
    """What a module does that it may not, a sentence each."""
    yield from _own_package(module, tree, every)
    if module == "banbury" or any(module == each or module.startswith(each + ".") for each in MAY_NAME):
        return
    words = {word for word in closed.values() if word is not None} | SHAPES | closed.keys()
    still = STILL_NAME.get(module, set())
    for line, name in _named(tree, closed):
        if name not in still:
            yield f"{line}: names {name}; ask a method of Family or Parameters, with a default that is safe for others"
    if still:
        return
    for node in _nodes(tree):
        if isinstance(node, ast.Compare) and _tells_apart([node.left, *node.comparators], words):
            yield f"{node.lineno}: tells families apart by a word: {ast.unparse(node)}"
        if isinstance(node, ast.Match) and _is_flag(node.subject):
            yield f"{node.lineno}: tells families apart by a word: match {ast.unparse(node.subject)}"
        if isinstance(node, ast.Call) and _guesses(node):
            yield f"{node.lineno}: guesses what a family is or has: {ast.unparse(node)}"


def unused(every: Mapping[str, ast.Module], closed: Collection[str]) -> Iterator[str]:
    """Exceptions that are none any more, and are to be struck off the list."""
    for module, names in STILL_NAME.items():
        found = {name for _, name in _named(every[module], closed)} if module in every else set()
        for name in sorted(names - found):
            yield f"{module} names {name} no more; take it out of STILL_NAME"


def _named(tree: ast.Module, closed: Collection[str]) -> Iterator[tuple[int, str]]:
    """Where classes that are closed are imported, or reached through a module."""
    ours = set()
    for node in _nodes(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            of_ours = isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "banbury"
            for alias in node.names:
                if of_ours and alias.name in closed:
                    yield node.lineno, alias.name
                elif of_ours or alias.name.split(".")[0] == "banbury":
                    ours.add(alias.asname or alias.name.split(".")[0])
    for node in _nodes(tree):
        if isinstance(node, ast.Attribute) and node.attr in closed and ast.unparse(node.value).split(".")[0] in ours:
            yield node.lineno, node.attr


def _own_package(module: str, tree: ast.Module, every: Mapping[str, ast.Module]) -> Iterator[str]:
    """A name from the ``__init__`` of a package that the module is in closes a circle that no contract sees."""
    for node in _nodes(tree):
        package = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        if "." not in package or not module.startswith(package + "."):
            continue
        for alias in node.names:
            if f"{package}.{alias.name}" not in every:
                yield f"{node.lineno}: imports {alias.name} from the package it is in; import it from its own file"


def _tells_apart(sides: list[ast.expr], words: set[str]) -> bool:
    constants = {each.value for side in sides for each in ast.walk(side) if isinstance(each, ast.Constant)}
    return any(map(_is_flag, sides)) and bool(words.intersection(map(str, constants)))


def _is_flag(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in FLAGS


def _guesses(call: ast.Call) -> bool:
    asked = call.func.id if isinstance(call.func, ast.Name) else ""
    if asked in ("hasattr", "getattr"):
        return bool(call.args) and ast.unparse(call.args[0]).split(".")[-1] in ("family", "parameters")
    return asked in ("isinstance", "issubclass") and "FAMILIES" in ast.unparse(call.args[1])


def twins(every: Mapping[str, ast.Module]) -> Iterator[str]:
    """Names that stand for two classes."""
    known: dict[str, str] = {}
    for module, tree in sorted(every.items()):
        for node in _nodes(tree):
            if isinstance(node, ast.ClassDef) and known.setdefault(node.name, module) != module:
                yield f"{module}:{node.lineno}: {node.name} is a class of {known[node.name]} already; name it for what it is"


def legends(tree: ast.Module) -> Iterator[str]:
    """Legends whose place matplotlib chooses: its search ends in a warning on a busy machine."""
    for node in _nodes(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "legend":
            place = next((keyword.value for keyword in node.keywords if keyword.arg == "loc"), None)
            if place is None or (isinstance(place, ast.Constant) and place.value in ("best", 0)):
                yield f"{node.lineno}: lets matplotlib choose the place of a legend; use plots.display.legend_beside, or say loc="


def scripts() -> dict[str, ast.Module]:
    """Programs beside the package, by their paths."""
    paths = [path for folder in ("benchmarks", "docs") for path in (ROOT / folder).glob("*.py")]
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text("utf-8"), str(path)) for path in paths}


def problems() -> list[str]:
    """All that is wrong, module by module."""
    every = modules()
    closed = concrete(every)
    each = ((module, offences(module, tree, every, closed)) for module, tree in sorted(every.items()))
    named = [f"{module}:{offence}" for module, found in each for offence in found]
    drawn = [f"{name}:{each}" for name, tree in sorted({**every, **scripts()}.items()) for each in legends(tree)]
    return [*named, *unused(every, closed), *twins(every), *drawn]


if __name__ == "__main__":
    found = problems()
    print("\n".join(found) or "The families are closed, each name is one class, and legends have a place.")
    sys.exit(bool(found))
