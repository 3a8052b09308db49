"""The words by which memories tell what fields of schemas ask for: "is 34 years old" answers `age`. Data; English, Chinese."""

from __future__ import annotations

from functools import lru_cache

from app.domain import lexemes

_KEY_CHARS = 6  #: of a term; stems of one family differ behind that: allergi(es), allerg(ic)
_READ_CHARS = 2000  #: of a text; nobody asks for one field of a longer one

#: What a schema says about any field; it does not tell one memory from another.
_GENERIC_WORDS = """user person people customer client list array field value string text information info detail details
    data memory memories fact facts item items example given provided mention mentioned describe relevant known note notes
    object someone their entry entries record records thing things whether also like best 用户 信息 记忆 列表 内容 个人"""
#: Words that narrow a field down and do not name it: two memories that share only these are not about the same.
_WEAK_WORDS = """favorite favourite current main preferred full first last primary number count total type status old new
    years yearly brand date level description"""

_TELLING = """
age aged: old aged 岁 年龄
name nickname called: called name 名字 叫
city location residence address country home hometown town place live lives: live lives moved move reside based 住 住在 搬 定居
occupation job profession role work career employer company position employment: work works working job employed engineer
    teacher doctor manager 工作 职业 上班 公司
pet pets animal animals: dog cat puppy kitten parrot rabbit hamster fish bird 狗 猫 宠物
sibling siblings: brother sister 哥哥 弟弟 姐姐 妹妹
family relative relatives: wife husband son daughter mother father parent parents child brother sister 妻子 丈夫 儿子 女儿 妈妈 爸爸 父亲 母亲
child children kid kids: son daughter kid child 儿子 女儿 孩子
spouse partner marital relationship: married wife husband single partner divorced engaged 结婚 妻子 丈夫
language languages: speak speaks fluent 会说 英语 中文 法语 日语
birth birthday birthdate born: born birthday 生日 出生
hobby hobbies interest interests pastime: love loves enjoy enjoys hobby fan likes 喜欢 爱好 热爱
preference preferences: prefer prefers likes love favorite 喜欢 偏好
dislike dislikes: hate hates dislike dislikes 讨厌 不喜欢
allergy allergies: allergic 过敏
diet dietary: vegetarian vegan allergic gluten eat 素食 忌口
skill skills expertise: skilled expert experienced knows 擅长 精通
education school degree university study studies: studied study graduated degree university college 毕业 大学 专业
goal goals plan plans: plan plans wants goal hopes intends aims 计划 打算 目标 想
travel trip trips: visit visited travel travelled trip flew fly vacation 旅行 旅游
health condition conditions medical: diagnosed ill allergic asthma diabetes doctor 生病 患
car vehicle: car drive drives 车 开车
smoker smoking: smoke smokes smoking 抽烟 吸烟
income salary: earn earns salary income 收入 工资
instrument: play plays piano guitar violin cello drums 弹 拉 钢琴 吉他
"""


def key(term: str) -> str:
    """Return the part of an index term by which words of one family are one."""
    return term[:_KEY_CHARS]


@lru_cache(maxsize=8192)
def keys(text: str) -> frozenset[str]:
    """Return the words of a text, each as its key."""
    return frozenset(key(term) for term in lexemes.analyse(text[:_READ_CHARS]))


GENERIC = keys(" ".join(_GENERIC_WORDS.split()))
WEAK = keys(" ".join(_WEAK_WORDS.split()))


def _table() -> dict[str, frozenset[str]]:
    table: dict[str, frozenset[str]] = {}
    for line in _TELLING.strip().replace("\n    ", " ").splitlines():
        names, _, words = line.partition(":")
        for name in keys(names):
            table[name] = table.get(name, frozenset()) | keys(words)
    return table


_TELLS = _table()


def telling(names: frozenset[str]) -> frozenset[str]:
    """Return the words that a memory about a field of these words may have instead of them."""
    return frozenset(word for name in names for word in _TELLS.get(name, ()))
