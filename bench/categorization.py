"""Precision and recall of sorting into a project's own categories without a model: `python -m bench.categorization`.

Lists and texts are ours. The margins of app/domain/categories.py were chosen on them, so the numbers flatter a little.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from app import config
from app.domain import categories
from app.providers import embedder as embedders

SETS: list[tuple[list[Any], list[tuple[str, set[str]]]]] = [
    (
        [
            {"legal": "contracts, lawsuits and legal advice"},
            {"billing": "invoices, payments, refunds and subscriptions"},
            {"shipping": "delivery, parcels and addresses"},
            {"product_feedback": "opinions and complaints about the product"},
        ],
        [
            ("User was charged twice for the March invoice", {"billing"}),
            ("User wants a refund for order 4471", {"billing"}),
            ("The parcel was left at the neighbour's door", {"shipping"}),
            ("User's package has not arrived yet", {"shipping"}),
            ("User signed a non-disclosure agreement with Acme", {"legal"}),
            ("User is suing the landlord", {"legal"}),
            ("User finds the app's search slow and confusing", {"product_feedback"}),
            ("User thinks the new design is ugly", {"product_feedback"}),
            ("User likes green tea", set()),
            ("User's sister lives in Oslo", set()),
            ("User plays tennis on Sundays", set()),
            ("User is allergic to peanuts", set()),
            ("User cancelled the yearly subscription", {"billing"}),
            ("用户被重复扣款", {"billing"}),
            ("用户的快递还没到", {"shipping"}),
            ("用户喜欢打篮球", set()),
        ],
    ),
    (
        [
            {"cooking": "For users interested in cooking and culinary experiences"},
            {"fitness": "Includes content related to fitness and workouts"},
            {"finance": "money, savings, investments and budgets"},
            {"pets": "animals that the user keeps"},
        ],
        [
            ("User bakes sourdough bread every weekend", {"cooking"}),
            ("User is learning to make Thai curry", {"cooking"}),
            ("User runs 5 km every morning", {"fitness"}),
            ("User joined a gym", {"fitness"}),
            ("User invests in index funds", {"finance"}),
            ("User saves 500 euros a month for a house", {"finance"}),
            ("User has a golden retriever called Rex", {"pets"}),
            ("User's cat is sick", {"pets"}),
            ("User works as a nurse", set()),
            ("User flew to Lisbon last week", set()),
            ("User loves jazz", set()),
            ("User's phone number is 555-1234", set()),
            ("User watched Dune at the cinema", set()),
            ("用户每天做饭", {"cooking"}),
            ("用户养了一只猫", {"pets"}),
            ("用户买了基金", {"finance"}),
            ("用户住在北京", set()),
            ("用户在健身房锻炼", {"fitness"}),
        ],
    ),
    (
        [{"学习": "课程、考试和作业"}, {"宠物": "用户养的动物"}, {"理财": "储蓄、投资和预算"}],
        [
            ("用户下周有数学考试", {"学习"}),
            ("用户的猫叫咪咪", {"宠物"}),
            ("用户每个月存两千块钱", {"理财"}),
            ("用户喜欢吃火锅", set()),
            ("用户住在上海", set()),
            ("用户昨天看了电影", set()),
            ("User has an exam on Friday", {"学习"}),
            ("User's dog is called Rex", {"宠物"}),
            ("用户在股市亏了钱", {"理财"}),
            ("用户每周打羽毛球", set()),
        ],
    ),
    (
        [
            {"work_projects": "software projects the user works on"},
            {"decisions": "technical decisions that were made and why"},
            {"incidents": "outages, bugs and their causes"},
        ],
        [
            ("The team chose Postgres over MongoDB because of transactions", {"decisions"}),
            ("The payment service was down for two hours on Monday", {"incidents"}),
            ("User is building a mobile app for bird watchers", {"work_projects"}),
            ("The login bug was caused by an expired certificate", {"incidents"}),
            ("User decided to use uv instead of pip", {"decisions"}),
            ("User likes pizza", set()),
            ("User's mother is called Anna", set()),
            ("User is refactoring the billing module", {"work_projects"}),
            ("User will travel to Rome in June", set()),
        ],
    ),
    (
        [
            {
                "lifestyle_management_concerns": "Tracks daily routines, habits, hobbies and interests including cooking, time management and work-life balance"
            },
            {
                "seeking_structure": "Documents goals around creating routines, schedules, and organized systems in various life areas"
            },
            {
                "personal_information": "Basic information about the user including name, preferences, and personality traits"
            },
        ],
        [
            ("User wants to plan her week on Sunday evenings", {"seeking_structure"}),
            ("User's name is Anna", {"personal_information"}),
            ("User is shy and likes to be alone", {"personal_information"}),
            ("User struggles to balance work and family", {"lifestyle_management_concerns"}),
            ("User cooks at home four times a week", {"lifestyle_management_concerns"}),
            ("User's laptop has 32 GB of memory", set()),
            ("User flew to Rome in June", set()),
            ("User set up a schedule for house cleaning", {"seeking_structure"}),
        ],
    ),
    (
        [{"travel_plans": "trips that are planned"}],
        [
            ("User will fly to Tokyo in May", {"travel_plans"}),
            ("User likes pizza", set()),
            ("User booked a hotel in Paris for July", {"travel_plans"}),
            ("User works at Acme", set()),
            ("User plays the piano", set()),
            ("User's brother is a lawyer", set()),
        ],
    ),
]


async def main() -> None:
    """Print the numbers, and what was sorted wrongly."""
    with tempfile.TemporaryDirectory() as folder:
        embedder = embedders.open_embedder(config.load(data=Path(folder)))
        anchors = await embedder.embed([anchor.likened for anchor in categories.anchors()])
        references = await embedder.embed(list(categories.REFERENCES))
        right = given = wanted_count = exact = total = 0
        for raw, cases in SETS:
            listed = categories.listed(raw)
            own = await embedder.embed([category.likened for category in categories.own(listed)])
            vectors = await embedder.embed([text for text, _ in cases])
            for (text, wanted), vector in zip(cases, vectors, strict=True):
                found = set(categories.of(text, listed, categories.Likeness(vector, own, anchors, references)))
                right, given, wanted_count = right + len(found & wanted), given + len(found), wanted_count + len(wanted)
                exact, total = exact + (found == wanted), total + 1
                if found != wanted:
                    print(f"{text}: {sorted(found) or 'none'} instead of {sorted(wanted) or 'none'}")
        await embedder.close()
    print(f"precision {right / given:.2f}  recall {right / wanted_count:.2f}  exact {exact} of {total}")


if __name__ == "__main__":
    asyncio.run(main())
