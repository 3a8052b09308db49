"""What an English sentence states: questions, requests, greetings and reactions fall away, facts inside them are kept."""

from __future__ import annotations

import re
from collections.abc import Collection

from app.domain import sentences, talk_en

_LEAD = re.compile(
    r"(?:(?:hi|hello|hey|hiya|wow|oo+h|oh|ah|ha|aw+|haha\w{0,8}|lol|omg|well|so|anyway|anyways|honestly|actually|btw|by\sthe\sway|fyi|"
    r"yeah|yep|yup|yes|no|nope|nah|ok|okay|sure|right|cool|great|nice|awesome|amazing|perfect|lovely|excellent|brilliant|wonderful|fantastic|yay|thanks|thank\syou|thx|congrats|congratulations|sorry|"
    r"good\s(?:morning|afternoon|evening)|of\scourse|absolutely|definitely|exactly|totally|alright|hmm+|um+|uh+|"
    r"just\sso\syou\sknow|for\syour\sinformation|quick\s(?:question|update|note)|update|note|(?:one|and)\s(?:more|last|other)\sthing)"
    r"(?:\s(?:there|again|so\smuch|a\slot|for\s(?:that|this|asking|the\s\w{1,20}))){0,2}\s?[,:!.…–—-]+\s{0,3}"
    r")",
    re.I,
)
_TELLS = re.compile(  # asks to remember, or whether one knows, what then is stated
    r"(?:please\s|pls\s)?(?:(?:can|could)\syou\s(?:please\s)?)?(?:remember|note|keep\sin\smind|bear\sin\smind|don['’]t\sforget|"
    r"be\saware|remind\sme)(?:\sthat|[,:])\s{0,3}"
    r"|(?:please\s)?(?:remember|don['’]t\sforget|note)\s(?=(?:i|i['’]m|i['’]ve|my|we|our)\b)"
    r"|(?:did|do)\s(?:you\sknow|i\s(?:tell|mention\sto)\syou)(?:\sthat)?\s(?=(?:i|i['’]m|i['’]ve|my|we|our)\b)",
    re.I,
)
_CALLED = re.compile(
    r"(?:wow|hey|hi|hello|thanks|thank\syou|oh|yeah|yes|no|congrats|great|cool|sure|ok|okay|so|aw+)(?:\s(?:so\smuch|a\slot|again))?,?\s([\w'’-]{2,30})\s?[,!.:–—-]\s{0,3}",
    re.I,
)
_AUX = r"(?:is|are|was|were|am|do|does|did|can|could|would|will|should|shall|may|might|have|has|had|isn't|aren't|don't|doesn't|didn't|can't|won't)"
_SUBJECT = (
    r"(?:i|you|we|he|she|it|they|there|this|that|these|those|the|my|your|our|his|her|their|anyone|anybody|someone|a|an)"
)
_QUESTION = re.compile(
    rf"(?:(?:what|who|whom|whose|where|when|why|how)(?:['’](?:s|re|d|ll))?\s{_AUX}\b|(?:what|who|where|how)['’]s\b|"
    rf"(?:what|which|how)\s(?:[a-z]{{2,14}}\s){{0,3}}{_AUX}\s{_SUBJECT}\b|{_AUX}\s{_SUBJECT}\b|how\s(?:about|come|to)\b|what\s(?:about|if)\b|"
    rf"any\s(?:ideas?|tips?|suggestions?|thoughts?|advice|recommendations?|chance|news|plans)\b|(?:anyone|anybody)\s(?:know|have|tried)\b)",
    re.I,
)
_STANDING_ORDER = re.compile(
    r"(?:please\s)?(?:always|never|from\snow\son|whenever|every\stime|in\s(?:the\s)?future|going\sforward)\b|"
    r"(?:please\s)?(?:don['’]t\s|do\snot\s|never\s)?(?:call\sme|address\sme|speak\sto\sme|talk\sto\sme)\b",
    re.I,
)
_CLAUSE_BREAK = re.compile(r",\s|;\s|\s[–—-]\s|—|\.\.\.\s?|\s(?=(?:and|but|so|because|since)\s)")
_CONJUNCTION = re.compile(
    r"(?:and|but|so|because|since|as|given\sthat|now\sthat|seeing\sthat|considering(?:\sthat)?|although|though|while|whereas)\s",
    re.I,
)
_STATEMENT_START = re.compile(
    r"(?:i|we|my|our|he|she|they|it|his|her|their|there|this|that|the)\b(?:['’](?:m|ve|ll|d|s|re))?\s?\S|[A-Z][a-z]{1,20}(?:['’]s)?\s\w",
    re.I,
)
_HYPOTHETICAL = re.compile(
    r"(?:if|when|whether|unless|what|how|which|where|who|that|to|or|like|such|for|with|in|at|on|from)\b", re.I
)
_WHO_IS = re.compile(
    r"\b(?P<who>(?:my|our)(?:\s[A-Za-z][\w'’-]{0,20}){1,4}?),?\s(?:who|which|that)\s(?P<what>(?:is|are|was|were|has|have|had|loves?|likes?|"
    r"hates?|lives?|works?|just|can['’]?t|doesn['’]t|don['’]t|will|needs?|wants?|turns?|prefers?|eats?|plays?|studies|recently|got|moved)\b[^?.!,;]{1,160})",
    re.I,
)
_WHERE_I = re.compile(
    r"(?P<prep>\b(?:in|at|near|around|on|to|from)\s)(?P<place>(?:the\s)?[A-Z][\w'’-]{1,30}(?:\s[A-Z][\w'’-]{1,30}){0,4}),?\s(?:where|which\sis\swhere)\s"
    r"(?P<who>I|we|my\s\w{2,20}|our\s\w{2,20})(?P<verb>(?:['’](?:m|ve|re|ll|d))?\s[^?.!,;]{2,160})"
)
_NAMED_KIN = re.compile(
    r"\b(?P<who>[Mm]y\s(?:(?:new|old|little|big|older|younger|best|twin)\s)?(?P<kind>wife|husband|partner|fianc[eé]e?|girlfriend|boyfriend|"
    r"son|daughter|brother|sister|mother|father|mom|mum|dad|friend|boss|manager|colleague|coworker|co-worker|neighbou?r|"
    r"cousin|aunt|uncle|niece|nephew|grandmother|grandfather|teacher|doctor|dentist|therapist|roommate|flatmate|dog|cat|puppy|"
    r"kitten|horse|rabbit|parrot|hamster))(?:\s(?:called|named)|,)?\s(?P<name>[A-Z][a-z]{1,20}(?:\s[A-Z][a-z]{1,20})?)\b"
)
_MY_THING = re.compile(
    r"\b(?:my|our)\s(?:[a-z][\w'’-]{0,20}\s){1,5}?(?:to|in|on|at|with|for|from|near|about|of|called|named|,)?\s?"
    r"(?:[A-Z][\w'’-]{1,30}|\d[\w:,.]{0,12})[^?.!,;]{0,80}"
)
_ASKS_LATER = re.compile(
    r",\s(?:and\s|so\s|but\s)?(?:(?:can|could|would|will)\s(?:you|anyone)|(?:what|how|which|where)\s(?:should|do|can|could|would)|any\s(?:ideas|tips|advice))\b",
    re.I,
)
_OFFER = re.compile(
    r"\b(?:would\syou\s(?:like|prefer\sme)|(?:do|did)\syou\s(?:want|need)|want\sme\sto|(?:shall|should|can|may|could)\si|need\s(?:any\s|some\s|more\s)?help|"
    r"anything\selse|(?:how|what)\sabout\s[\"'“‘]|sounds?\sgood|is\sthere\sanything|does\sthat|how\sare\syou|how['’]s\sit|what['’]s\s(?:up|on\syour\smind)|"
    r"(?:other|more)\squestions|right\?|isn['’]t\sit|ok(?:ay)?\?)",
    re.I,
)
_ASKS_SOMETHING = re.compile(r"\b(?:you|your|who|whose|what|where|when|which|why|how)\b", re.I)
_JOINT = re.compile(r"(?:and|but|so|also|then|or|now|next|first)\s(?:also\s|then\s)?", re.I)
_TAG = re.compile(
    r",\s(?:right|huh|eh|ok|okay|(?:is|are|do|does|did|was|were|has|have|can|could|would|will)(?:n['’]t)?\s(?:i|you|he|she|it|they|we))\s?\?{1,3}$",
    re.I,
)


def statements(text: str, names: Collection[str] = ()) -> list[str]:
    """Return what the sentence `text` states, in its own words where possible; nothing for mere talk.

    `names` are the speakers' first names, which carry no information when they are called out.
    """
    body = _without_lead(text, names)
    if tells := _TELLS.match(body):
        body = body[tells.end() :].rstrip(" ?")
    if not body or talk_en.is_talk(body, names):
        return []
    if is_standing(body):
        return [body]
    bare = _without_conjunction(body, _JOINT)
    asks, orders = is_question(bare), talk_en.is_order(bare)
    if not asks and not orders:
        return (_inside(body) if _ASKS_LATER.search(body) else []) or [body]
    return _inside(body)


def answer(text: str, names: Collection[str] = ()) -> list[str]:
    """Return `text`, the reply to a question, even where it is no sentence ("Peanuts."); nothing for yes, no and thanks."""
    nothing = talk_en.is_reaction(text, names) or is_question(text) or talk_en.is_order(text)
    return [] if nothing else [text.strip()]


def is_standing(text: str) -> bool:
    """Tell whether a sentence says how the speaker wants to be treated from now on."""
    return _STANDING_ORDER.match(text) is not None and not text.rstrip().endswith("?")


def asks_about_you(question: str) -> bool:
    """Tell whether an answer to this question says something of the one who gives it; an offer's answer does not."""
    return _OFFER.search(question) is None and _ASKS_SOMETHING.search(question) is not None


def is_question(text: str) -> bool:
    """Tell whether an English sentence asks."""
    bare = text.rstrip(" \"'”’)*_!.") or text
    return bare.endswith("?") or "?" in text[-6:] or _QUESTION.match(text) is not None


def _without_lead(text: str, names: Collection[str]) -> str:
    body = text.strip()
    for _ in range(4):
        called = _CALLED.match(body)
        if called and called.group(1).casefold() in names:
            body = body[called.end() :]
        lead = _LEAD.match(body)
        shorter = body[lead.end() :] if lead else body
        first = re.match(r"[\w'’-]{1,30}(?=\s?[,!]\s?)", shorter)
        if first and first.group().casefold() in names:
            shorter = shorter[first.end() :].lstrip(" ,!")
        if shorter == body:
            break
        body = shorter.strip()
    return body


def _without_conjunction(text: str, pattern: re.Pattern[str] = _CONJUNCTION) -> str:
    match = pattern.match(text)
    return text[match.end() :] if match else text


def _inside(body: str) -> list[str]:
    """Return the statements that stand inside a question or a request."""
    tag = _TAG.search(body)
    if tag and not _QUESTION.match(body) and sentences.length(body[: tag.start()]) >= 3:
        return [body[: tag.start()]]
    found = _clauses(body)
    if found:
        return found
    if match := _WHERE_I.search(body):
        verb = match["verb"]
        moved = re.match(
            r"(?:['’]\w{1,2}\s(?:just\s)?|\s(?:just\s|recently\s)?)(?:moved|relocated|move|moving|flew|travel\w{0,4}|went|going)\b",
            verb,
        )
        if moved:
            return [f"{match['who']}{verb[: moved.end()]} to {match['place']}{verb[moved.end() :]}"]
        return [
            f"{match['who']}{verb} {'in' if match['prep'].strip() in ('to', 'from', 'near', 'around') else match['prep'].strip()} {match['place']}"
        ]
    if match := _WHO_IS.search(body):
        return [f"{match['who']} {match['what']}".strip()]
    if match := _NAMED_KIN.search(body):
        return [f"{match['who']} is called {match['name']}"]
    if match := _MY_THING.search(body):
        return [match.group().strip()]
    return []


def _clauses(body: str) -> list[str]:
    """Return the longest run of clauses at the beginning or the end that states something by itself."""
    breaks = [(m.start(), m.end()) for m in _CLAUSE_BREAK.finditer(body)][:24]
    kept: list[str] = []
    head = _head(body, breaks)
    if head is not None:
        kept.append(head)
    tail = _tail(body, breaks)
    if tail is not None and tail != head:
        kept.append(tail)
    return kept


def _head(body: str, breaks: list[tuple[int, int]]) -> str | None:
    """The declarative part before a question: "I'm off to Rome, any tips?" """
    for start, end in breaks:
        rest = _without_conjunction(body[end:])
        if _asks_or_orders(rest):
            left = body[:start].strip(" ,")
            left = _without_conjunction(left)
            return left if _states(left) else None
    return None


def _tail(body: str, breaks: list[tuple[int, int]]) -> str | None:
    """The declarative part after a question or request: "Find me a gift, my mum turns 60 on Friday." """
    for start, end in breaks:
        rest = body[end:].rstrip(" ?!.")
        if _CONJUNCTION.match(rest):
            rest = _without_conjunction(rest)
        elif body[start:end].isspace():
            continue
        if _states(rest) and not _asks_or_orders(body[:start]) and start > 0:
            continue
        if _states(rest) and _asks_or_orders(body[:start]):
            return rest
    because = re.search(
        r"\b(?:because|since|as|given\sthat|now\sthat)\s(?=(?:i|i['’]\w{1,2}|we|we['’]\w{1,2}|my|our)\s)", body, re.I
    )
    if because:
        rest = re.split(
            r",\s(?=(?:can|could|would|what|which|how|is|are|do|does|should|where|who)\b)", body[because.end() :]
        )[0]
        return rest.rstrip(" ?!.") if _states(rest) else None
    return None


def _asks_or_orders(clause: str) -> bool:
    clause = clause.strip()
    return (
        _QUESTION.match(clause) is not None
        or talk_en.is_order(clause)
        or re.match(
            r"(?:what|which|who|where|when|why|how|any|please|can|could|would|should|do|does|is|are|help|got|know|maybe\syou)\b",
            clause,
            re.I,
        )
        is not None
    )


def _states(clause: str) -> bool:
    """Tell whether a clause, cut out of a question, tells something about the speaker or theirs."""
    if sentences.length(clause) < 3 or _HYPOTHETICAL.match(clause) or _asks_or_orders(clause):
        return False
    return _STATEMENT_START.match(clause) is not None and (
        talk_en.STATES_SELF.search(clause) is not None
        or (talk_en.has_verb(clause) and re.match(r"[A-Z]|(?:he|she|they|his|her|their)\b", clause) is not None)
    )
