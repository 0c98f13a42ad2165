"""From a file or from flags to an experiment: grids are laid out, names of parameters checked."""

from __future__ import annotations

import errno
import itertools
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from wgp_agents.benchmark.accepted import environment_parameters
from wgp_agents.benchmark.experiment import AgentSpec, Experiment, TaskSpec
from wgp_agents.benchmark.values import (
    LARGEST_FILE,
    LONGEST_LABEL,
    MOST_VARIANTS,
    all_different,
    check_values,
    filled,
)
from wgp_agents.registry import agent_parameters
from wgp_gym.validation import check_choice, check_int, check_names, cut, reject

__all__ = ["declare", "from_flags", "read_declaration", "shipped"]

PLAIN = ("title", "description", "seeds", "root_seed", "batch")  # of which the experiment is made
TOP = (*PLAIN, "horizon", "environment", "agent")
DEFAULT = "default"  # a value in a list that leaves a parameter alone
# What needs quotes in TOML: not the e of 1e-3, no truth value, nothing that has them.
WORD = re.compile(r"(?<![\w.+'\"-])(?!(?:true|false|inf|nan)\b)[A-Za-z_][\w.^/-]*")
# A flag's name, with the module in front of it, and its parameters.
NAME = re.compile(r"((?:[^\W\d][\w.]*:(?=[^:=]+(?::|$)))?[^:]*):?(.*)", re.DOTALL)
HERE = Path(__file__).parent
SHIPPED = (HERE / "shipped", HERE.parents[2] / "benchmarks")  # in a wheel, in a checkout

Table = dict[str, Any]
Spec = TypeVar("Spec")


def shipped() -> dict[str, Path]:
    """Return the experiments that come with the package, by name."""
    found = [
        path
        for folder in SHIPPED
        for path in sorted(folder.glob("*.toml"), key=lambda path: path.stem)
    ]
    return {path.stem: path for path in found}


def read_declaration(source: str) -> Table:
    """Return what an experiment's file says, before it is checked.

    Args:
        source: The path of a TOML file, or the name of an experiment that comes with the package.

    Raises:
        ValueError: If there is no such file, or it is not TOML, or too large for an experiment.
        OSError: If it cannot be read.
    """
    path = Path(source)
    if not is_file(path):
        known = shipped()
        if path.suffix or len(source) > LONGEST_LABEL:
            raise ValueError(f"There is no file {cut(source)}.")
        path = known[check_choice("experiment", source, "wgp-gym run (or a file)", known)]
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ValueError(f"{cut(str(path))} has more than {LARGEST_FILE} bytes: no experiment.")
    try:
        values = tomllib.loads(content.decode("utf-8-sig"))  # a byte order mark is left out
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{cut(str(path))} is not a TOML file: {cut(str(error))}") from error
    return {"title": path.stem, **values}


def is_file(path: Path) -> bool:
    """Tell whether there is a file; of a name that no file can have, there is none."""
    try:
        return path.is_file()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return False


def from_flags(environments: Sequence[str], agents: Sequence[str]) -> Table:
    """Return the declaration that flags make up.

    Args:
        environments: Each "ID" or "ID:key=value,...", where the id may be "module:id".
        agents: Each "name" or "name:parameter=value,...", or "module:Class" in the place of a
            name. Values are those of TOML, so that `[0.9, 0.99]` is a grid; words need no quotes.

    Raises:
        ValueError: If a flag does not read so.
    """
    entries: list[Table] = []
    for text in environments:
        name, kwargs = split_flag("env", text)
        entries.append({"id": name, "kwargs": kwargs})
    players: list[Table] = []
    for text in agents:
        name, parameters = split_flag("agent", text)
        players.append({"name": name, "parameters": parameters})
    return {"title": "comparison", "environment": entries, "agent": players}


def split_flag(flag: str, text: str) -> tuple[str, Table]:
    """Return the name in a flag, and the parameters that follow it."""
    found = NAME.match(text)
    assert found is not None  # any text fits
    name, rest = found.groups()
    parameters: Table = {}
    for part in split_commas(rest) if rest else ():
        key, equals, value = map(str.strip, part.partition("="))
        if not equals or not key or key in parameters:
            reject(flag, "wgp-gym run", "like NAME:key=value,key=value, each key once", text)
        parameters[key] = read_value(value)
    return name, parameters


def split_commas(text: str) -> list[str]:
    """Return what stands between commas; those in brackets, braces or quotes belong to a value."""
    parts, depth, quote = [""], 0, ""
    for sign in text:
        if sign in "\"'" and quote in ("", sign):
            quote = "" if quote else sign
        depth += 0 if quote else (sign in "[{") - (sign in "]}")
        if sign == "," and depth <= 0 and not quote:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def read_value(text: str) -> Any:
    """Return a TOML value; what is none is taken as a text."""
    for form in (text, WORD.sub(r'"\g<0>"', text)):
        try:
            found = tomllib.loads(f"value = {form}")
        except (ValueError, RecursionError):
            continue
        if len(found) == 1:
            return found["value"]
    return text


def declare(values: Table) -> Experiment:
    """Return the experiment that a declaration stands for.

    Raises:
        ValueError: If a key, a name or a type is wrong, or something is beyond the limits of
            `wgp_agents.benchmark.values`. Ranges are checked when environments and
            agents are made: see `wgp_agents.benchmark.plan.check`.
    """
    check_values(values)
    check_names(values, "The experiment", TOP)
    horizon = values.get("horizon")
    if horizon is not None:
        check_int("horizon", horizon, "the experiment", 1)
    return Experiment(
        tasks=laid_out(values, "environment", partial(tasks_of, horizon=horizon)),
        agents=laid_out(values, "agent", agents_of),
        source=values,
        **{key: values[key] for key in PLAIN if key in values},
    )


def laid_out(values: Table, key: str, lay: Callable[[Table], Iterator[Spec]]) -> tuple[Spec, ...]:
    """Return what all entries of one kind stand for.

    Raises:
        ValueError: If an entry is wrong, or they stand for too many: a grid is not laid out to its
            end before that is known.
    """
    found = tuple(itertools.islice(made_of(values, key, lay), MOST_VARIANTS + 1))
    if len(found) > MOST_VARIANTS:
        text = f"The grids of [[{key}]] have more than {MOST_VARIANTS} combinations"
        raise ValueError(f"{text}, which is the most that an experiment may have.")
    return found


def made_of(values: Table, key: str, lay: Callable[[Table], Iterator[Spec]]) -> Iterator[Spec]:
    """Yield what the entries of one kind stand for; an error says which entry it is about."""
    entries = values.get(key, [])
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        reject(key, "the experiment", f"one or more tables [[{key}]]", entries)
    for number, entry in enumerate(entries, start=1):
        try:
            yield from lay(entry)
        except ValueError as error:
            raise ValueError(f"[[{key}]] number {number}: {error}") from error


def tasks_of(entry: Table, horizon: int | None) -> Iterator[TaskSpec]:
    """Yield the tasks of one [[environment]]: all combinations of the values that are listed."""
    check_names(entry, "An [[environment]]", ("id", "name", "kwargs"))
    given: Table = {"name": "unnamed", "id": None} | entry
    whole = TaskSpec(**given)  # which is checked as it is, before its grid is laid out
    check_names(whole.kwargs, whole.id, environment_parameters(whole.id))
    base = entry.get("name", task_name(whole.id))
    shared: Table = {} if horizon is None else {"horizon": horizon}
    for made, _, varied in combinations(whole.kwargs):
        name = " ".join([base, *(f"{key}={value}" for key, value in varied.items())])
        yield TaskSpec(name, whole.id, shared | made, base, varied)


def task_name(environment: str) -> str:
    """Return what the task of an id is called: "linear abrupt" of "WGPBandit-LinearAbrupt-v0"."""
    short = re.sub(r"-v\d+$", "", environment.rpartition(":")[2]).removeprefix("WGPBandit-")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", short).lower()


def agents_of(entry: Table) -> Iterator[AgentSpec]:
    """Yield the agents of one [[agent]]: all combinations of the values that are listed."""
    check_names(entry, "An [[agent]]", ("name", "label", "parameters"))
    given: Table = {"label": "unnamed", "name": None} | entry
    whole = AgentSpec(**given)
    check_names(whole.parameters, f"The agent {whole.name!r}", agent_parameters(whole.name))
    for made, chosen, varied in combinations(whole.parameters):
        words = ", ".join(f"{key}={value}" for key, value in varied.items())
        named = " ".join(filter(None, [whole.entry.title, words]))
        label = worded(whole.label, chosen) if "label" in entry else named
        yield AgentSpec(label, whole.name, made, varied)


def worded(label: str, chosen: Table) -> str:
    """Return a label with the parameters that it names.

    Raises:
        ValueError: If it names another, or asks for more than a short format of its value.
    """
    try:
        return filled(label, chosen)
    except ValueError:
        given = ", ".join(chosen) or "none"
        rule = f"a text, in which {{parameter}} stands for one that is given ({given})"
        reject("label", "an [[agent]]", rule, label)


def combinations(values: Table) -> Iterator[tuple[Table, Table, Table]]:
    """Yield all combinations of listed values.

    A value that is itself a list stands in a list of its own: [[100, 200]].

    Yields:
        What is to be given; the same with those that are left at their default; and what
        differs between the combinations.
    """
    listed = {key: value for key, value in values.items() if isinstance(value, list)}
    for key, given in listed.items():
        if not given or not all_different(given):
            reject(key, "a grid", "a value, or a list of one or more, all different", given)
    for chosen in itertools.product(*listed.values()):
        made = values | dict(zip(listed, chosen, strict=True))
        varied = {key: made[key] for key in listed if len(listed[key]) > 1}
        yield {key: value for key, value in made.items() if value != DEFAULT}, made, varied
