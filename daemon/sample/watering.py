"""How much water a bed needs this week."""

from __future__ import annotations

from dataclasses import dataclass

LITRES_PER_SQUARE_METRE = {"leaf": 12.0, "fruit": 18.0, "root": 9.0}
"""Litres a week in a dry summer week, by the kind of crop."""


@dataclass(frozen=True)
class Bed:
    """A bed of one crop; `mulched` beds lose about a third less water."""

    name: str
    crop: str
    square_metres: float
    mulched: bool = False


def weekly_litres(bed: Bed, rain_mm: float) -> float:
    """Litres to bring to a bed in a week with `rain_mm` of rain. A millimetre is a litre a square metre."""
    need = LITRES_PER_SQUARE_METRE[bed.crop] * bed.square_metres
    if bed.mulched:
        need *= 0.67
    return max(0.0, need - rain_mm * bed.square_metres)


def watering_plan(beds: list[Bed], rain_mm: float, can_litres: float = 10.0) -> dict[str, int]:
    """Watering cans for each bed, rounded up; beds that need none are left out."""
    plan: dict[str, int] = {}
    for bed in beds:
        litres = weekly_litres(bed, rain_mm)
        if litres > 0:
            plan[bed.name] = int(-(-litres // can_litres))
    return plan
