"""A web service that sells at a price which it learns: one process or several, one database.

pip install -e '.[live]' fastapi uvicorn
DATABASE=shop.db uvicorn web_service:app --workers 4

curl -X POST localhost:8000/price -d '{"order": "order-17"}' -H 'content-type: application/json'
curl -X POST localhost:8000/reward -d '{"id": "1", "euros": 12.99}' -H 'content-type: ...'
"""

import os

from fastapi import FastAPI, HTTPException
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

from wgp_agents.live import Arms, LiveBandit

PRICES = [9.99, 10.99, 11.99, 12.99, 14.99]

app = FastAPI(title="A price that learns")
seller = LiveBandit(
    Arms(PRICES),
    timescale="1 day",  # what is known of demand fades by days, however many customers come
    storage=os.environ.get("DATABASE", "shop.db"),
    name="espresso",
)


class Order(BaseModel):
    """Who asks for a price; asked again, the same order gets the same price."""

    order: str


class Reward(BaseModel):
    """What a decision earned: 0 if the customer went away."""

    id: str
    euros: float


@app.post("/price")
def price(order: Order) -> dict[str, str | float]:
    """Return the price for an order."""
    decision = seller.ask(key=order.order)
    assert isinstance(decision.arm, float)
    return {"id": decision.id, "price": decision.arm}


@app.post("/reward")
def reward(told: Reward) -> dict[str, str]:
    """Take note of what a decision earned."""
    try:
        seller.tell(told.id, told.euros)
    except ValueError as error:  # no such decision, or another reward was told before
        raise HTTPException(422, str(error)) from None
    return {"id": told.id}


@app.get("/report", response_class=HTMLResponse)
def report() -> str:
    """Show what is known, as a page."""
    return seller.report().html()
