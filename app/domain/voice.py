"""Statements in the first person, told about the speaker instead, so that a stored fact stands on its own.

A rewrite is made only where grammar leaves no doubt; else the words stay as they were said, behind the speaker's name.
"""

from __future__ import annotations

import re
from functools import lru_cache

import simplemma

_MOST = 3  #: words of the first person in one fact; with more, repeating the name reads worse than a quotation

_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+){0,3}|\s+|.", re.S)
_WE_OR_YOU = re.compile(
    r"\b(?:we|us|our|ours|ourselves|you|your|yours|yourself|yourselves|u|ya|y['’]all|let['’]s|ain['’]t|gonna|wanna|gotta)"
    r"(?:['’](?:re|ve|ll|d|s))?\b|[\"“”「『]",
    re.I,
)
FIRST_PERSON = re.compile(r"\b(?:I|i)\b(?!\.[a-z])(?:['’](?:m|ve|ll|d)\b)?|\b(?:my|mine|me|myself)\b", re.I)
_KEPT_VERBS = frozenset(
    "can could will would should must may might cannot can't won't couldn't wouldn't shouldn't mustn't did didn't had hadn't "
    "used ought was wasn't were weren't".split()
)
_CHANGED_VERBS = {
    "am": "is", "have": "has", "haven't": "hasn't", "do": "does", "don't": "doesn't", "go": "goes", "be": None,
}  # fmt: skip
PAST_FORMS = frozenset(
    "went got took made came saw met bought left began started ran won lost told said gave found felt spent flew drove wrote "
    "ate held sold taught thought became grew knew kept brought built caught chose drew drank fell forgot fought hid led "
    "lent lay paid rode rose sang sat sent slept spoke stood stole swam swore threw understood woke wore broke heard dealt "
    "dreamt burnt learnt meant bent bit blew dug froze hung laid lit shot shook shone showed struck stuck swept swung tore "
    "wound wept sought bore bound bled fed fled forgave shrank sank spun sprang stung strove withdrew overcame undertook".split()
)
_SAME_IN_PAST = frozenset(
    "put set let cut hit hurt cost quit shut spread split read bet beat burst cast bid fit rid shed".split()
)
_NOT_PAST = frozenset(
    "need feed bleed breed speed succeed proceed exceed heed seed weed embed shed shred wed indeed".split()
)
_VERBS = frozenset(  # common verbs, whose -ing forms the dictionary may lead elsewhere
    "prefer love like hate want need know think believe hope work live play eat drink own use study teach run walk drive speak "
    "write enjoy plan feel visit travel cook bake paint sing dance swim cycle commute volunteer collect watch listen wear sleep "
    "get make take see keep meet help learn start stop try look wish miss remember forget manage lead sell buy grow suffer rent "
    "refer answer offer wonder suggest recommend agree decide intend expect avoid dislike adore practise practice train train "
    "wake stay leave come call find give tell ask understand mean seem support follow share spend earn save pay build design "
    "develop maintain care worry fear trust admire identify consider struggle tend attend belong report".split()
)
_ADVERBS = frozenset(
    "never always just also still often sometimes even now then actually already only ever once soon almost mostly mainly "
    "perhaps maybe both sort kind hardly seldom rather quite too probably finally recently usually really".split()
)
_LY_VERBS = frozenset("rely apply reply supply fly comply imply multiply rally tally bully".split())
_PAST_PARTICIPLES = frozenset(
    "been had gone done seen got gotten taken made better known given written left heard met".split()
)
_TIME_PAST = re.compile(r"\b(?:yesterday|ago|last|earlier|once|when|in\s(?:19|20)\d\d)\b", re.I)
_SUBJECTLESS = re.compile(
    r"(?:just|recently|finally|currently|already|still|also|always|never|really|not|gonna|wanna|gotta|will|would|can|could|"
    r"should|been|have|had|am|was|love|like|hate|prefer|need|want|hope|plan|think|[A-Za-z]{2,18}(?:ing|ed))\b",
    re.I,
)
_AND_VERB = re.compile(
    r"(?:\b(?:and|or|but|then)|,)\s(?:[a-z]{2,12}ly\s|also\s|then\s|never\s|always\s|don['’]t\s)?([a-z]{2,14}(?:['’]t)?)\b"
)

_CHINESE_WORDS = re.compile(r"我们|咱|你|您|[“”「」『』\"]")
_CHINESE_I = re.compile(r"(?<![自忘唯大小])我(?![国方校军司辈党院市省县等])")


def english(text: str, name: str) -> str | None:
    """Return `text` with the speaker `name` in place of "I", "my" and "me"; None where that is not certain to be right."""
    if _WE_OR_YOU.search(text) or len(FIRST_PERSON.findall(text)) > _MOST or not FIRST_PERSON.search(text):
        return None
    tokens = _TOKEN.findall(text)
    out: list[str] = []
    at = 0
    while at < len(tokens):
        word = tokens[at].replace("’", "'")
        if word in ("I", "i") or re.fullmatch(r"[Ii]'(?:m|ve|ll|d)", word):
            told = _subject(tokens, at, name)
            if told is None:
                return None
            replacement, at = told
            out += replacement
            continue
        other = {"my": f"{name}'s", "mine": f"{name}'s", "me": name, "myself": "themselves"}.get(word.lower())
        out.append(tokens[at] if other is None else other)
        at += 1
    return "".join(out)


def lacks_subject(sentence: str) -> bool:
    """Tell whether an English sentence seems to leave its "I" out ("Just moved to Oslo.")."""
    first = re.match(r"[A-Za-z]{1,20}", sentence)
    if first is None:
        return not sentence[:1].isalpha()
    return first.group().lower() in PAST_FORMS or _SUBJECTLESS.match(sentence) is not None


def chinese(text: str, name: str) -> str | None:
    """Return `text` with the speaker `name` in place of 我; None where that is not certain to be right."""
    if _CHINESE_WORDS.search(text):
        return None
    found = len(_CHINESE_I.findall(text))
    if not 0 < found <= _MOST:
        return None
    return _CHINESE_I.sub(lambda _: name, text)


def _subject(tokens: list[str], at: int, name: str) -> tuple[list[str], int] | None:
    """Return what stands for the "I" at `at` and its verb, and where to go on."""
    before = [t.lower() for t in tokens[:at] if not t.isspace()]
    previous = before[-1] if before else ""
    if previous in (
        "do",
        "did",
        "am",
        "have",
        "should",
        "can",
        "could",
        "will",
        "would",
        "was",
        "than",
        "as",
        "had",
        "may",
        "shall",
    ):
        return None
    joined = previous in ("and", "or", "nor")  # "my wife and I live here": the verb stays a plural
    contracted = tokens[at].replace("’", "'").lower()[1:]
    skipped = at + 1
    while skipped < len(tokens) and (tokens[skipped].isspace() or _is_adverb(tokens[skipped])):
        skipped += 1
    verb = tokens[skipped].replace("’", "'") if skipped < len(tokens) else ""
    if contracted:
        ending = {"'m": "is", "'ve": "has", "'ll": "will"}.get(contracted)
        if contracted == "'d":
            participle = verb.lower() in _PAST_PARTICIPLES or verb.lower().endswith("ed")
            ending = "had" if participle and verb.lower() != "need" else "would"
        if joined and contracted in ("'m", "'ve"):
            return None
        return [f"{name} {ending}"], at + 1
    told = _agree(verb, " ".join(tokens), joined)
    if told is None:
        return None
    if told != verb and verb.lower() not in ("am",) and _shares_verb("".join(tokens[skipped + 1 :])):
        return None
    return [name, *tokens[at + 1 : skipped], told], skipped + 1


def _agree(verb: str, text: str, joined: bool) -> str | None:
    """Return the form of `verb` that goes with a name; None when unsure."""
    low = verb.lower()
    if not low.replace("'", "").isalpha():
        return None
    if low in _KEPT_VERBS or low in PAST_FORMS or (low.endswith("ed") and low not in _NOT_PAST):
        return verb
    if joined:
        return None
    if low in _CHANGED_VERBS:
        return _CHANGED_VERBS[low]
    if low in _SAME_IN_PAST:
        return verb if _TIME_PAST.search(text) else None
    return _third_person(low)


@lru_cache(maxsize=4096)
def _third_person(verb: str) -> str | None:
    """Return "moves" for "move"; None for what is no verb in its plain form."""
    known = verb in _VERBS or (simplemma.lemmatize(verb, lang="en") == verb and is_verb(verb))
    if len(verb) < 3 or (verb.endswith("ing") and verb not in _VERBS) or not known:
        return None
    if verb.endswith(("s", "x", "z", "ch", "sh", "o")):
        return verb + "es"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"


@lru_cache(maxsize=4096)
def is_verb(word: str) -> bool:
    """Tell whether `word`, in lower case and its plain form, has an -ing form that leads back to it."""
    stem = word[:-1] if word.endswith("e") and not word.endswith("ee") else word
    forms = (stem + "ing", stem + stem[-1] + "ing")
    return any(simplemma.is_known(f, lang="en") and simplemma.lemmatize(f, lang="en") == word for f in forms)


def _is_adverb(token: str) -> bool:
    low = token.lower()
    return low in _ADVERBS or (low.endswith("ly") and len(low) > 4 and low not in _LY_VERBS)


def _shares_verb(rest: str) -> bool:
    """Tell whether a second verb of the same subject may follow ("I live here and work there")."""
    for match in _AND_VERB.finditer(rest):
        word = match.group(1).replace("’", "'")
        if word in ("have", "do", "am", "don't", "haven't", "go") or _third_person(word) is not None:
            return True
    return False
