"""In: what somebody says in words. Out: the known bugs that come close to it: most silent bugs have no message."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

MIN_SCORE = 0.44
"""Share of a description's weight that a bug has to account for."""
UNKNOWN_WEIGHT = 3.5
"""Of a word that no record has: what is said is then of something else."""
ENOUGH = 4
"""What a description and a text about a bug have to share: an everyday word counts one, any other two. One less is
enough where that is half of the text, or all of the description and not everyday alone."""
MAX_FOUND = 3

Key = TypeVar("Key")

_FILLERS = frozenset(
    re.findall(
        r"\w+",
        """
        a about after also although always am an and another any anymore are as at be because been before behind
        being best but by c can cannot could d did do does don down each ever every find for from get gets give go
        got had has have he her here his how however i if in into is it its itself just keep keeps let ll long lot make
        makes many me more most much my never no not now number of off on once one only onto or other our out
        over per please s several show shows since so some still such t take than that the their them then there these
        they thing this those though through to too try under up upon us use used uses using ve very want was we
        were what when where whether which while who why will with without would yet you your
        """,
    )
)
_ENDINGS = re.compile(r"(?:izations?|ations?|ated|ates?|ating|ized?|izes|ing|ions?|ies|ed|es|e|s|er|y)$")


def _stem(word: str) -> str:
    """A word without its endings."""
    stem = ""
    while len(word) > 4 and stem != word:
        stem, word = word, _ENDINGS.sub("", word)
    word = word.rstrip("s") or word
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sl" else word


_SAME = {
    _stem(word): _stem(first)
    for first, *words in map(
        str.split,
        """
        first 0 1st zero
        next second again twice
        delet vanish disappear gone lost lose remov eras wip
        short shorten cut fewer less incomplet truncat
        finder found tuner tun suggest pick chosen choos propos search
        resum continu restart reload restor
        checkpoint ckpt
        save sav stor write written
        rank process node ddp multi
        gpu card cuda
        differ different difference diverg unequal disagree unsync inconsist mismatch
        hang freez stuck stall deadlock froz
        gradient grad
        synchron sync
        valid val eval evalu
        slow slower overhead speed cost
        random augment crop
        accumulat acc
        fail crash error rais exception break broke die dead
        skip omit
        same identical equal
        memory ram oom
        exit return
        status cod
        sigterm kill preempt terminat
        stream iterabl
        averag mean ema
        initial untrain
        interrupt ctrl keyboardinterrupt
        metric accurac scor result
        wrong incorrect garbag
        import librar packag
        hparam hyperparamet
        effect influenc ignor
        left leav leftov remain
        dictionar dict
        clip clipp
        shuffl order
        half bf16 fp16 16 float16 bfloat16
        tf32 fp32 ampere a100
        storage disk file
        """.strip().splitlines(),
    )
    for word in (first, *words)
}  # fmt: skip
"""What people say, and the first word of its line, which stands for all; without endings."""
_PHRASES = tuple(
    (re.compile(said), f" {meant} ")
    for said, meant in (
        (r"\blr_find\b", "learning rate finder"),
        (r"\b(?:no|not|never)(?: \w+)? found\b", "missing"),
        (r"\blearning rate\b|(?<![a-z0-9])lr(?![a-z0-9])", "rate"),
        (r"(?<![a-z0-9])swa(?![a-z0-9])", "stochastic weight averaging"),
        (r"\bearly stopping\b|\bstop(?:s|ped)? early\b|\bearlystopping\b", "ends early"),
        (r"\bbefore its? ends?\b", "ends early"),
        (r"\bctrl-c\b", "interrupt"),
        (r"\btwo times\b", "twice"),
        (r"\b(?:each|every|one|single|multi(?:ple)?)[ -]gpu\b|\bgpus\b", "rank"),
        # Chinese, the longer words first
        ("学习率查找器?|学习率搜索", "learning rate finder"),
        ("学习率", "learning rate"),
        ("数据增强", "augmentation"),
        ("检查点|断点|模型文件|权重文件", "checkpoint"),
        ("恢复|续训|继续训练|接着训练", "resume"),
        ("多卡|多机|各卡|每张卡|每块卡|多个?gpu|进程", "ranks"),
        ("显卡", "gpu"),
        ("卡住|卡死|挂起|不动|死锁", "hangs"),
        ("梯度累[积计]|累积梯度", "gradient accumulation"),
        ("梯度", "gradient"),
        ("同步", "synchronized"),
        ("不一致|不一样|不同", "differ"),
        ("一样|相同|重复", "same"),
        ("没有?(?:生效|效果|起作用)|不起作用|无效|不生效", "no effect"),
        ("进度条", "progress bar"),
        ("变慢|很慢|太慢|慢", "slow"),
        ("内存|显存", "memory"),
        ("不足|不够", "out of"),
        ("没有?(?:运行|执行|跑)|跳过", "skipped"),
        ("验证", "validation"),
        ("测试", "test"),
        ("打乱|顺序", "shuffled"),
        ("数据", "data"),
        ("保存", "save"),
        ("加载|读取|载入", "load"),
        ("报错|错误|失败|崩溃|异常", "error"),
        ("掩盖|隐藏", "hides"),
        ("真正", "real"),
        ("中断|打断", "interrupted"),
        ("残留|留下|遗留", "left behind"),
        ("临时", "temporary"),
        ("文件", "file"),
        ("删除|丢失|消失|没了|不见", "deleted"),
        ("找不到|缺少", "missing"),
        ("导入", "import"),
        ("随机种子|种子", "seed"),
        ("随机", "random"),
        ("批大小|批次大小|批量大小|batch 大小", "batch size"),
        ("采样器", "sampler"),
        ("优化器", "optimizer"),
        ("调度器", "scheduler"),
        ("早停|提前停止|提前结束", "ends early"),
        ("初始", "initial"),
        ("权重|参数", "weights"),
        ("平均", "average"),
        ("不完整|变短|太短", "short"),
        ("第一个|第0个|第 0 个", "first"),
        ("找到", "found"),
        ("编译", "compiled"),
        ("日志|记录", "log"),
        ("精度", "precision"),
        ("回调", "callback"),
        ("冻结", "frozen"),
        ("退出码|状态码|返回码", "exit status"),
        ("超时", "timeout"),
        ("训练", "training"),
        ("损失", "loss"),
        ("指标", "metric"),
        ("突然变大|跳变|跳", "jumps"),
        ("子模块", "submodule"),
        ("超参数", "hyperparameters"),
        ("流式", "stream"),
        ("评估", "evaluation"),
        ("预测", "predict"),
        ("命令行", "command line"),
    )
)
"""What is said in several words or in Chinese, and the records' words for it."""
_EVERYDAY = """
    train valid test predict run epoch step batch iteration loss metric result value output input number size half model
    network layer weight parameter gradient optimizer adam sgd rate schedule data dataset loader dataloader sample image
    label class folder path storage directory config script code notebook windows linux machine server cluster gpu
    cpu device worker work memory usage time minute hour slow fast long low high small big huge large bad good best last
    first next two three new old previous save load checkpoint log logger show shown plot graph print line progress bar
    message warn fail wrong start begin end early finish stop exit none empty missing null nan differ same change
    increase decrease drop grow improve converge overfit update upgrade install version lightning torch pytorch python
    problem issue create open read call set all own check sanity mode between callback mix precision custom state
"""
"""What is said of any training."""
ASKS_HOW = re.compile(r"(?:how(?! come)|which|is it possible|can (?:i|one|we))\b|如何|怎么", re.IGNORECASE)
"""Somebody's question how something is done, which tells of no bug."""
CHINESE = re.compile(r"[\u4e00-\u9fff]")
_SUBJECTS = re.compile(
    r"\b(?:[A-Z]\w{0,40}(?:Logger|Monitor|Summary|Strategy|Profiler|Finder|Checkpoint|Stopping|Averaging|Finetuning|Pruning|"
    r"ProgressBar|CLI|Writer)|CombinedLoader|DeepSpeed\w{0,20}|FSDP2?|Timer)\b"
)
"""Lightning's own classes: what is said of one is not what is known of another."""


@lru_cache(maxsize=None)
def words(text: str) -> tuple[str, ...]:
    """The words that tell something, without their endings, and one for those that say the same."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text).lower()
    for said, meant in _PHRASES:
        text = said.sub(meant, text)
    found = []
    for word in re.findall(r"[a-z0-9]+", text):
        if word not in _FILLERS:
            stem = _stem(word)
            found.append(_SAME.get(stem, stem))
    return tuple(found)


def _is_ground(shared: set[str], asked: set[str], text: set[str]) -> bool:
    """Whether what a description shares with a text about a bug is more than what is said of any training."""
    is_most = (shared == asked and not shared <= _everyday()) or 2 * _tells(shared) >= _tells(text)
    return _tells(shared) >= (ENOUGH - 1 if is_most else ENOUGH)


def _tells(found: set[str]) -> int:
    return sum(1 if word in _everyday() or word.isdigit() else 2 for word in found)


@lru_cache(maxsize=None)
def _everyday() -> frozenset[str]:
    return frozenset(words(_EVERYDAY))


def compare(description: str, known: Sequence[tuple[Key, Iterable[str]]]) -> list[Key]:
    """The bugs that a description may be about, the closest first.

    The fewer bugs have a word, the more it weighs. How much of the description's weight a bug accounts for decides,
    if they share more than a few words that are said of any training.

    Args:
        description: some words.
        known: for each bug, what identifies it and the texts that speak of it, the symptoms first.
    """
    texts = [(key, [set(words(text)) for text in spoken]) for key, spoken in known]
    spread = Counter(word for _, sets in texts for word in set().union(*sets))
    asked = {word for word in words(description) if spread[word] or not word[0].isdigit()}
    weight = {word: math.log(1 + len(texts) / spread[word]) if spread[word] else UNKNOWN_WEIGHT for word in asked}
    total = sum(weight.values())
    subjects = {name.lower() for name in _SUBJECTS.findall(description)}
    if len(asked) < 2:
        return [key for key, sets in texts if asked and spread[min(asked)] <= MAX_FOUND and asked <= set().union(*sets)]
    scored = []
    for index, ((key, sets), (_, spoken)) in enumerate(zip(texts, known)):
        every = asked & set().union(*sets)
        if len(every) < 2 or (subjects and not any(name in " ".join(spoken).lower() for name in subjects)):
            continue
        if not any(_is_ground(asked & one, asked, one) for one in sets):
            continue
        # All of it in one symptom says more than here and there in the record.
        closest = max(2 * sum(weight[word] for word in asked & one) / (total + 2 * len(one)) for one in sets)
        share = (sum(weight[word] for word in every) / total + closest) / 2
        if share >= MIN_SCORE:
            scored.append((-share, index, key))
    best = sorted(scored, key=lambda item: item[:2])[:MAX_FOUND]
    return [key for share, _, key in best if share <= 0.8 * best[0][0]]
