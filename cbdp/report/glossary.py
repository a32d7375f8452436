"""What the report's terms mean."""

from __future__ import annotations

from cbdp.release.counted import TRIPS, Noun
from cbdp.report.markup import Html, tag

GLOSSARY = {
    "Differential privacy": "A property of the way numbers are made, not of the numbers themselves: whether one unit (a trip, a "
    "person) is in the data changes the chance of any result by a limited factor only. It holds whatever else anybody knows, now or later.",
    "Unit of protection": "What is protected: one trip, one person, or what one person does in one period (day, week, month).",
    "ε (epsilon), the budget": "How strong the protection is. The odds of any conclusion change by at most a factor of e^ε. Smaller "
    "is safer. When several answers are given about the same data, their ε add up.",
    "Odds": "How much more likely something is than not: odds of 3 to 1 are a chance of 75 %.",
    "δ (delta)": "A small probability by which the bound set by ε may be exceeded. It is 0 unless this report says otherwise.",
    "ρ (rho)": "Another measure of what answers cost, for Gaussian noise. It adds up like ε, and gives an ε for every δ.",
    "Noise": "Random numbers that are added to counts on purpose, so that no single trip or person can be found in them.",
    "Noise scale": "How large the noise added to each count is, in trips. Typical noise is about as large as its scale; noise "
    "of more than three times the scale occurs in about one count of twenty (geometric noise) or of 370 (Gaussian noise).",
    "Measurement": "A true count with noise added. It may be below zero.",
    "Estimate": "What the measurements together say about a count, made consistent and not negative, before it is rounded to whole trips.",
    "Published count": "The number in a table: the estimate as a whole number of trips.",
    "Interval": "From a lower to an upper end (low and high): it contains the true count with the stated confidence. It accounts for the noise and for "
    "everything done afterwards. A count may stand at one end of its interval, because the two are worked out in different ways. Intervals are computed "
    "from the release alone, so they cost no privacy.",
    "Confidence": "How often such intervals are right: of many intervals, this share contains the true count, and the others miss it.",
    "Range": "Some sums have no interval. Then the lower ends of their parts are added up, and so are the upper ends. A range is usually much "
    "wider than an interval would be, and no confidence is stated for it.",
    "Table (feature)": "A way to group trips, for example by origin zone, destination zone and time, and the count of each group.",
    "Singleton": "The table with the most detail: a count for every combination of everything that describes a trip, for example one origin, one "
    "destination and one period. Such a combination is also called a trip type.",
    "Consistent": "The tables agree: adding up a more detailed one gives the coarser one exactly.",
    "Structural zero": "A combination that cannot occur, declared publicly beforehand: no noise is added there.",
    "Post-processing": "What is computed from the noisy counts alone, such as making them consistent, not negative and whole. It "
    "cannot weaken the protection.",
}


def glossary(noun: Noun = TRIPS) -> Html:
    return tag("dl", [[tag("dt", term), tag("dd", noun.say(meaning))] for term, meaning in GLOSSARY.items()])
