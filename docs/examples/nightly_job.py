"""A nightly job: read yesterday's sales from a file, learn, and write tomorrow's prices.

    python nightly_job.py sales.csv prices.csv      # from cron, every night

`sales.csv` has the columns decision and euros, an empty euros where the shop was closed. The job
may be run again for the same night: what was told counts once, and a night's key gives the
same prices.
"""

import csv
import sys
from datetime import date
from pathlib import Path

from wgp_agents.live import Arms, LiveBandits

SHOPS = ["Bonn", "Cork", "Gent", "Kiel", "Lyon", "Pisa"]
PRICES = [9.99, 10.99, 11.99, 12.99, 14.99]


def main(sales: Path, prices: Path, storage: str = "nightly.db") -> None:
    """Learn from `sales`, if there are any, and write `prices`."""
    shops = LiveBandits(Arms(PRICES), SHOPS, storage=storage, name="espresso")
    if sales.exists():
        with sales.open(newline="") as file:
            rows = [(row["decision"], row["euros"]) for row in csv.DictReader(file)]
        shops.tell({decision: float(euros) if euros else None for decision, euros in rows})
    decisions = shops.ask(key=date.today().isoformat())
    with prices.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["shop", "decision", "price"])
        for shop, decision in decisions.items():
            writer.writerow([shop, decision.id, decision.arm])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
