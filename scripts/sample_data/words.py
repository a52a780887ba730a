"""What customers write and what breaks: faults by category, and the pieces of comments."""

from __future__ import annotations

import random

_POWER = ("battery drains fast", "does not power on", "charging port fails")
FAULTS: dict[str, tuple[str, ...]] = {
    "Headphones": (*_POWER, "no sound on one side", "microphone is silent"),
    "Laptops": (*_POWER, "overheats", "loose hinge", "loose hinge", "dead pixels"),
    "Phones": (*_POWER, "cracked screen", "overheats"),
    "Tablets": (*_POWER, "cracked screen", "dead pixels"),
    "Cameras": ("battery drains fast", "does not power on", "lens does not focus", "dead pixels"),
    "Speakers": ("does not power on", "no sound on one side", "charging port fails", "rattles at high volume"),
    "Monitors": ("does not power on", "dead pixels", "screen flickers"),
    "Wearables": (*_POWER, "cracked screen", "strap breaks"),
}
GOOD: dict[str, tuple[str, ...]] = {
    "Headphones": ("Noise cancelling makes my train ride bearable", "Comfortable even after four hours", "Calls are clear in the wind"),
    "Laptops": ("Boots in seconds and stays quiet", "The keyboard is a joy to type on", "Gets through a working day on one charge"),
    "Phones": ("Night photos are surprisingly sharp", "The battery lasts two days for me", "Light, and the screen is bright in the sun"),
    "Tablets": ("My children use it every day without trouble", "Good for drawing, the pen has no lag", "Films look great on it"),
    "Cameras": ("Autofocus finds my dog every time", "Colours straight from the camera are lovely", "Small enough for hiking"),
    "Speakers": ("Fills the whole kitchen with sound", "Bass is strong without booming", "Survived a day at the beach"),
    "Monitors": ("Sharp text and no glare", "Colours were right out of the box", "The stand is solid and turns easily"),
    "Wearables": ("Sleep tracking matches how I feel", "I forget that I wear it", "Swims with me three times a week"),
}
BAD: dict[str, tuple[str, ...]] = {
    "Headphones": ("The left side went quiet after a month", "Ear cushions get warm in summer", "Connection drops in my hallway"),
    "Laptops": ("The hinge feels loose already", "Fan is loud during video calls", "Gets hot on the lap"),
    "Phones": ("Too big for one hand", "Stopped charging after a month", "The back scratches easily"),
    "Tablets": ("Slow with more than three apps open", "Charging takes the whole night", "The cover does not fit properly"),
    "Cameras": ("The menu is a maze", "Battery is empty after an afternoon", "The lens cap fell off in the first week"),
    "Speakers": ("Rattles at high volume", "The app forgets my stations", "Cable is too short"),
    "Monitors": ("One dead pixel in the middle", "Flickers when the laptop wakes up", "The buttons are hard to reach"),
    "Wearables": ("The strap irritates my skin", "Steps are counted on the bus", "Needs charging every night"),
}
ENDS_GOOD = ("", "", "Would buy again.", "Great value for the price.", "Arrived a day early.", "Friendly advice in the Utrecht store.")
ENDS_BAD = ("", "", "Arrived late.", "The manual is hard to follow.", "Service answered after three days.", "I sent it back.")
ENDS_MIXED = ("It is all right for the price.", "Does what it should, no more.", "Support was helpful, though.")


def comment(rng: random.Random, category: str, rating: int) -> str:
    """One or two sentences that fit the category and the rating."""
    if rating == 3:
        first, end = rng.choice((*GOOD[category], *BAD[category])), rng.choice(ENDS_MIXED)
    elif rating > 3:
        first, end = rng.choice(GOOD[category]), rng.choice(ENDS_GOOD)
    else:
        first, end = rng.choice(BAD[category]), rng.choice(ENDS_BAD)
    return f"{first}. {end}".strip()
