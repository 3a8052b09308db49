"""Who "she" and "he" are at the beginning of a message: the one relative or companion that the speaker named before.

Nothing is put in where more than one of them could be meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_HER = r"wife|girlfriend|fianc[eé]e|daughter|sister|mother|mom|mum|aunt|niece|grandmother|grandma|granddaughter|mother-in-law|sister-in-law"
_HIM = r"husband|boyfriend|fianc[eé]|son|brother|father|dad|uncle|nephew|grandfather|grandpa|grandson|father-in-law|brother-in-law"
_KIN_EN = re.compile(
    rf"\b(?i:my|our)\s(?:(?:little|big|older|younger|elder|eldest|youngest|new|twin|late)\s)?(?:(?P<she>{_HER})|(?P<he>{_HIM}))\b(?!['’-])"
    r"(?:(?:\s(?:called|named)|,)?\s[A-Z][a-z]{1,20}(?=[\s,.!?;]))?"
)
_KIN_ZH = re.compile(
    r"我(?:的)?(?:(?P<she>老婆|妻子|太太|女朋友|女儿|姐姐|妹妹|妈妈?|母亲|奶奶|外婆|姥姥|姑姑|阿姨|岳母|婆婆)|"
    r"(?P<he>老公|丈夫|男朋友|儿子|哥哥|弟弟|爸爸?|父亲|爷爷|外公|姥爷|叔叔|舅舅|岳父|公公))"
    r"(?P<name>[\u4e00-\u9fff]{0,3}?)(?=[在是上去来会要想也刚从，。！、的跟和])"
)
_SHE_EN = re.compile(r"(?P<word>She|Her|He|His)\b(?P<cut>['’]s)?")


def people(text: str) -> dict[str, str]:
    """Return whom `text` makes "she" and "he" mean, in its own words ("my sister Ana"); only those who are alone so."""
    found: dict[str, dict[str, None]] = {"she": {}, "he": {}}
    for pattern in (_KIN_EN, _KIN_ZH):
        for match in pattern.finditer(text):
            found["she" if match["she"] else "he"][match.group()] = None
    return {word: next(iter(names)) for word, names in found.items() if len(names) == 1}


def named(text: str, known: Mapping[str, str]) -> str:
    """Return a statement with the one whom its first word means in that word's place; unchanged where that is not sure."""
    if text[:1] in "她他" and text[1:2] != "们":
        who = known.get("she" if text[0] == "她" else "he", "")
        return who + text[1:] if who.startswith("我") else text
    match = _SHE_EN.match(text)
    if match is None:
        return text
    who = known.get("she" if match["word"] in ("She", "Her") else "he", "")
    if not who or who.startswith("我"):
        return text
    who = who[:1].upper() + who[1:].replace(",", "")
    rest = text[match.end() :]
    if match["word"] in ("Her", "His"):
        return text if match["cut"] else f"{who}'s{rest}"
    return f"{who}{match['cut'] or ''}{rest}"
