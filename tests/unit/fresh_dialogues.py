"""More dialogues that were written before the rules were looked at again; as `unseen_dialogues`, and never tuned on.

Half are Chinese. Facts sit inside questions and requests, negations and corrections must stay, and much is mere talk.
"""

from __future__ import annotations

from tests.unit.unseen_dialogues import Dialogue, _said

ENGLISH = (
    Dialogue(
        _said("Can you book a table for my wife's birthday on May 3?"), (("wife", "birthday", "May 3"),), ("Can you",)
    ),
    Dialogue(
        _said(
            "Straight into the water.",
            "Ha! How did it feel?",
            "Cold. Anyway, I signed up for the triathlon in Zurich, it's on 12 July.",
        ),
        (("triathlon", "Zurich"),),
        ("Straight into",),
    ),
    Dialogue(_said("morning!", "Good morning! What's on your mind?", "not much really", "Fair enough.", "haha ok"), ()),
    Dialogue(
        _said("I'm not vegan any more, I eat fish again. What should I cook on Sunday?"),
        (("not vegan",), ("fish",)),
        ("What should",),
    ),
    Dialogue(
        _said("Actually that's wrong: I never lived in Hamburg, I lived in Bremen until 2014."),
        (("never", "Hamburg"), ("Bremen", "2014")),
    ),
    Dialogue(
        _said("how much protein is in lentils? my trainer Kofi wants me at 120 grams a day"),
        (("Kofi", "120 grams"),),
        ("how much",),
    ),
    Dialogue(
        _said(
            "The landlord finally replied. He's raising the rent to 1,450 from January, so we're looking at Altona now.",
            "That's a steep rise. Do you need help with a letter?",
            "no that's fine",
        ),
        (("rent", "1,450"), ("Altona",)),
        ("that's fine", "steep rise"),
    ),
    Dialogue(
        _said("Write a cover letter for me. I've been a paramedic for nine years and I want to move into training."),
        (("paramedic", "nine years"), ("training",)),
        ("cover letter for me",),
    ),
    Dialogue(_said("translate 'where is the station' to Italian", "Dov'è la stazione?", "grazie"), ()),
    Dialogue(
        _said("My phone died again. Second time this month. It's a Fairphone 4, bought in 2022."),
        (("Fairphone 4", "2022"),),
    ),
    Dialogue(
        _said("do you know any good physios around Temple Meads? I tore my meniscus playing squash on Tuesday"),
        (("meniscus", "squash"),),
        ("do you know",),
    ),
    Dialogue(
        (
            ("user", "Priya", "Hey Jonas! Did you get the keys?"),
            ("assistant", "Jonas", "Yes! We moved in on Friday. The kitchen has no oven yet, though."),
            ("user", "Priya", "Oh no! I can lend you ours, we never use it. I'm off to Goa until the 20th anyway."),
            ("assistant", "Jonas", "You're a star. Lena is going to love you."),
            ("user", "Priya", "Anytime!"),
        ),
        (("moved in", "Friday"), ("no oven",), ("Goa",)),
        ("You're a star", "Anytime", "get the keys"),
    ),
    Dialogue(
        (
            ("user", "Marek", "I quit the choir. Too many rehearsals."),
            ("assistant", "Tilda", "That's a shame, you loved it! What will you do on Thursdays now?"),
            ("user", "Marek", "Pottery, I think. There's a studio by the canal."),
            ("assistant", "Tilda", "My aunt teaches there! Her name is Solveig."),
        ),
        (("quit", "choir"), ("Pottery",), ("aunt", "Solveig")),
        ("That's a shame",),
    ),
    Dialogue(
        _said("Is it ok to give ibuprofen to a 6 year old? Our son Mateo has a fever of 39.2 since last night."),
        (("Mateo", "39.2"),),
        ("Is it ok",),
    ),
    Dialogue(_said("run it again", "Running.", "still red. try the other branch", "Done, all green.", "ship it"), ()),
    Dialogue(
        _said("Please don't call me Robert. Everyone calls me Bo.", "Got it, Bo!"),
        (("don't call me Robert",), ("Bo",)),
    ),
    Dialogue(
        _said(
            "We decided against Kubernetes, it's too heavy for us. Everything runs on two Hetzner boxes with Nomad.",
            "Makes sense for your size.",
        ),
        (("against Kubernetes",), ("Hetzner", "Nomad")),
        ("Makes sense",),
    ),
    Dialogue(
        _said("Remind me to call the vet before Thursday, Pixel needs her second rabies shot."),
        (("Pixel", "rabies"),),
    ),
    Dialogue(
        _said("what's a good name for a bakery?", "How about 'Crumb & Co'?", "lol no", "'The Rising Sun'?", "meh"), ()
    ),
    Dialogue(
        _said("I can't do Mondays any more because I have dialysis on Mondays, Wednesdays and Fridays."),
        (("can't", "Mondays"), ("dialysis", "Wednesdays")),
    ),
    Dialogue(
        _said("Thanks, that helped! One last thing, my new address is 14 Quay Street, Cork."),
        (("14 Quay Street", "Cork"),),
        ("that helped",),
    ),
)

CHINESE = (
    Dialogue(_said("能帮我订一家餐厅吗？5月3日是我太太的生日"), (("5月3日", "太太", "生日"),), ("能帮我",)),
    Dialogue(_said("早", "早上好！今天过得怎么样？", "还行吧", "那就好。", "嗯嗯"), ()),
    Dialogue(_said("我已经不吃素了，现在也吃鱼。周日做什么菜好？"), (("不吃素",), ("鱼",)), ("做什么菜",)),
    Dialogue(_said("你记错了，我没在杭州住过，2014年之前我一直住在宁波。"), (("没", "杭州"), ("宁波", "2014"))),
    Dialogue(_said("扁豆蛋白质高吗？我教练老孔让我每天吃120克蛋白质"), (("老孔", "120克"),), ("高吗",)),
    Dialogue(
        _said(
            "房东终于回复了，明年一月起房租涨到6500，所以我们在看通州的房子。", "涨得不少，需要我帮你写信吗？", "不用了"
        ),
        (("房租", "6500"), ("通州",)),
        ("不用了", "涨得不少"),
    ),
    Dialogue(_said("帮我写一封求职信，我做了九年急救员，想转行做培训。"), (("九年", "急救员"), ("培训",)), ("求职信",)),
    Dialogue(_said("把“车站在哪里”翻译成意大利语", "Dov'è la stazione?", "谢啦"), ()),
    Dialogue(_said("手机又坏了，是2022年买的小米12，这个月第二次了。"), (("小米12", "2022"),)),
    Dialogue(_said("西直门附近有靠谱的康复科吗？我周二打壁球把半月板弄伤了"), (("半月板", "壁球"),), ("靠谱的康复科",)),
    Dialogue(
        (
            ("user", "小雨", "阿哲！钥匙拿到了吗？"),
            ("assistant", "阿哲", "拿到啦！我们周五搬进来的，不过厨房还没有烤箱。"),
            ("user", "小雨", "我家的借你，我们从来不用。我下周去三亚，20号才回来。"),
            ("assistant", "阿哲", "你太好了！"),
        ),
        (("搬", "周五"), ("没有烤箱",), ("三亚", "20号")),
        ("你太好了", "拿到了吗"),
    ),
    Dialogue(
        (
            ("user", "老马", "我退出合唱团了，排练太多。"),
            ("assistant", "田田", "好可惜啊，你那么喜欢！那周四晚上做什么？"),
            ("user", "老马", "学陶艺吧，运河边有个工作室。"),
            ("assistant", "田田", "我姑姑就在那儿教课，她叫苏维。"),
        ),
        (("退出", "合唱团"), ("陶艺",), ("姑姑", "苏维")),
        ("好可惜",),
    ),
    Dialogue(_said("六岁孩子能吃布洛芬吗？我儿子昨晚开始发烧，39.2度。"), (("儿子", "发烧", "39.2"),), ("布洛芬吗",)),
    Dialogue(_said("再跑一遍", "正在运行。", "还是报错，换个分支试试", "完成，全部通过。", "可以，上线吧"), ()),
    Dialogue(_said("别叫我王总，大家都叫我阿波。", "好的，阿波！"), (("别叫我王总",), ("阿波",))),
    Dialogue(
        _said("我们决定不用Kubernetes了，太重。现在都跑在两台阿里云服务器上，用Nomad管理。", "以你们的规模很合理。"),
        (("不用Kubernetes",), ("两台阿里云", "Nomad")),
        ("很合理",),
    ),
    Dialogue(_said("提醒我周四之前给兽医打电话，豆包要打第二针狂犬疫苗。"), (("豆包", "狂犬疫苗"),)),
    Dialogue(_said("给面包店起个名字吧", "“麦香坊”怎么样？", "哈哈不行", "“日出面包”？", "一般"), ()),
    Dialogue(_said("我周一都不行了，因为每周一三五要做透析。"), (("周一", "不行"), ("透析",))),
    Dialogue(_said("谢谢，很有用！对了，我的新地址是苏州市码头街14号。"), (("码头街14号",),), ("很有用",)),
    Dialogue(
        _said("我妈下个月做白内障手术，上海哪家医院比较好？预算三万左右。"), (("白内障",), ("三万",)), ("哪家医院",)
    ),
)
