"""What the report's terms mean."""

from __future__ import annotations

from cbdp.report.markup import Html, tag

GLOSSARY = {
    "Differential privacy": "A property of the way numbers are made, not of the numbers themselves: whether one unit (a trip, a "
    "person) is in the data hardly changes the chance of any result. It holds whatever else anybody knows, now or later.",
    "ε (epsilon), the budget": "How strong the protection is. The odds of any conclusion change by at most a factor of e^ε. Smaller "
    "is safer. When several answers are given about the same data, their ε add up.",
    "δ (delta)": "A small probability by which the bound set by ε may be exceeded. It is 0 unless this report says otherwise.",
    "ρ (rho)": "Another measure of what answers cost, for Gaussian noise. It adds up like ε, and gives an ε for every δ.",
    "Noise scale": "How large the random noise added to each count is, in trips. Typical noise is about as large as its scale; noise "
    "of more than three times the scale occurs in about one count of twenty (geometric noise) or of 370 (Gaussian noise).",
    "Interval": "A range that contains the true count with the stated confidence. It accounts for the noise and for everything done "
    "afterwards. It is computed from the release alone, so it costs no privacy.",
    "Range": "Where a sum has no interval of its own, the ends of its parts’ intervals are added up. Errors of the parts partly "
    "cancel out, so a range is usually much wider than an interval would be. No confidence is stated for it.",
    "Table (feature)": "A way to group trips, for example by origin zone, destination zone and time. Each group’s count was measured "
    "with noise.",
    "Trip type": "One combination of all dimensions, for example origin, destination and period.",
    "Consistent": "The tables agree: adding up a more detailed one gives the coarser one exactly.",
    "Structural zero": "A combination that cannot occur, declared publicly beforehand: no noise is added there.",
    "Post-processing": "What is computed from the noisy counts alone, such as making them consistent, non-negative and whole. It "
    "cannot weaken the protection.",
}


def glossary() -> Html:
    return tag("dl", [[tag("dt", term), tag("dd", meaning)] for term, meaning in GLOSSARY.items()])
