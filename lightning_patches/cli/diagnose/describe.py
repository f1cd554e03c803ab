"""Find the records that match a description. Silent bugs have no message to search for.

Words are compared without endings and with synonyms. A record matches only if the description states the bug's
condition (``conditions.txt``) and no other circumstance.
"""

from __future__ import annotations

import math
import pkgutil
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

MIN_SCORE = 0.34
"""Smallest share of a description's weight that must be in a matching record."""
CLOSE = 0.7
"""Score from which a description may leave out one part of a bug's condition."""
UNKNOWN_WEIGHT = 3.5
"""Weight of a word that appears in no record. High, because the description is then about another problem."""
ENOUGH = 3
"""Smallest weight of the words that a description shares with a text of a record. An everyday word weighs 1, and other
words weigh 2. A weight that is smaller by 1 is enough in two cases: the shared words are half of the text, or they are
the complete description and not all of them are everyday words."""
MAX_FOUND = 3
SHORT = 5
"""A description with at most so many words also matches a record that has all of them, without the bug's condition."""
MIN_QUOTED = 2
"""Number of words of the record's error that a description must have, unless it states that something fails."""
MAX_FOREIGN = 3
"""Most words of a description that are in other records, but not in this record."""


class Described(NamedTuple):
    """The fields of a record with which descriptions are compared.

    Args:
        name: name of the record.
        texts: symptoms, title and summary.
        error: first line of the error; "" for a silent bug.
    """

    name: str
    texts: tuple[str, ...]
    error: str = ""


_FILLERS = frozenset(
    re.findall(
        r"\w+",
        """
        a about across after also although always am among an and another any anymore are as at be because been before
        behind being best but by c can cannot could d did do does don down each ever every find for from get gets give
        go got had has have he her here his how however i if in into is it its itself just keep keeps let ll long lot
        make makes many me more most much my never no not now number of off on once one only onto or other our out over
        per please s several show shows since so some still such t take than that the their them then there these they
        thing this those though through to too try under up upon us use used uses using ve very want was we were what
        when where whether which while who why will with without would yet you your
        """,
    )
)
_ENDINGS = re.compile(r"(?:izations?|ations?|ated|ates?|ating|ized?|izes|ing|ions?|ies|ed|es|e|s|er|y)$")


def _stem(word: str) -> str:
    """Remove the endings of a word, but keep at least three letters."""
    stem = ""
    while stem != word:
        stem = word
        shorter = _ENDINGS.sub("", word)
        word = shorter if len(shorter) > 2 else word
    word = word.rstrip("s") or word
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sl" else word


_SAME = {
    _stem(word): _stem(first)
    for first, *words in map(
        str.split,
        """
        first 0 1st zero
        next second again twice rep repeat duplicat
        delet vanish disappear gone lost remov eras wip
        short shorten cut fewer less incomplet truncat
        finder found tuner tun suggest pick chosen choos propos search
        resum continu restart restor
        checkpoint ckpt
        save sav stor write written
        rank process node ddp multi distribut
        gpu card cuda
        differ different difference diverg unequal disagree unsync inconsist mismatch
        hang freez stuck stall deadlock froz
        gradient grad
        synchron sync
        valid val eval evalu
        slow slower overhead speed cost
        random augment crop
        accumulat acc
        fail crash error rais exception break broke die dead complain refus
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
        shuffl order reshuffl
        unfrozen unfreez
        half bf16 fp16 16 float16 bfloat16
        tf32 fp32 ampere a100
        storage disk file
        mid middl
        pretrain huggingfac transform bert
        seed reproducibl
        slurm sbatch
        converg learn
        """.strip().splitlines(),
    )
    for word in (first, *words)
}  # fmt: skip
"""Synonyms without endings. Each word is replaced by the first word of its line."""
_PHRASES = tuple(
    (re.compile(pattern), f" {replacement} ")
    for pattern, replacement in (
        (r"\blr_find(?![a-z])", "learning rate finder"),
        (r"\b(?:no|not|never)(?: \w+)? found\b|\bno longer (?:has|have|contains?|exists?)\b", "missing"),
        (r"\bfolders?\b", "directory"),
        (r"\bpoints? to\b", "is"),
        (r"\blearning rate\b|(?<![a-z0-9])lr(?![a-z0-9])", "rate"),
        (r"(?<![a-z0-9])swa(?![a-z0-9])", "stochastic weight averaging"),
        (r"\bearly stopping\b|\bstop(?:s|ped)? early\b|\bearlystopping\b", "ends early"),
        (r"\bbefore its? ends?\b", "ends early"),
        (r"\bctrl-c\b", "interrupt"),
        (r"\blos(?:e|es|ing)\b", "lost"),
        (r"\bno_grad\b", "nograd"),
        (r"\bml flow\b", "mlflow"),
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
"""Phrases and Chinese words -> the words of the records."""
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
"""Words that can describe any training."""
_CIRCUMSTANCES = """
    resum reload accumulation finder tuner finetuning fabric compile sampler pruning csv mlflow tensorboard hydra
    predict clip manual fold frequency interval
"""
"""Words for a circumstance. If a description has one of these words, a record without it or a synonym does not match.
Synonyms in the description do not count, since they are too broad: not every run that "restarts" is resumed."""
ASKS_HOW = re.compile(r"(?:how(?! come)|which|is it possible|can (?:i|one|we))\b|如何|怎么", re.IGNORECASE)
"""Matches a question how to do something, which does not describe a bug."""
LOGGED = re.compile(
    r"(?m)\w(?:error|exception):|\w: \d|^(?:\S+ )?(?:error|fatal|warning):|^\[\w+ ?\d{0,6}\]|^(?:srun|slurmstepd): |"
    r"\w(?:Error|Exception)\(['\"]|\*\*\* |\.py:\d|[GT]PU available: |\d%\|"
)
"""Matches logs, but not descriptions."""
CHINESE = re.compile(r"[\u4e00-\u9fff]")
_SUBJECTS = re.compile(
    r"\b(?:[A-Z]\w{0,40}(?:Logger|Monitor|Summary|Strategy|Profiler|Finder|Checkpoint|Stopping|Averaging|Finetuning|Pruning|"
    r"ProgressBar|CLI|Writer)|CombinedLoader|DeepSpeed\w{0,20}|FSDP2?|Timer)\b"
)
"""Classes of Lightning. If a description names one, a record that does not name it does not match."""


@lru_cache(maxsize=None)
def words(text: str) -> tuple[str, ...]:
    """Return the words of a text except for fillers, without endings, and with synonyms replaced."""
    return tuple(_SAME.get(stem, stem) for stem in _stems(text))


@lru_cache(maxsize=None)
def _stems(text: str) -> tuple[str, ...]:
    text = re.sub(r"\b[A-Z]{2,5}s\b", lambda plural: plural[0].lower(), text)  # GPUs, LRs
    text = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text).lower()
    for pattern, replacement in _PHRASES:
        text = pattern.sub(replacement, text)
    return tuple(_stem(word) for word in re.findall(r"[a-z0-9]+", text) if word not in _FILLERS)


def _is_ground(shared: set[str], query: set[str], text: set[str]) -> bool:
    """True if a description and a text share enough words that do not describe any training."""
    is_most = (shared == query and not shared <= _everyday()) or 2 * _weight(shared) >= _weight(text)
    return _weight(shared) >= (ENOUGH - 1 if is_most else ENOUGH)


def _weight(found: set[str]) -> int:
    return sum(1 if word in _everyday() or word.isdigit() else 2 for word in found)


@lru_cache(maxsize=None)
def _everyday() -> frozenset[str]:
    return frozenset(words(_EVERYDAY))


@lru_cache(maxsize=None)
def _circumstances() -> frozenset[str]:
    return frozenset(_stems(_CIRCUMSTANCES))


@lru_cache(maxsize=None)
def conditions() -> dict[str, tuple[tuple[frozenset[str], ...], ...]]:
    """Return the rows of ``conditions.txt``: name of a record -> groups of words. One word of each group must occur."""
    text = (pkgutil.get_data(__package__, "conditions.txt") or b"").decode("utf-8")
    found = {}
    for line in filter(None, (line.partition("#")[0].strip() for line in text.splitlines())):
        name, *groups = (part.strip() for part in line.split("|"))
        found[name] = tuple(tuple(frozenset(words(word)) for word in group.split()) for group in groups)
    return found


def _states_condition(
    description: str, query: set[str], record: Described, texts: list[set[str]], others: set[str], share: float
) -> bool:
    """True if a description states when the bug of a record occurs, and no other circumstance.

    A silent bug without a row in ``conditions.txt`` matches only if one of its texts has all words of the description.

    Args:
        description: the description.
        query: the words of the description.
        record: the record.
        texts: the words of each text of the record.
        others: the words of all records.
        share: the score of the record.
    """
    foreign = query - set().union(*texts)
    circumstances = {_SAME.get(stem, stem) for stem in _circumstances().intersection(_stems(description))} & foreign
    is_elsewhere = [word for word in foreign & others - _everyday() if not word[0].isdigit()]
    if any(query <= text for text in texts) or (len(query) <= SHORT and not foreign):
        return True
    if circumstances or len(is_elsewhere) > MAX_FOREIGN:
        return False
    groups = conditions().get(record.name)
    if groups is not None:
        missing = sum(not any(word <= query for word in group) for group in groups)
        return missing == 0 or (missing == 1 < len(groups) and share >= CLOSE)
    if record.error:
        quoted = set(words(record.error)).union(*texts[:-2]) - _everyday()
        return len(query & quoted) >= MIN_QUOTED or not query.isdisjoint(words("fails hangs"))
    return False


def compare(description: str, known: Sequence[Described]) -> list[str]:
    """Return the names of the records that match a description, best first.

    A word has a higher weight if fewer records have it. The score of a record is its share of the description's weight.

    Args:
        description: the description.
        known: the records.
    """
    texts = [[set(words(text)) for text in record.texts] for record in known]
    frequency = Counter(word for sets in texts for word in set().union(*sets))
    query = {word for word in words(description) if frequency[word] or not word[0].isdigit()}
    weight = {word: math.log(1 + len(texts) / frequency[word]) if frequency[word] else UNKNOWN_WEIGHT for word in query}
    total = sum(weight.values())
    subjects = {name.lower() for name in _SUBJECTS.findall(description)}
    if len(query) < 2:
        return [
            record.name
            for record, sets in zip(known, texts)
            if query and frequency[min(query)] <= MAX_FOUND and query <= set().union(*sets)
        ]
    scored = []
    for index, (record, sets) in enumerate(zip(known, texts)):
        every = query & set().union(*sets)
        if len(every) < 2 or (subjects and not any(name in " ".join(record.texts).lower() for name in subjects)):
            continue
        if not any(_is_ground(query & one, query, one) for one in sets):
            continue
        # Words in the same symptom count more than words in several texts of the record.
        closest = max(2 * sum(weight[word] for word in query & one) / (total + 2 * len(one)) for one in sets)
        share = (sum(weight[word] for word in every) / total + closest) / 2
        if share >= MIN_SCORE and _states_condition(description, query, record, sets, set(frequency), share):
            scored.append((-share, index, record.name))
    best = sorted(scored)[:MAX_FOUND]
    return [name for share, _, name in best if share <= 0.8 * best[0][0]]


_HANGS = re.compile(r"\b(?:hangs?|hung|hanging|deadlock\w*|st(?:ands?|ood|anding) still|nothing happens)\b|卡住|卡死")
_MAY_HANG = re.compile(r"\b(?:stuck|freezes?|frozen)\b")
_NO_PROGRAM = re.compile(
    r"\b(?:layers?|param\w*|weights?|(?:batch ?)?norms?|batchnorm\w*|backbone|encoder|loss|losses|learning rate|lr|"
    r"accuracy|metrics?|unfrozen|\w*finetuning|requires_grad)\b"
)
"""Matches other subjects than programs that can be stuck or frozen."""


def is_about_hang(description: str) -> bool:
    """True if a description states that a program hangs."""
    text = description.lower()
    return names_hang(text) or bool(_MAY_HANG.search(text) and not _NO_PROGRAM.search(text))


def names_hang(text: str) -> bool:
    """True if a text has a word that is used only for hangs."""
    return _HANGS.search(text.lower()) is not None
