"""From a file or from flags to an experiment: grids are laid out, names and types are checked."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from wgp_agents.benchmark.accepted import environment_parameters
from wgp_agents.benchmark.experiment import BATCH, AgentSpec, Experiment, TaskSpec
from wgp_agents.registry import AGENTS, agent_parameters
from wgp_gym.registration import ENVIRONMENTS
from wgp_gym.validation import check_choice, check_int, check_names, reject

__all__ = ["declare", "from_flags", "read_declaration", "shipped"]

TOP = ("title", "description", "seeds", "root_seed", "horizon", "batch", "environment", "agent")
DEFAULT = "default"  # a value in a list that leaves a parameter alone
# What needs quotes in TOML: not the e of 1e-3, no truth value, nothing that has them.
WORD = re.compile(r"(?<![\w.+'\"-])(?!(?:true|false|inf|nan)\b)[A-Za-z_][\w.^/-]*")
HERE = Path(__file__).parent
SHIPPED = (HERE / "shipped", HERE.parents[2] / "benchmarks")  # in a wheel, in a checkout

Table = dict[str, Any]
Spec = TypeVar("Spec")


def shipped() -> dict[str, Path]:
    """Return the experiments that come with the package, by name."""
    found = [path for folder in SHIPPED for path in sorted(folder.glob("*.toml"))]
    return {path.stem: path for path in found}


def read_declaration(source: str) -> Table:
    """Return what an experiment's file says, before it is checked.

    Args:
        source: The path of a TOML file, or the name of an experiment that comes with the package.

    Raises:
        ValueError: If there is no such file, or it is not TOML.
    """
    path = Path(source)
    if not path.is_file():
        known = shipped()
        if path.suffix:
            raise ValueError(f"There is no file {source}.")
        path = known[check_choice("experiment", source, "wgp-gym run (or a file)", known)]
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}") from error
    return {"title": path.stem, **values}


def from_flags(environments: Sequence[str], agents: Sequence[str]) -> Table:
    """Return the declaration that flags make up.

    Args:
        environments: Each "ID" or "ID:key=value,...".
        agents: Each "name" or "name:parameter=value,...". Values are those of TOML, so that
            `[0.9, 0.99]` is a grid; words need no quotes.

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
    name, _, rest = text.partition(":")
    parameters: Table = {}
    for part in split_commas(rest) if rest else ():
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            reject(flag, "wgp-gym run", "like NAME:key=value,key=value", text)
        parameters[key.strip()] = read_value(value.strip())
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
            return tomllib.loads(f"value = {form}")["value"]
        except tomllib.TOMLDecodeError:
            continue
    return text


def declare(values: Table) -> Experiment:
    """Return the experiment that a declaration stands for.

    Raises:
        ValueError: If a key, a name or a type is wrong. Ranges are checked when environments and
            agents are made: see `wgp_agents.benchmark.plan.check`.
    """
    owner = "the experiment"
    check_names(values, owner.capitalize(), TOP)
    for key in ("title", "description"):
        if not isinstance(values.get(key, ""), str):
            reject(key, owner, "a text", values[key])
    horizon = values.get("horizon")
    if horizon is not None:
        check_int("horizon", horizon, owner, 1)
    tasks = list(made_of(values, "environment", partial(lay_out, horizon=horizon)))
    agents = list(made_of(values, "agent", line_up))
    unique("environment", "name", [task.name for task in tasks])
    unique("agent", "label", [agent.label for agent in agents])
    return Experiment(
        title=values.get("title", "experiment"),
        description=values.get("description", ""),
        seeds=check_int("seeds", values.get("seeds", 100), owner, 1),
        root_seed=check_int("root_seed", values.get("root_seed", 2022), owner, 0),
        batch=check_int("batch", values.get("batch", BATCH), owner, 1),
        tasks=tuple(tasks),
        agents=tuple(agents),
        source=values,
    )


def made_of(values: Table, key: str, lay: Callable[[Table], Iterator[Spec]]) -> Iterator[Spec]:
    """Yield what the entries of one kind stand for; an error says which entry it is about."""
    for number, entry in enumerate(entries(values, key), start=1):
        try:
            yield from lay(entry)
        except ValueError as error:
            raise ValueError(f"[[{key}]] number {number}: {error}") from error


def entries(values: Table, key: str) -> list[Table]:
    """Return the entries of one kind, of which there must be one."""
    found = values.get(key, [])
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        reject(key, "the experiment", f"one or more tables [[{key}]]", found)
    return found


def lay_out(entry: Table, horizon: int | None) -> Iterator[TaskSpec]:
    """Yield the tasks of one [[environment]]: all combinations of the values that are listed."""
    check_names(entry, "An [[environment]]", ("id", "name", "kwargs"))
    known = [one.id for one in ENVIRONMENTS]
    chosen = check_choice("id", entry.get("id"), "an [[environment]]", known)
    base = entry.get("name", task_name(chosen))
    if not isinstance(base, str) or not base.strip() or "\n" in base:
        reject("name", "an [[environment]]", "a text of one line", base)
    kwargs = table(entry, "kwargs", "an [[environment]]")
    check_names(kwargs, chosen, environment_parameters(chosen))
    shared = {} if horizon is None else {"horizon": horizon}
    for made, _, varied in combinations(kwargs):
        name = " ".join([base, *(f"{key}={value}" for key, value in varied.items())])
        yield TaskSpec(name, chosen, shared | made, base, varied)


def task_name(environment: str) -> str:
    """Return what the task of an id is called: "linear abrupt" of "WGPBandit-LinearAbrupt-v0"."""
    short = environment.removeprefix("WGPBandit-").rpartition("-v")[0]
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", short).lower()


def line_up(entry: Table) -> Iterator[AgentSpec]:
    """Yield the agents of one [[agent]]: all combinations of the values that are listed."""
    check_names(entry, "An [[agent]]", ("name", "label", "parameters"))
    name = check_choice("name", entry.get("name"), "an [[agent]]", AGENTS)
    parameters = table(entry, "parameters", "an [[agent]]")
    check_names(parameters, f"The agent {name!r}", agent_parameters(name))
    label = entry.get("label")
    if label is not None and (not isinstance(label, str) or not label.strip() or "\n" in label):
        reject("label", "an [[agent]]", "a text of one line", label)
    for made, chosen, varied in combinations(parameters):
        if label is None:
            words = ", ".join(f"{key}={value}" for key, value in varied.items())
            yield AgentSpec(" ".join(filter(None, [AGENTS[name].title, words])), name, made, varied)
            continue
        try:
            yield AgentSpec(label.format_map(chosen), name, made, varied)
        except (KeyError, ValueError, IndexError, AttributeError, TypeError):
            given = ", ".join(chosen) or "none"
            rule = f"a text, in which {{parameter}} stands for one that is given ({given})"
            reject("label", "an [[agent]]", rule, label)


def table(entry: Table, key: str, owner: str) -> Table:
    """Return a table inside an entry, empty where there is none."""
    found = entry.get(key, {})
    if not isinstance(found, dict):
        reject(key, owner, "a table, as { key = value }", found)
    return found


def combinations(values: Table) -> Iterator[tuple[Table, Table, Table]]:
    """Yield all combinations of listed values.

    A value that is itself a list stands in a list of its own: [[100, 200]].

    Yields:
        What is to be given; the same with those that are left at their default; and what
        differs between the combinations.
    """
    listed = {key: value for key, value in values.items() if isinstance(value, list)}
    for key, given in listed.items():
        if not given or any(given.count(value) > 1 for value in given):
            reject(key, "a grid", "a value, or a list of one or more, all different", given)
    for chosen in itertools.product(*listed.values()):
        made = values | dict(zip(listed, chosen, strict=True))
        varied = {key: made[key] for key in listed if len(listed[key]) > 1}
        yield {key: value for key, value in made.items() if value != DEFAULT}, made, varied


def unique(kind: str, key: str, names: list[str]) -> None:
    """Check that no two entries are called the same.

    Raises:
        ValueError: If two are.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        rule = f"different for every [[{kind}]]: give each a {key!r} of its own"
        reject(key, f"an [[{kind}]]", rule, twice[0])
