"""Short dialogues that were written before the rules were tuned. Never tune on these: they say how rules do on new text.

Each: messages as (role, name, text); the facts to find, each a tuple of strings that must stand together in one stored
fact (letters' case is ignored); and strings that no fact may contain.
"""

from __future__ import annotations

from typing import NamedTuple


class Dialogue(NamedTuple):
    messages: tuple[tuple[str, str | None, str], ...]
    facts: tuple[tuple[str, ...], ...]
    never: tuple[str, ...] = ()


def _said(*texts: str) -> tuple[tuple[str, str | None, str], ...]:
    return tuple(("user" if i % 2 == 0 else "assistant", None, text) for i, text in enumerate(texts))


DIALOGUES = (
    Dialogue(
        _said(
            "Hi! My sister Orla just had a baby boy called Finn. Any ideas for a present?",
            "Congratulations! A personalised blanket is always lovely. Would you like more ideas?",
            "Nice one. She lives in Galway so it has to be posted.",
        ),
        (("Orla", "baby", "Finn"), ("Galway",)),
        ("any ideas", "more ideas"),
    ),
    Dialogue(
        _said(
            "why does my sourdough collapse? I bake at 230 degrees in a dutch oven",
            "It is often overproofed. Try shortening the bulk rise.",
            "ok will try. I'm using rye starter by the way",
        ),
        (("230", "dutch oven"), ("rye",)),
        ("why does",),
    ),
    Dialogue(_said("hey", "Hello! How can I help?", "never mind, thanks"), ()),
    Dialogue(
        _said("Since I've got celiac disease, which of these three menus is safe for me?"),
        (("celiac",),),
        ("which of these",),
    ),
    Dialogue(
        _said(
            "Draft an email to Mrs. Okafor saying I'll miss Thursday's parent evening because I'm flying to Lisbon.",
            "Sure: Dear Mrs. Okafor, …",
            "Perfect, thank you!",
        ),
        (("Lisbon",),),
        ("thank you", "Perfect"),
    ),
    Dialogue(
        _said(
            "I used to smoke a pack a day but quit in March 2019. My cardiologist, Dr. Banerjee, wants me to walk "
            "8,000 steps daily.",
            "That is great progress!",
            "lol thanks",
        ),
        (("quit", "2019"), ("Banerjee", "8,000 steps")),
        ("lol",),
    ),
    Dialogue(
        _said(
            "Fix this:\n```python\nprint(secret_token)\n```\nStill getting the same error. We deploy on Fly.io from a monorepo."
        ),
        (("Fly.io", "monorepo"),),
        ("secret_token",),
    ),
    Dialogue(
        _said("Could you suggest a hotel in Porto? We'll be there from 3 to 9 June with our twins, who are four."),
        (("9 June", "twins"),),
        ("Could you",),
    ),
    Dialogue(
        (
            ("user", "Nadia", "I finally passed my driving test yesterday! Third time lucky."),
            (
                "assistant",
                "Tomas",
                "Wow, congrats! I never learned to drive. Grew up in Venice, so there was no point.",
            ),
            ("user", "Nadia", "Haha fair. Are you still volunteering at the animal shelter?"),
            ("assistant", "Tomas", "Yes, every Saturday. Last week I adopted an old greyhound named Comet."),
        ),
        (("Nadia", "driving test"), ("Tomas", "Venice"), ("Tomas", "greyhound", "Comet")),
        ("Are you still",),
    ),
    Dialogue(
        _said(
            "Book me something for dinner tomorrow",
            "I've booked a table for two at Osteria Lucca tomorrow at 7:30 pm.",
            "great",
        ),
        (("Osteria Lucca", "7:30"),),
    ),
    Dialogue(
        _said("Don't forget that my passport expires on 14 August 2027."),
        (("passport", "14 August 2027"),),
        ("Don't forget",),
    ),
    Dialogue(
        _said(
            "What is the capital of Mongolia?",
            "The capital of Mongolia is Ulaanbaatar. It lies on the Tuul River and has about 1.6 million people.",
        ),
        (),
        ("Tuul",),
    ),
    Dialogue(
        _said("I hate coriander and so does my husband Piet. We're both vegetarians, except that he eats fish."),
        (("coriander",), ("vegetarian",)),
    ),
    Dialogue(
        _said("你好！我最近在学吉他，每天练半小时。有什么适合新手的曲子吗？", "可以试试《小星星》。", "谢谢"),
        (("吉他", "半小时"),),
        ("有什么适合", "谢谢"),
    ),
    Dialogue(
        _said("我老婆下个月过生日，她喜欢紫色的花，送什么好？"),
        (("老婆", "生日"), ("紫色",)),
        ("送什么好",),
    ),
    Dialogue(
        _said("帮我写一封请假邮件，我周三要带儿子去看牙医。", "好的，以下是邮件……", "不错，就这样吧"),
        (("儿子", "牙医"),),
        ("帮我写",),
    ),
    Dialogue(
        _said("我在杭州一家做跨境电商的公司当产品经理，公司叫云舟科技。去年刚从深圳搬过来。"),
        (("产品经理", "杭州"), ("云舟科技",), ("深圳",)),
    ),
    Dialogue(_said("在吗", "在的，请问有什么可以帮您？", "没事了，哈哈"), ()),
    Dialogue(
        (
            ("user", "阿珍", "我昨天把膝盖摔伤了，医生说要休息两周。"),
            ("assistant", "老周", "这么严重啊？我家里有膏药，明天给你送过去。"),
        ),
        (("阿珍", "膝盖"), ("两周",), ("老周", "膏药")),
    ),
    Dialogue(
        _said("请记住我不吃香菜，也不喝牛奶。", "好的，我记住了。", "能推荐一家离西湖近的餐厅吗？我们一共六个人。"),
        (("香菜",), ("牛奶",), ("六个人",)),
        ("能推荐", "请记住"),
    ),
    Dialogue(
        _said("翻译一下：The weather is nice today.", "今天天气很好。", "嗯嗯"),
        (),
    ),
    Dialogue(
        _said(
            "I'm torn between the Kawasaki Z650 and the Honda CB500. My budget is 6500 euros and I only have an A2 licence.",
            "With an A2 licence I'd recommend the Honda CB500 because it is within the power limit.",
        ),
        (("6500",), ("A2",), ("recommend", "Honda CB500")),
    ),
)
