"""What ``upstream_tests`` has seen: kept, compared, and put on paper."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Iterable, Optional

ARMS = ("stock", "shim")
PASSED = ("passed", "xfailed")
ABSENT = {"outcome": "absent", "seconds": 0.0, "why": ""}
Item = dict[str, Any]
NOT_COMPARED = ("date", "package")
"""Facts of a run that do not have to be the same."""


def kind_of(outcome: str) -> str:
    """``good``, ``skipped``, ``absent`` or ``bad``: what makes a difference."""
    return "good" if outcome in PASSED else outcome if outcome in ("skipped", "absent") else "bad"


class Store:
    """The results of one tag, in one file per arm, to which every outcome is added as soon as it is known.

    A file's tests run whole (``file``; ``file again`` to tell what is flaky), each test in ``alone`` by itself, and in
    ``standalone`` those that upstream only ever runs by themselves.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[tuple[str, str, str], Item] = {}
        self._alone: dict[tuple[str, str], list[Item]] = {}
        self._standalone: dict[str, dict[str, Item]] = {arm: {} for arm in ARMS}
        self._blamed: dict[str, Item] = {}
        for arm in (*ARMS, "blame"):
            path = directory / f"{arm}.jsonl"
            for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
                self._take(arm, json.loads(line))

    def _take(self, arm: str, item: Item) -> None:
        kind = item.get("kind", "")
        if "begin" in item:
            self._files[arm, item["begin"], kind] = {"complete": False, "code": "", "tests": {}}
        elif "finish" in item:
            self._files[arm, item["finish"], kind].update(complete=True, code=item["code"])
        elif "patch" in item:
            self._blamed[item["test"]] = item
        elif kind == "alone":
            self._alone.setdefault((arm, item["test"]), []).append(item)
        elif kind == "standalone":
            self._standalone[arm][item["test"]] = item
        else:
            self._files[arm, item["test"].partition("::")[0], kind]["tests"][item["test"]] = item

    def _write(self, arm: str, item: Item) -> None:
        with open(self._directory / f"{arm}.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(item) + "\n")
        self._take(arm, item)

    def begin(self, arm: str, file: str, kind: str) -> None:
        """From now on the outcomes of this file are other ones."""
        self._write(arm, {"begin": file, "kind": kind})

    def finish(self, arm: str, file: str, kind: str, code: str) -> None:
        self._write(arm, {"finish": file, "kind": kind, "code": code})

    def add(self, arm: str, item: Item, kind: str, code: str) -> None:
        self._write(arm, {**item, "kind": kind, "code": code})

    def put_down(self, test: str, patch: str, code: str) -> None:
        """Note the patch that a regression comes from."""
        self._write("blame", {"test": test, "patch": patch, "code": code})

    def blamed(self, test: str, code: str) -> str:
        """The patch that a regression was put down to, "" if that is unknown or was another state of the package."""
        found = self._blamed.get(test, {})
        return str(found["patch"]) if found.get("code") == code else ""

    def culprits(self) -> list[str]:
        """The patches that regressions have been put down to, the latest first."""
        return list(dict.fromkeys(item["patch"] for item in reversed(self._blamed.values())))

    def complete(self, arm: str, file: str, kind: str = "file") -> bool:
        return bool(self._files.get((arm, file, kind), {}).get("complete"))

    def code(self, arm: str, file: str, kind: str = "file") -> str:
        """The state of the package that a file ran with; "" if it has not run."""
        return str(self._files.get((arm, file, kind), {}).get("code", ""))

    def outcomes(self, arm: str, kind: str) -> dict[str, Item]:
        """Of all tests of a kind other than ``alone``."""
        if kind == "standalone":
            return self._standalone[arm]
        return {t: i for (a, _, k), of in self._files.items() if (a, k) == (arm, kind) for t, i in of["tests"].items()}

    def of_file(self, file: str, kind: str = "file") -> dict[str, tuple[Item, Item]]:
        """What each test of a file that is complete in both arms did there; nothing if it is not."""
        if not all(self.complete(arm, file, kind) for arm in ARMS):
            return {}
        stock, shim = ({**self._files[arm, file, kind]["tests"]} for arm in ARMS)
        if kind == "file":
            for arm, tests in zip(ARMS, (stock, shim)):
                tests.update({t: i for t, i in self._standalone[arm].items() if t in tests})
        return {test: (stock.get(test, ABSENT), shim.get(test, ABSENT)) for test in {**stock, **shim}}

    def standalone(self, file: str, reason: str) -> list[str]:
        """The tests of a file that are skipped on stock for this reason."""
        tests = self._files.get(("stock", file, "file"), {"tests": {}})["tests"]
        return [test for test, item in tests.items() if item["outcome"] == "skipped" and item["why"] == reason]

    def differing(self, file: str) -> list[str]:
        """The tests of a file that did not do the same in both arms."""
        return [test for test, pair in self.of_file(file).items() if differ(pair)]

    def again(self, arm: str, test: str, code: str) -> list[str]:
        """The outcomes of a test alone; with the shim, those with this state of the package."""
        return [i["outcome"] for i in self._alone.get((arm, test), []) if arm == "stock" or i["code"] == code]

    def lacking(self, arm: str, test: str, code: str) -> int:
        """How often a test has still to run alone: twice in all if it passed on stock, once if not."""
        passed = kind_of(self.of_file(test.partition("::")[0])[test][0]["outcome"]) == "good"
        return max(0, (2 if passed else 1) - len(self.again(arm, test, code)))

    def verdict(self, test: str, code: str) -> str:
        """What became of a test that did not do the same.

        Returns:
            ``regression``, ``improved``, ``changed`` (not good in either, in different ways) or ``flaky``; ``open`` if
            it has not run alone often enough; ``company`` if alone there is no difference, and the file has not run
            again.
        """
        if any(self.lacking(arm, test, code) for arm in ARMS):
            return "open"
        runs = [{kind_of(outcome) for outcome in self.again(arm, test, code)} for arm in ARMS]
        if any(len(kinds) > 1 for kinds in runs):
            return "flaky"
        if runs[0] == runs[1]:
            file = test.partition("::")[0]
            if self.code("shim", file, "file again") != code:
                return "company"
            first, second = self.of_file(file)[test], self.of_file(file, "file again").get(test, (ABSENT, ABSENT))
            runs = [{kind_of(item["outcome"])} for item in second]
            if [kind_of(item["outcome"]) for item in first] != [kind_of(item["outcome"]) for item in second]:
                return "flaky"
        return "regression" if runs[0] == {"good"} else "improved" if runs[1] == {"good"} else "changed"


def differ(pair: tuple[Item, Item]) -> bool:
    return kind_of(pair[0]["outcome"]) != kind_of(pair[1]["outcome"])


def read_explained(path: Path) -> list[tuple[str, int]]:
    """Tests without their parameters, each with the number of the pull request that changed it with the fix.

    Raises:
        ValueError: a line is of another form.
    """
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            parts = re.fullmatch(r"(\S+\.py::\S+)\s+#(\d+)", line.strip())
            if not parts:
                raise ValueError(f"{path.name}, line {number}: not of the form `path::test #1234`")
            found.append((parts[1], int(parts[2])))
    return found


def bare(test: str) -> str:
    """A test's name without its parameters."""
    return test.partition("[")[0]


def source_of(text: str, name: str) -> Optional[str]:
    """The source of ``test_x`` or ``TestClass::test_x`` in a file, with its decorators; ``None`` if it is not there."""
    try:
        node: Any = ast.parse(text)
    except SyntaxError:
        return None
    for part in name.split("::"):
        node = next((child for child in node.body if getattr(child, "name", None) == part), None)
        if node is None:
            return None
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


def changed_by(read: Callable[..., str], test: str, pull_request: int, tag: str) -> str:
    """The commit of a pull request that is not in a tag and changed this very test, or took it away; "" if none did.

    Args:
        read: runs a git command and returns what it prints.
    """
    path, _, name = bare(test).partition("::")
    commits = read("log", "--all", "--format=%H", "--fixed-strings", f"--grep=(#{pull_request})", f"^{tag}", "--", path)
    for commit in commits.split():
        before, after = (source_of(read("show", f"{at}:{path}"), name) for at in (f"{commit}^", commit))
        if before is not None and before != after:
            return commit
    return ""


def summary(tag: str, store: Store, files: list[str], code: str, explain: Callable[[str, str], int]) -> Item:
    """What the record says of a tag.

    Args:
        code: the present state of the package. What ran with an earlier one is judged by the tests of that time.
        explain: the pull request that explains a regression, given the test and the patch that it was put down to
            ("" if unknown); 0 if none does.
    """
    pairs = {test: pair for file in files for test, pair in store.of_file(file).items()}
    done = [file for file in files if all(store.complete(arm, file) for arm in ARMS)]
    groups: dict[str, list[str]] = {}
    for test in sorted(test for test, pair in pairs.items() if differ(pair)):
        groups.setdefault(store.verdict(test, store.code("shim", test.partition("::")[0])), []).append(test)
    same = [pair for pair in pairs.values() if not differ(pair)]
    counts = Counter(kind_of(stock["outcome"]) for stock, _ in same)
    regressions = []
    for test in groups.get("regression", []):
        patch = store.blamed(test, store.code("shim", test.partition("::")[0]))
        why = pairs[test][1]["why"]
        regressions.append({"test": test, "patch": patch, "explained_by": explain(test, patch), "why": why})
    return {
        "tag": tag,
        "files": len(files),
        "files_done": len(done),
        "files_with_other_code": sum(store.code("shim", file) != code for file in done),
        "tests": len(pairs),
        "passed": counts["good"],
        "failed": counts["bad"],
        "skipped": counts["skipped"],
        "why_failed": reasons(stock for stock, _ in same if kind_of(stock["outcome"]) == "bad"),
        "why_skipped": reasons(stock for stock, _ in same if stock["outcome"] == "skipped"),
        "regressions": regressions,
        "improved": groups.get("improved", []),
        "changed": groups.get("changed", []),
        "flaky": groups.get("flaky", []),
        "open": [*groups.get("open", []), *groups.get("company", [])],
    }


def reasons(items: Iterable[Item]) -> dict[str, int]:
    """How often each reason was given, the commonest first: the kind of an exception, or what a test requires."""
    found: Counter[str] = Counter()
    for item in items:
        why = item["why"]
        if item["outcome"] == "skipped":
            found[re.sub(r"\s+", " ", why)[:80]] += 1
        else:
            error = re.match(r"(?:[\w.]+\.)?(\w*(?:Error|Exception|Exit|Failed|Interrupt|Warning))\b", why)
            found[error[1] if error else "timeout" if item["outcome"] == "timeout" else "other"] += 1
    return dict(found.most_common())


def brief(found: Item) -> str:
    """One line, and the names of what is a defect or undecided."""
    defects = [item for item in found["regressions"] if not item["explained_by"]]
    text = (
        f"{found['tag']}: {found['files_done']} of {found['files']} files, {found['tests']} tests, "
        f"{found['passed']} pass in both, {len(found['regressions'])} regressions, "
        f"{len(found['regressions']) - len(defects)} of them explained, {len(found['improved'])} improved, "
        f"{len(found['flaky'])} flaky, {len(found['open'])} undecided"
    )
    return "\n".join([text, *(f"  defect ({item['patch'] or 'patch unknown'}): {item['test']}" for item in defects)])


def write(directory: Path, facts: Item, planned: Iterable[str], tags: list[Item]) -> None:
    """Write ``upstream_tests.json``. What is there of other tags stays, if it was seen in the same circumstances."""
    path = directory / "upstream_tests.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"circumstances": {}, "tags": []}
    names = [name for name in facts if name not in NOT_COMPARED]
    same = all(known["circumstances"].get(name) == facts[name] for name in names)
    found = {tag["tag"]: tag for tag in [*(known["tags"] if same else []), *tags]}
    order = list(planned)
    data = {"circumstances": facts, "planned": order, "tags": [found[tag] for tag in sorted(found, key=order.index)]}
    path.write_text(compact(data), encoding="utf-8")


def compact(data: Item) -> str:
    """JSON with a line for each list and each number of a tag."""
    tags = (",\n  ".join(f"{json.dumps(name)}: {json.dumps(tag[name])}" for name in tag) for tag in data["tags"])
    head = ",\n".join(f" {json.dumps(name)}: {json.dumps(data[name])}" for name in data if name != "tags")
    return "{\n" + head + ',\n "tags": [\n {' + "},\n {".join(tags) + "}\n ]\n}\n"


def unfinished(data: Item) -> list[str]:
    """What the page has to say first of all if it does not cover everything."""
    begun = [f"{tag['tag']} ({tag['files_done']} of {tag['files']} files)" for tag in data["tags"]]
    partly = [text for text, tag in zip(begun, data["tags"]) if tag["files_done"] < tag["files"]]
    missing = [tag for tag in data["planned"] if tag not in {of["tag"] for of in data["tags"]}]
    said = [f"finished only in part: {', '.join(partly)}"] if partly else []
    said += [f"not begun: {', '.join(missing)}"] if missing else []
    return [f"**Not the whole: {'; '.join(said)}.**", ""] if said else []


def markdown(data: Item, package: str) -> str:
    """The page, for this state of the package: a row for each tag, then what is behind the numbers."""
    facts, tags = data["circumstances"], data["tags"]
    total = sum(len(tag["regressions"]) for tag in tags)
    defects = [(tag["tag"], r) for tag in tags for r in tag["regressions"] if not r["explained_by"]]
    undecided = sum(len(tag["open"]) for tag in tags)
    versions = [f"{name} {fact}" for name, fact in facts.items() if name not in NOT_COMPARED]
    lines = [
        "# Upstream's own tests, stock against shim",
        "",
        "Made of `evidence/upstream_tests.json`, which `scripts/prove upstream_tests REPOSITORY --record` writes.",
        "",
        f"**{sum(tag['tests'] for tag in tags)} tests of {len(tags)} of {len(data['planned'])} releases, "
        f"{total} regressions, {total - len(defects)} of them explained, {len(defects)} defects; "
        f"{undecided} tests undecided"
        + (".**" if facts.get("package") == package else "; all are stale**: the package has changed since."),
        "",
        "The whole of tests_pytorch and tests_fabric at each tag, on the release's wheel, with the default set of "
        f"patches ({', '.join(versions)}; {facts['date']}).",
        "",
        *unfinished(data),
        "| tag | files | tests | pass in both | regressions | explained | improved | flaky | fail in both | skipped |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for tag in tags:
        files = str(tag["files"]) if tag["files_done"] == tag["files"] else f"**{tag['files_done']} of {tag['files']}**"
        explained = sum(bool(item["explained_by"]) for item in tag["regressions"])
        numbers = [files, tag["tests"], tag["passed"], len(tag["regressions"]), explained, len(tag["improved"])]
        numbers += [len(tag["flaky"]), tag["failed"], tag["skipped"]]
        lines.append(f"| {tag['tag']} | {' | '.join(map(str, numbers))} |")
    lines += [
        "",
        "A regression passes on stock and fails with the shim, in its file and then alone, twice in each arm, or in "
        "both of two runs of its file. It is explained where upstream changed that very test with the fix "
        "(`upstream_tests.explained`, borne out by upstream's history); every other one is a defect. Improved is the "
        "opposite of a regression. A flaky test does not do the same each time. What fails in both does so on this "
        "torch and in this environment, with or without us.",
    ]
    for title, name in (("Undecided", "open"), ("Fail in both, in different ways", "changed")):
        if any(tag[name] for tag in tags):
            lines += ["", f"## {title}", "", *(f"- {tag['tag']} `{test}`" for tag in tags for test in tag[name])]
    if any(tag["files_with_other_code"] for tag in tags):
        lines += ["", "Files whose shim part ran with an earlier state of the package: "]
        lines[-1] += ", ".join(f"{t['tag']} {t['files_with_other_code']}" for t in tags if t["files_with_other_code"])
        lines[-1] += "."
    lines += ["", "## Regressions", ""]
    if total:
        lines += ["| tag | test | patch | explained by |", "| --- | --- | --- | --- |"]
        for tag in tags:
            for item in tag["regressions"]:
                by = f"#{item['explained_by']}" if item["explained_by"] else "**defect**"
                lines.append(f"| {tag['tag']} | `{item['test']}` | {item['patch'] or 'not looked for'} | {by} |")
    else:
        lines.append("None.")
    for title, name in (("Improved", "improved"), ("Flaky", "flaky")):
        lines += ["", f"## {title}", ""]
        lines += [f"- {tag['tag']} `{test}`" for tag in tags for test in tag[name]] or ["None."]
    for title, name in (("Why tests fail in both", "why_failed"), ("Why tests are skipped", "why_skipped")):
        lines += ["", f"## {title}", "", "| reason | tests |", "| --- | ---: |"]
        reason_counts: Counter[str] = Counter()
        for tag in tags:
            reason_counts.update(tag[name])
        lines += [f"| {reason.replace('|', '/')} | {number} |" for reason, number in reason_counts.most_common(25)]
        rest = sum(number for _, number in reason_counts.most_common()[25:])
        if rest:
            lines.append(f"| others | {rest} |")
    return "\n".join(lines) + "\n"
