"""What an English sentence states: questions, requests, greetings and reactions fall away, facts inside them are kept."""

from __future__ import annotations

import re
from collections.abc import Collection

from app.domain import sentences

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")

_LEAD = re.compile(
    r"(?:(?:hi|hello|hey|hiya|wow|oh|ah|aw+|haha\w{0,8}|lol|omg|well|so|anyway|anyways|honestly|actually|btw|by\sthe\sway|fyi|"
    r"yeah|yep|yup|yes|no|nope|nah|ok|okay|sure|right|cool|great|nice|thanks|thank\syou|thx|congrats|congratulations|sorry|"
    r"good\s(?:morning|afternoon|evening)|of\scourse|absolutely|definitely|exactly|totally|alright|hmm+|um+|uh+|"
    r"just\sso\syou\sknow|for\syour\sinformation|quick\s(?:question|update|note)|update|note|one\smore\sthing)"
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
_ORDER = re.compile(
    r"(?:please|pls|kindly)\b|(?:help|tell|give|show|send|remind|teach|let|get|find|walk|convince)\s(?:me|us|the\suser)\b|"
    r"(?:ignore|output|write|rewrite|draft|fix|translate|summari[sz]e|explain|generate|create|calculate|compute|convert|compare|"
    r"describe|suggest|recommend|analy[sz]e|provide|make|add|remove|delete|rephrase|proofread|refactor|implement|debug|search|"
    r"look\sup|check|print|return|repeat|continue|imagine|pretend|act|answer|respond|reply|consider|choose|pick|brainstorm|"
    r"outline|design|organi[sz]e|schedule|cancel|set|turn|play|open|close|use|try|enjoy|tell|say|forget|keep|take|have|don['’]t|do|"
    r"be|go|come|stay|let|wish|look|see|wait|listen|stop|start|give|show|read|find|ask|call|email|order|book|plan|list|format)\s"
    r"(?=(?:me|us|a|an|the|my|this|that|these|those|some|all|any|it|them|him|her|your|our|to|for|in|on|at|up|out|out|like|as|"
    r"with|what|how|why|who|if|more|another|one|two|three|again|down|into|from|about|care|safe|yourself|everything|be|do|"
    r"give|worry|forget|hesitate|let|[A-Z\"'“`])\b|[\"'“`])|"
    r"(?:i|we)(?:['’]d|\swould)\s(?:like|love|appreciate)\s(?:you|it\sif\syou|your|some\s(?:help|advice|tips|suggestions)|"
    r"(?:to\s(?:know|hear|see|get|understand)))\b|i\s(?:want|need|expect)\syou\b|"
    r"i(?:['’]m|\sam|\swas)\s(?:just\s)?(?:wondering|curious)\b|(?:i\s)?(?:need|could\suse|want)\s(?:some\s|your\s|a\s)?"
    r"(?:help|advice|tips|suggestions|ideas|assistance|recommendations)\b|"
    r"looking\sforward\sto\s(?:hearing|your)\b|(?:keep|take)\s(?:up|it|care|going)\b|good\sluck\b|have\s(?:a|fun)\b",
    re.I,
)
_STANDING_ORDER = re.compile(
    r"(?:please\s)?(?:always|never|from\snow\son|whenever|every\stime|in\s(?:the\s)?future|going\sforward)\b|"
    r"(?:please\s)?(?:call\sme|address\sme|speak\sto\sme|talk\sto\sme)\b",
    re.I,
)
_META = re.compile(
    r"(?:that|this|it)\s(?:still\s)?(?:did\s?n['’]?o?t|does\s?n['’]?o?t|works?|worked|isn['’]t)\s?(?:work|help|right|correct|now|working)?\s?(?:[.!]{0,3}$|,\s(?:the\s)?same\s)|"
    r"(?:i['’]m\s)?(?:still\s)?(?:getting\s|got\s|seeing\s|have\s)?(?:the\s)?(?:same|another)\s(?:error|problem|issue|result)\b|"
    r"(?:try|do\sit|run\sit|say\sthat)\sagain\b|(?:you['’]re|you\sare)\s(?:right|wrong|welcome|awesome|amazing|the\sbest|so\s\w{1,15})\s?[.!]*$|"
    r"(?:here['’]?s|here\s(?:is|are)|this\sis)\s(?:my|the|some)\s(?:code|log|output|error|file|text|draft|data|trace)|"
    r"(?:see|as)\s(?:above|below|attached)|(?:the|your)\s(?:answer|output|response|code|result)\s(?:is|was|above)\b|"
    r"as\san\sai\b|i\s(?:don['’]t|do\snot)\s(?:understand|get)\s(?:your|this|that|it)\b|"
    r"(?:i\shope|hope)\s(?:this|that|it|you)\b|"
    r"i(?:['’]m|\sam)\s(?:glad|happy|so\sglad|so\shappy|sorry|here|excited)\s(?:to\s(?:hear|help|see)|for\syou|you|that\syou|about\sthat)\b|"
    r"(?:let|lemme)\s(?:me\s)?know\b|(?:can['’]t|cannot)\swait\sto\s(?:hear|see\s(?:it|you|what|how))\b|"
    r"(?:thanks|thank\syou|thx|cheers|many\sthanks|appreciate\sit|i\s(?:really\s)?appreciate\s(?:your|the|it|that))\b(?!.{0,80}\b(?:i|i['’]m|i['’]ve|my|we)\b)|"
    r"(?:good|great|nice|lovely|so\s(?:good|nice|great))\s(?:to|seeing|hearing|talking|chatting|catching)\b|"
    r"(?:so\s|really\s)?(?:glad|happy|sorry|proud)\s(?:to\s(?:hear|help|see)|you|that\syou|it\s(?:helped|worked)|about|for\syou|of\syou)\b|"
    r"(?:so|how|really|pretty|super)\s(?:cool|great|nice|awesome|amazing|good|sweet|inspiring|lovely|wonderful)\s(?:that|to|you|of)\b|"
    r"love\s(?:that|the|this|your|those|these|how)\s(?:\w+\s?){1,5}[!.]*$|(?:appreciate|loving)\s(?:it|you|your|that|the)\b|"
    r"your\s\w{3,14}\s(?:means?|really\smeans?)\s(?:a\slot|so\smuch|the\sworld|everything)\b|i(?:['’]m|\sam)\s(?:always\s|just\s)?(?:here|there)\s(?:for|to\s(?:support|help))\b|"
    r"any\s?time\syou\b|(?:ok|okay|sure|alright)[,.]?\s(?:i\s)?(?:will|['’]ll)\s(?:try|do|check|see)\b|(?:congrats|congratulations)\b|"
    r"(?:what|how)\s(?:an?\s)?[a-z]{3,14}(?:\s[a-z]{2,12}){0,3}\s?[!.]+$|(?:talk|see|catch|speak)\s(?:to\s|up\s)?(?:you\s)?(?:soon|later|then)\b",
    re.I,
)
_REACTION = frozenset(
    "a about absolutely again agree agreed ah all alright always am amazing an and anyway are as aw aww awesome awful bad be "
    "beautiful best bet better brilliant but bye can can't care catch cheers come congrats cool could course cute day days deal "
    "definitely did do don't done enjoy even exactly excellent exciting fair fantastic fascinating feel few fine for forget "
    "friend fun funny genius get glad go goes going good goodbye gosh got great guess guys ha haha happy hard have hear hello "
    "hey hi him hmm hope how huge i i'll i'm idea impressive in incredible indeed inspiring interesting is isn't it it'll it's "
    "job just keep kidding kind know later like lol look looks lot lots love lovely luck makes man many matter maybe me mean "
    "meant mind more morning much my never next nice night no nope not now of oh ok okay omg on one oops ouch perfect please "
    "pleasure point power pretty problem proud question quite rad really relatable right rock sad same saying see seems sense "
    "she should shame so some sorry sound sounds soon spot star stuff stunning such super sure surprised sweet take talk "
    "terrific thank thanks that that'd that's the their them then there they thing things think thoughtful this those though "
    "time to today too totally touching tough tragic true truth understand up very wait was way welcome well what what's "
    "whatever will wish with without wonderful word work worries worry worth would wow yay yeah yep yes you you'll you're "
    "you've your awe incredible adorable gorgeous breathtaking delicious yummy hilarious".split()
)  # fmt: skip
_OPINION_OF_YOU = re.compile(
    r"(?:you(?:['’]re|['’]ve|['’]ll|['’]d)?|your|that|that['’](?:s|ll|d)|it['’]?s?|sounds?|looks?|seems?|so|such|this)\b",
    re.I,
)
_JUDGEMENTS = frozenset(
    "great awesome amazing cool nice lovely wonderful fantastic beautiful perfect incredible impressive inspiring sweet "
    "fun exciting tough delicious gorgeous adorable thoughtful stunning brilliant proud glad happy excellent terrific "
    "interesting good important helpful special cute yummy relaxing peaceful blast guts worth".split()
)
_STATES_SELF = re.compile(r"\b(?:i|i['’](?:m|ve|ll|d)|my|me|we|we['’](?:re|ve|ll|d)|our|us|mine)\b", re.I)
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
_JOINT = re.compile(r"(?:and|but|so|also|then|or)\s(?:also\s|then\s)?", re.I)
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
    if not body or _is_noise(body, names):
        return []
    if _STANDING_ORDER.match(body) and not body.rstrip().endswith("?"):
        return [body]
    bare = _without_conjunction(body, _JOINT)
    asks, orders = is_question(bare), _ORDER.match(bare) is not None
    if not asks and not orders:
        return (_inside(body) if _ASKS_LATER.search(body) else []) or [body]
    return _inside(body)


def answer(text: str, names: Collection[str] = ()) -> list[str]:
    """Return `text`, the reply to a question, even where it is no sentence ("Peanuts."); nothing for yes, no and thanks."""
    words = [w.replace("’", "'").lower() for w in _WORD.findall(text)]
    told = [w for w in words if w not in _REACTION and w not in names]
    return [text.strip()] if told and not is_question(text) and not _META.match(text) and not _ORDER.match(text) else []


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


def _is_noise(body: str, names: Collection[str]) -> bool:
    words = [w.replace("’", "'").lower() for w in _WORD.findall(body)]
    words = [w for w in words if w.removesuffix("'s") not in names]
    if not words or (sentences.length(body) < 2 and not any(c.isdigit() for c in body)):
        return True
    if _META.match(body):
        return True
    if len(words) <= 10 and all(w in _REACTION for w in words):
        return True
    about_self = _STATES_SELF.search(body) is not None
    return (
        len(words) <= 9
        and not about_self
        and _OPINION_OF_YOU.match(body) is not None
        and not _JUDGEMENTS.isdisjoint(words)
    )


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
        or _ORDER.match(clause) is not None
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
        _STATES_SELF.search(clause) is not None
        or re.match(r"[A-Z]|(?:he|she|they|his|her|their)\b", clause) is not None
    )
