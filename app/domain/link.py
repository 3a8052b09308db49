"""Named things in a text: people, places, works, products, identifiers. The same reading for memories and for queries."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

import rjieba
import simplemma

from app.domain import voice
from app.model import Entity

MOST = 32  #: entities of one text; the first ones are kept
_LONGEST = 80  #: characters of a name

_IDENTIFIER = re.compile(
    r"(?<![\w@.])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"  # an address of mail
    r"|\bhttps?://[^\s<>\"'，。；）)]{1,200}"
    r"|(?<![\w.])(?:[A-Z]{1,8}[-_#]?\d{2,12}(?:[-_][A-Z0-9]{1,12}){0,3}|\d{1,6}[-_][A-Z][A-Z0-9]{0,10})(?![\w])"  # ORD-2231, QF1204
    r"|(?<![\w.])v?\d{1,4}(?:\.\d{1,5}){2,3}(?![\w.])"  # a version or an address of a host
    r"|(?<!\w)[@#][A-Za-z_][\w-]{1,38}"
    r"|#\d{3,12}\b"
)
_QUOTED = re.compile(
    r"[\"“]([^\"“”\n]{2,60})[\"”]|《([^《》\n]{1,60})》|「([^「」\n]{2,60})」|『([^『』\n]{2,60})』|(?<!\w)'([A-Z][^'\n]{2,50})'(?!\w)"
)
_L = r"A-Za-zÀ-ÖØ-öø-ÿĀ-žА-яЁё"  # letters of names; Han and kana have rules of their own
_U = r"A-ZÀ-ÖØ-ÞА-ЯЁ"
_NAME_WORD = (
    rf"(?:(?:[{_U}]|St|Dr|Mr|Mrs|Ms)\.(?=\s?[{_U}])|[{_L}](?:[{_L}\d&]|['’](?!s\b)(?=[{_L}])|-(?=[{_L}\d])){{0,40}})"
)
_RUN = re.compile(
    rf"(?<![{_L}\d'’.-])(?=[{_U}]|[a-z]{{1,3}}[A-Z])(?:{_NAME_WORD})"
    rf"(?:(?:['’]s)?[ ](?:(?:of[ ]the|of|de|la|von|van|der|du|and|&)[ ])?(?=[{_U}]){_NAME_WORD}"
    rf"|[ ]\d{{1,4}}(?![\w.,:%]|\s(?:years|days|weeks|months|hours|minutes|people|times))){{0,8}}"
)
_CAMEL = re.compile(r"[a-z]{1,10}[A-Z]\w{1,20}|[A-Z][a-z]{1,20}[A-Z]\w{0,20}")

_NEVER = frozenset(
    "i a an the and or but so if it he she they we you this that these those there here what when where who why how which "
    "my your his her our their its is are was were be am do does did have has had will would can could should may might must "
    "not no yes ok okay hi hello hey thanks thank please sorry well oh ah wow yeah yep also just then now today tomorrow "
    "yesterday tonight user assistant monday tuesday wednesday thursday friday saturday sunday january february march april "
    "june july august september october november december jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu "
    "thur thurs fri sat sun am pm mr mrs ms dr prof sir madam mom mum dad grandma grandpa one two three first second next last "
    "api pdf url csv json html css sql ui ux ai pr id faq api pdf url csv json html css sql ui ux ai pr id faq ps fyi btw lol omg asap tbd etc vs eg ie in on at to of for from with by as up down out all some any both each every more "
    "most let lets don't can't i'm i've i'll i'd it's that's im english".split()
)
_GIVEN_NAMES = frozenset(  # first names that are words too
    "mark will rose grace hope faith joy frank bill rob bob pat sue jack drew chase dean grant amber jade ruby pearl lily daisy "
    "iris ivy violet olive hazel penny carol robin jay art gene guy max miles nick pierce ray rich rusty wade cliff clay brook "
    "dawn eve heather holly melody mercy misty sage sandy summer wendy aria sol dale glen lance peter victor christian "
    "basil ginger jasmine ray bob tom tim jim kim ken ben dan don ron sam ted meg mel lee jean jo".split()
)
_TITLES = re.compile(
    r"^(?:mr|mrs|ms|dr|prof|sir|the|my|our|his|her|their|its|this|that|a|an|and|hey|hi|dear)\.? ", re.I
)
_ENDS_NAME = frozenset("will i may mar jan sun one two three first last second day".split())  # Mary I, Big Sun
_ROLES = re.compile(r"^(?:CEO|CFO|CTO|COO|VP|HR|PM|MD|PI) (?=[A-Z])")
_ZH_COMMON = frozenset(
    "高潮 高兴 明白 安静 安全 康复 文学 文明 文化 温暖 温馨 金黄 金融 和谐 平均 平安 平静 幸福 时间 全麦 双方 应该 施工 祝福 祝愿 宫保鸡 "
    "谢谢 荣幸 权衡 金额 金钱 黄金 黄色 白色 黑色 马上 高级 高中 高考 高手 方向 方便 方法 方案 方面 温度 温柔 华丽 华人 安排 安装 安心 "
    "成功 成本 成绩 成为 程序 程度 花园 花园里 花费 花生 水果 水平 牛奶 牛肉 鱼肉 夏天 秋天 冬天 元素 元旦 计划 计算 季节 关系 关注 "
    "古老 古典 古城 宝贵 宝宝 包括 包装 解决 解释 项目 蓝色 经验 经济 经理 连衣裙 连续 路线 路上 江湖 常常 常见 田园 石头 万一 容易 "
    "老师 老板 老家 老公 老婆 老人 老虎 小时 小说 小心 小姐 小孩 小狗 小猫 小组 小区 小学 小吃 阿姨 博客 新西兰语 索引 卫星 冰淇淋 "
    "城市 美丽 东西 深度 登山 山脉 山坡 雪山 海滩 海滨 湖泊 冰川 吉他 攀岩 长跑 太多 新鲜 青春 内省 上山 中断 日志 印本 加仑 非营利 国内 "
    "国家 公园 市场 地方 中心 北方 南方 东方 西方 西部 东部 南部 北部 滑雪 森林 沙滩 农村 乡村 山区 西式 中式 英语 汉语 法语 西餐 沙拉 "
    "西兰花 西红柿 毛血旺 巧克力 沙发 麦克风 音乐会 古典文学 科普 道德 友谊 拓宽 美味 卡片 聊天 家族 论文".split()
)
_ZH_SURNAMES = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许韩冯邓曹彭曾肖田董潘袁蔡蒋余于杜叶程魏苏吕丁任卢姚沈钟姜崔谭陆范汪廖石"
    "金韦贾夏付方邹熊白孟秦邱侯江尹薛闫段雷龙黎史陶贺毛郝顾龚邵万覃武钱戴严莫孔向常汤温康施牛樊葛邢安齐伍庞颜庄聂章鲁岳翟申欧耿关焦"
    "柳甘祝包宁尚符舒阮纪梅童凌毕单季裴霍涂成苗谷盛曲冉骆蓝路游辛靳管柴蒙鲍华喻祁蒲房滕屈饶牟艾尤阳穆农司卓古吉缪简车项连芦麦褚娄窦"
    "戚岑党宫费卜冷晏席卫米柏宗桂全佟应臧闵苟邬边卞姬师仇栾隋商刁沙荣巫寇桑郎甄丛仲虞敖明池查麻苑迟邝云宣"
)
_ZH_SOUNDS = frozenset(  # characters that write foreign names
    "阿埃艾爱安昂奥巴白班邦保鲍贝本比彼伯勃博布查茨达大代丹道得德登迪蒂丁杜顿多恩尔法菲费芬佛弗夫福富盖甘冈戈格葛古圭哈海汉豪赫亨洪"
    "霍基吉加贾杰金卡凯坎康考柯科克肯库夸拉莱兰朗劳勒雷蕾里理丽利莉列林琳龙隆卢鲁伦罗洛马玛迈曼芒毛梅门蒙米密摩莫墨姆穆纳娜奈南内尼妮"
    "涅宁纽努诺欧帕派潘庞佩彭皮珀普其奇齐恰乔切琴丘热若撒萨塞桑瑟森沙莎山尚舍申圣施什史士舒斯丝司苏索塔泰坦汤唐陶特提廷图托瓦万威韦维"
    "魏温文翁沃乌武西希锡夏肖谢辛休逊雅亚延扬耶伊依因英雍尤于约宰赞泽扎詹朱兹佐"
)
_HAN = re.compile(r"[\u4e00-\u9fff]")
_ZH_NAME = re.compile(
    r"(?:我叫|名叫|叫做|名字(?:叫|是)|叫|姓名[:：是])([\u4e00-\u9fff]{2,4}?)(?=[，。！？,.!?的在是和跟、；]|$)"
)
_ZH_ORG = re.compile(
    r"(?:在|叫|是|加入|入职|去|进)了?([\u4e00-\u9fff]{2,6}(?:公司|集团|大学|学院|医院|银行|科技|中学|小学|研究所|餐厅|咖啡馆|超市|幼儿园))"
)


def normal(name: str) -> str:
    """Return the form by which a name is the same thing: folded case, no possessive, no title, single spaces."""
    text = unicodedata.normalize("NFKC", name).replace("’", "'").strip(" \t\n.,;:!?'\"“”()[]《》「」")
    text = " ".join(text.split()).casefold().removesuffix("'s").removesuffix("'")
    return _TITLES.sub("", text)


def entities(text: str) -> tuple[Entity, ...]:
    """Return the named things of `text` in the order of their first mention, each once, at most `MOST`."""
    found: dict[str, tuple[int, Entity]] = {}
    for at, name, kind in _candidates(text):
        norm = normal(name)
        if not _is_sound(norm):
            continue
        if norm not in found or at < found[norm][0]:
            found[norm] = (at, Entity(name.strip(), norm, kind))
    ordered = [entity for _, entity in sorted(found.values(), key=lambda pair: pair[0])]
    return tuple(_without_parts(ordered))[:MOST]


def _candidates(text: str) -> Iterator[tuple[int, str, str]]:
    for match in _IDENTIFIER.finditer(text):
        yield match.start(), match.group().rstrip(".,"), "IDENTIFIER"
    for match in _QUOTED.finditer(text):
        words = next(g for g in match.groups() if g is not None)
        if (
            len(words.split()) <= 6
            and (text[match.start()] in "《「『'" or words[:1].isupper() or _HAN.search(words))
            and len(words) <= 40
        ):
            yield match.start(), words, "QUOTED"
    yield from _capitalised(text)
    if _HAN.search(text):
        yield from _chinese(text)


def _capitalised(text: str) -> Iterator[tuple[int, str, str]]:
    """Runs of capitalised words; a word that opens a sentence counts only if something shows that it is a name."""
    lower = frozenset(re.findall(r"(?<![\w'’-])[a-z]{2,20}\b", text))
    for match in _RUN.finditer(text):
        start, words = match.start(), match.group().split(" ")
        if _opens_sentence(text, start) and not _HAN.match(text[match.end() : match.end() + 2].lstrip()):
            while words and not _opens_as_name(words, lower, text[match.end() : match.end() + 24]):
                start += len(words[0]) + 1
                words = words[1:]
                if words and not _is_function_word(words[0]):
                    break
        while words and ((_is_function_word(words[0]) and words[0] != "Will") or words[0][0].isdigit()):
            start += len(words[0]) + 1
            words = words[1:]
        while words and words[-1].casefold() in _NEVER and words[-1].casefold() not in _ENDS_NAME:
            words = words[:-1]
        for offset, part in _parts(" ".join(words)):
            part = _ROLES.sub("", part)
            if part and (part == "Will" or part.casefold() not in _NEVER):  # opening a sentence it was cut off above
                yield start + offset, part, "PROPER"


def _parts(run: str) -> Iterator[tuple[int, str]]:
    """Divide "Ann and Bob" and "Crestmoor's Dialogue Engine"; keep "Rock and Roll Museum"."""
    at = 0
    for piece in re.split(r"(['’]s (?=[A-Z])| and (?=[A-Z]))", run):
        if not re.match(r"['’]s | and ", piece):
            yield at, piece
        at += len(piece)


def _opens_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 6) : start].rstrip(" \t\"'“‘(*_-")
    return not before or before[-1] in ".!?。！？:：;；\n…—–" or text[start - 1 : start] == "\n"


def _is_function_word(word: str) -> bool:
    low = word.replace("’", "'").casefold().rstrip(".")
    return low in _NEVER or low.split("'")[0] in _NEVER


def _opens_as_name(words: list[str], lower: frozenset[str], after: str) -> bool:
    """Tell whether the first word of a sentence is (part of) a name, although every first word has a capital."""
    first = words[0].replace("’", "'").casefold()
    if _is_function_word(first):
        return False
    if first in _GIVEN_NAMES or not _is_plain(words[0]):
        return True
    if first in lower or first.endswith("ly"):
        return False
    if len(words) > 1:  # "Native Species is …" is a title, "Met Caroline …" is not
        return _is_plain(words[1]) or not (
            voice.is_verb(first) or first.endswith(("ing", "ed")) or first in voice.PAST_FORMS
        )
    following = re.match(r" ([a-z]{3,15})\b", after)
    if following is None or first.endswith(("s", "ing", "ed")):
        return False
    word = following.group(1)
    return word.endswith("ed") or (
        word.endswith("s")
        and word not in ("is", "was", "has", "does")
        and voice.is_verb(simplemma.lemmatize(word, lang="en"))
    )


@lru_cache(maxsize=8192)
def _is_plain(word: str) -> bool:
    """Tell whether the dictionary has this word, and not as a name alone."""
    low = word.casefold().split("'")[0].split("’")[0]
    if not low.isascii() or not low.isalpha() or word.isupper() or _CAMEL.match(word):
        return False
    if not simplemma.is_known(low, lang="en"):
        return False
    lemma = str(simplemma.lemmatize(word, lang="en"))
    return not lemma[:1].isupper() or str(simplemma.lemmatize(low, lang="en"))[:1].islower()


def _chinese(text: str) -> Iterator[tuple[int, str, str]]:
    at = 0
    for word, tag in rjieba.tag(text):
        where = text.find(word, at)
        at = where + len(word) if where >= 0 else at
        if len(word) >= 2 and _HAN.match(word) and _is_chinese_name(word, tag):
            yield where, word, "PROPER"
    for pattern in (_ZH_NAME, _ZH_ORG):
        for match in pattern.finditer(text):
            yield match.start(1), match.group(1), "PROPER"


def _is_chinese_name(word: str, tag: str) -> bool:
    """Tell whether a word is a name. The tagger calls many plain words names, so what names look like decides too."""
    if word in _ZH_COMMON:
        return False
    if tag in ("nr", "nrt", "nrfg"):
        native = word[0] in _ZH_SURNAMES and len(word) <= 4 or word[0] in "小阿老" and len(word) == 2
        return native or all(c in _ZH_SOUNDS for c in word)
    return tag == "ns" or (tag in ("nt", "nz") and len(word) >= 3)


def _is_sound(norm: str) -> bool:
    if not 2 <= len(norm) <= _LONGEST or (norm in _NEVER and norm != "will"):
        return False
    return any(c.isalnum() for c in norm) and (not norm.isdigit() or len(norm) >= 5)


def _without_parts(found: list[Entity]) -> list[Entity]:
    """Drop what is only a piece of an identifier ("example" of a mail address)."""
    whole = [e.norm for e in found if e.kind == "IDENTIFIER"]
    return [e for e in found if e.kind == "IDENTIFIER" or not any(e.norm in w for w in whole)]
