"""The payments for the best option as a table, with its assumptions and break-even, and the bill of materials."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from hwsim.costs.machine_price import HOUR, term_text
from hwsim.costs.materials import Material
from hwsim.devices.offers import PAYMENT_TITLES
from hwsim.families_interface import SummaryLine
from hwsim.formats import format_count, percent
from hwsim.planning.options import PlanOption
from hwsim.planning.payments import OptionUse, Payment
from hwsim.planning.requirements import MEASURES, money
from hwsim.units import DAY, YEAR
from hwsim.views.kit.document import select_attributes
from hwsim.views.kit.lines import LABEL, labelled_lines
from hwsim.views.kit.table import Column, align_columns

MONTH: Final = YEAR / 12
OF_CLUSTERS: Final = ("node", "NIC", "switch", "cable end", "storage")
LEFT_OUT: Final = "operators, support contracts, software licences, taxes, financing, data transfer out of a cloud"


def payment_lines(best: PlanOption | None) -> list[str]:
    """Return the table of payments for a use of a month or more, and its assumptions; empty if the question needs no money."""
    if best is None or (use := best.use) is None or use.facts.priced is None or use.seconds < 28 * DAY:
        return []
    payments, lacking = use.payments
    rows = [("payment", "price", "total", "90 % interval", "break-even", "offer")]
    for payment in payments:
        low, high = (100 * (end / payment.total.value - 1) for end in (payment.total.low, payment.total.high))
        after = math.inf if payment.break_even_s is None else payment.break_even_s
        pays = "never" if after > use.prices.lifetime else f"{after / MONTH:.1f} months"
        pays = "-" if "purchase" in (payment.way, *lacking) else pays
        offer = " ".join(filter(None, (payment.prices[0].provider, payment.prices[0].mark, payment.prices[0].date[:4])))
        is_bought = payment.way == "purchase"
        rate = use.replicas * math.fsum(item.amount.value for item in payment.prices if item.bought == is_bought)
        price = money(rate) if is_bought else f"{format_count(rate * HOUR)} USD/h"
        rows.append((_title(payment), price, money(payment.total.value), f"{low:+.0f}/{high:+.0f} %", pays, offer))
    used = MEASURES["time"].shown(use.seconds, 4 if use.seconds >= 1000 * DAY else 3)
    told = (line for label, text in _assumed(use) for line in labelled_lines(label, text, LABEL))
    columns = [Column(head, cells, right=head not in ("payment", "offer")) for head, *cells in zip(*rows, strict=True)]
    return ["", f"payments for {used} of use", *align_columns(columns), *told] if payments else []


def _title(payment: Payment) -> str:
    """Return the payment option with the true term of a reservation."""
    title, term = PAYMENT_TITLES[payment.way], payment.prices[0].term
    return f"{'block' if payment.way == 'block' else 'reserved'} {term_text(term)}" if term else title


def _assumed(use: OptionUse) -> Iterator[tuple[str, str]]:
    """Yield the assumptions of the table, the payments without a price, and the costs that are not included."""
    (payments, lacking), site, cash = use.payments, use.prices.site, use.cash
    counts = ", ".join(map(str, cash.counts(use.seconds)))
    rates = [f"growth {percent(cash.growth, '.3g')} a year: {counts} machines" if cash.growth else "no growth",
             f"discounted by {percent(cash.discount, '.3g')} a year" if cash.discount else "not discounted"]  # fmt: skip
    if "purchase" not in lacking and site.electricity is not None and site.hosting is not None:
        items = payments[0].items.items()
        yield "buy", ", ".join(f"{name.replace('energy', 'energy with cooling')} {money(value)}" for name, value in items)
        rates += [f"residual value {percent(use.prices.residual, '.3g')} after {term_text(use.prices.lifetime)}",
                  f"electricity {site.electricity.value * 3.6e6:.3g} USD/kWh",
                  f"hosting {site.hosting.value * 1000 * MONTH:.3g} USD/kW/month" if site.hosting.value else "no hosting",
                  "break-even if the machine is never sold"]  # fmt: skip
    yield "assumed", ", ".join(rates)
    for missing in dict.fromkeys(lacking.values()):
        ways = ", ".join(PAYMENT_TITLES[way] for way, names in lacking.items() if names == missing)
        yield "no price", f"{ways}: {'; '.join(missing[:2])}{' and more' if len(missing) > 2 else ''}"
    yield "not included", LEFT_OUT + ("" if "spot" in lacking else "; interruptions of spot machines")


def materials_lines(best: PlanOption) -> Iterator[SummaryLine]:
    """Yield the counts of nodes, switches, cables and storage, each with its price in -v, and the parts without a price."""
    rows, missing = ((), ()) if best.use is None else best.use.materials
    listed = [row for row in rows if row.role in OF_CLUSTERS]
    if len(listed) > 1:
        yield SummaryLine("materials", ", ".join(f"{row.count:,} x {row.name}{_tiers(row)}" for row in listed))
        if missing and best.use and len(best.use.facts.priced or ()) < 2:
            yield SummaryLine("not priced", f"to buy: {'; '.join(missing)}")
    for row in rows if any(row.amount is not None for row in rows) else ():
        cost = (
            "in the node" if row.inside else "the sum of its parts" if row.amount is None else f"{money(row.amount.value)} to buy"
        )
        yield SummaryLine("", f"{row.role}: {row.count:,} x {row.name}, {cost}", verbose=True)


def _tiers(row: Material) -> str:
    tiers = ", ".join(f"{name} {count:,}" for name, count in row.tiers)
    return f" ({tiers})" if tiers else " end" if row.role == "cable end" else ""


def payments_dict(use: OptionUse) -> dict[str, Any]:
    """Return the payments and the bill of materials as an entry of the document."""
    return {
        **select_attributes(use.cash, "growth", "discount"), "used_s": use.seconds, "machines": use.cash.counts(use.seconds),
        "payments": [select_attributes(payment, "items", "break_even_s", payment="way")
                     | {"usd": select_attributes(payment.total, "value", "low", "high"), "offers": list(map(str, payment.prices))}
                     for payment in use.payments[0]],
        "materials": [select_attributes(row, "role", "name", "count", "inside", "tiers")
                      | {"usd": row.amount and row.amount.value} for row in use.materials[0]],
        "not_included": LEFT_OUT, "not_priced": list(use.materials[1]),
    }  # fmt: skip
