"""From a file or from flags to an experiment: grids are laid out, names and types are checked."""

from __future__ import annotations

import errno
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
from wgp_agents.benchmark.labels import check_line, check_paragraph, cut, filled
from wgp_agents.benchmark.limits import (
    LARGEST_FILE,
    LONGEST_LABEL,
    MOST_RUNS,
    MOST_VARIANTS,
)
from wgp_agents.benchmark.values import all_different, check_values
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
            `wgp_agents.benchmark.limits`. Ranges are checked when environments and
            agents are made: see `wgp_agents.benchmark.plan.check`.
    """
    owner = "the experiment"
    check_values(values)
    check_names(values, owner.capitalize(), TOP)
    title = check_line("title", values.get("title", "experiment"), owner)
    description = check_paragraph("description", values.get("description", ""), owner)
    horizon = values.get("horizon")
    if horizon is not None:
        check_int("horizon", horizon, owner, 1)
    seeds = check_int("seeds", values.get("seeds", 100), owner, 1, MOST_RUNS)
    batch = check_int("batch", values.get("batch", BATCH), owner, 1, MOST_RUNS)
    tasks = laid_out(values, "environment", partial(lay_out, horizon=horizon))
    agents = laid_out(values, "agent", line_up)
    unique("environment", "name", [task.name for task in tasks])
    unique("agent", "label", [agent.label for agent in agents])
    experiment = Experiment(
        title=title,
        description=description,
        seeds=seeds,
        root_seed=check_int("root_seed", values.get("root_seed", 2022), owner, 0),
        batch=batch,
        tasks=tuple(tasks),
        agents=tuple(agents),
        source=values,
    )
    experiment.check_size()
    return experiment


def laid_out(values: Table, key: str, lay: Callable[[Table], Iterator[Spec]]) -> list[Spec]:
    """Return what all entries of one kind stand for.

    Raises:
        ValueError: If an entry is wrong, or they stand for too many: a grid is not laid out to its
            end before that is known.
    """
    found = list(itertools.islice(made_of(values, key, lay), MOST_VARIANTS + 1))
    if len(found) > MOST_VARIANTS:
        text = f"The grids of [[{key}]] have more than {MOST_VARIANTS} combinations"
        raise ValueError(f"{text}, which is the most that an experiment may have.")
    return found


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
    check_line("name", base, "an [[environment]]")
    kwargs = table(entry, "kwargs", "an [[environment]]")
    check_names(kwargs, chosen, environment_parameters(chosen))
    shared = {} if horizon is None else {"horizon": horizon}
    for made, _, varied in combinations(kwargs):
        name = " ".join([base, *(f"{key}={value}" for key, value in varied.items())])
        check_line("name", name, "an [[environment]]")
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
    if label is not None:
        check_line("label", label, "an [[agent]]")
    for made, chosen, varied in combinations(parameters):
        words = ", ".join(f"{key}={value}" for key, value in varied.items())
        named = " ".join(filter(None, [AGENTS[name].title, words]))
        shown = named if label is None else worded(label, chosen)
        yield AgentSpec(check_line("label", shown, "an [[agent]]"), name, made, varied)


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
        if not given or not all_different(given):
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
