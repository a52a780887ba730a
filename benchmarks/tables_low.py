"""Answers from tables: how many questions the rules (and a model) answer, how many of these rightly, and how fast.

    python benchmarks/tables.py [--quick] [--data DIR] [--json FILE] [--misses wrong|declined|elsewhere|all|right] [--model GGUF] [--sample 100]

Questions of WikiTableQuestions are asked each of its file. `--misses` shows them with query, result and gold, but never those of the
tables that are kept for measuring.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tables_speed
import wtq
import yaml
from eval_sets import DATA, PROJECT
from kept import KeptReplies
from machine import describe, load

from hybrid_rag import open_service
from hybrid_rag.filters import Filters
from hybrid_rag.records import Answer
from hybrid_rag.service import Service

NUM_CTX = 4096
OTHER_TABLES = 3  # that a question is asked of by mistake
TEXT_SETS = ("anthropic_docs", "squad")
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def service_over(folder: Path, index: Path, **settings: Any) -> Service:
    given = {
        "data.directory": folder,
        "vector_store.persist_directory": index,
        "embedding.provider": "none",
        "llm.provider": "none",
        **settings,
    }
    return open_service(settings=[f"{key}={value}" for key, value in given.items()])


@contextmanager
def indexed(folder: Path, index: Path, **settings: Any) -> Iterator[Service]:
    with service_over(folder, index, **settings) as service:
        started = time.perf_counter()
        service.index()
        say(f"{folder.name}: indexed in {time.perf_counter() - started:.1f} s")
        yield service


def answers(answer: Answer) -> list[Any]:
    """What the answer claims: the first cell of each row of the result."""
    return [row[0] for row in answer.table.rows] if answer.table else []


def ask(service: Service, question: wtq.TableQuestion) -> Answer | None:
    return service.ask_tables(question.text, filters=Filters.parse(sources=(question.source,)))


# ---------------------------------------------------------------- quality


def by_rules(service: Service, asked: list[wtq.TableQuestion], misses: str, quick: bool) -> dict[str, Any]:
    out: dict[str, Any] = {}
    times = []
    for part, held in (("tuned on", False), ("held out", True)):
        some = [q for q in asked if q.held_out == held]
        counts = {"questions": len(some), "answered": 0, "right": 0}
        for question in some:
            started = time.perf_counter()
            answer = ask(service, question)
            times.append((time.perf_counter() - started) * 1000)
            good = answer is not None and wtq.is_right(answers(answer), question.gold)
            counts["answered"] += answer is not None
            counts["right"] += good
            kind = "declined" if answer is None else "right" if good else "wrong"
            if not held and misses in (kind, "all"):
                shown = f"\n   {answer.sql}\n   got {answers(answer)[:6]}" if answer else ""
                say(f"{kind}: {question.id} {question.source}: {question.text}{shown}\n   gold {list(question.gold)}")
        out[part] = counts
    out["milliseconds"] = statistics.median(times)
    others = wtq.elsewhere(asked, 1 if quick else OTHER_TABLES)
    out["elsewhere"] = {"questions": len(others), "answered": 0}
    for question in others:
        if (answer := ask(service, question)) is not None:
            out["elsewhere"]["answered"] += 1
            if misses in ("elsewhere", "all"):
                say(f"elsewhere: {question.id} {question.source}: {question.text}\n   {answer.sql}\n   {answer.answer[:150]}")
    return out


def sample_questions(work: Path) -> dict[str, Any]:
    """The table questions of the project's own sample, by rules."""
    asked = [q for q in yaml.safe_load((PROJECT / "tests/eval/questions.yaml").read_text(encoding="utf-8")) if q["type"] == "table"]
    right = 0
    with indexed(PROJECT / "data", work / "sample") as service:
        for question in asked:
            answer = service.ask_tables(question["question"])
            right += answer is not None and any(form in answer.answer for form in (question["answer"], *question.get("accept", ())))
    return {"questions": len(asked), "right": right}


def text_questions(data: Path, services: dict[str, Service]) -> dict[str, Any]:
    """Questions about texts that were routed to a table, by mistake, with each collection of tables beside them."""
    out: dict[str, Any] = {}
    for name in TEXT_SETS:
        file = data / name / "queries.jsonl"
        if not file.is_file():
            out[name] = f"the data is missing ({file})"
            continue
        questions = [json.loads(line)["text"] for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        routed: dict[str, Any] = {}
        for collection, service in services.items():
            started = time.perf_counter()
            found = [q for q in questions if service.ask_tables(q) is not None]
            routed[collection] = {"routed": len(found), "milliseconds": (time.perf_counter() - started) * 1000 / len(questions)}
            for question in found:
                say(f"routed to a table: {question}")
        out[name] = {"questions": len(questions), "collections": routed}
    return out


def by_model(path: Path, folder: Path, work: Path, asked: list[wtq.TableQuestion], count: int) -> dict[str, Any]:
    """Rules, then the model, on a fixed sample; its replies are kept in ``work``. ``numbers``: of the model's sentences, and how many of them the results hold."""
    sys.path.insert(0, str(PROJECT))
    from tests.support.llama import answering, loaded
    from tests.support.ollama import running

    some = sorted(random.Random(wtq.SEED).sample(asked, min(count, len(asked))), key=lambda q: q.id)
    out = {"questions": len(some), "rules": 0, "rules right": 0, "model": 0, "model right": 0, "numbers": 0, "numbers in results": 0}
    with (
        loaded(path, num_ctx=NUM_CTX, threads=1) as reply,
        running(answering(KeptReplies(work / "replies.sqlite", path.name, reply))) as server,
    ):
        settings = {"llm.provider": "ollama", "ollama.base_url": server.url, "ollama.num_ctx": NUM_CTX, "ollama.answer_seconds": 3600}
        with service_over(folder, work / "wtq", **settings) as service:
            for place, question in enumerate(some, start=1):
                started = time.perf_counter()
                answer = ask(service, question)
                good = answer is not None and wtq.is_right(answers(answer), question.gold)
                by = "none" if answer is None else "model" if answer.model else "rules"
                if answer is not None:
                    out[by] += 1
                    out[f"{by} right"] += good
                if answer is not None and answer.model:
                    told = _numbers(answer.answer) - _numbers(" ".join(answer.table.columns))  # a name like "2nd team" is no number
                    held = {n for row in answer.table.rows for cell in row for n in _numbers(str(cell)) | _rounded(cell)}
                    out["numbers"] += len(told)
                    out["numbers in results"] += len(told & held)
                say(f"{place} of {len(some)}, {time.perf_counter() - started:.0f} s, {by}, {'right' if good else 'wrong'}: {question.text}")
                if answer is not None and answer.model:
                    say(f"   {answer.sql}\n   {answer.answer[:200]}   gold {list(question.gold)[:4]}")
    return out


def _numbers(text: str) -> set[float]:
    return {round(float(n.replace(",", "")), 6) for n in _NUMBER.findall(text)}


def _rounded(cell: Any) -> set[float]:
    return {round(abs(cell), 2)} if isinstance(cell, float) else set()


# ---------------------------------------------------------------- speed


def speed(work: Path, quick: bool) -> dict[str, Any]:
    folder = work / "sales"
    tables_speed.write_sales(folder, tables_speed.RECORDS)
    out: dict[str, Any] = {"records": tables_speed.RECORDS}
    with service_over(folder, work / "sales_index") as service:
        started = time.perf_counter()
        service.index()
        out["index_seconds"] = time.perf_counter() - started
        for name, sql in tables_speed.SQL.items():
            elapsed, result = tables_speed.median_ms(lambda sql=sql: service.sql(sql))
            out[name] = {"sql": elapsed, "value": _figures(result.rows)}
        for name, question in tables_speed.QUESTIONS.items():
            out[name]["question"], answer = tables_speed.median_ms(lambda question=question: service.ask_tables(question))
            out[name]["answered"] = answer is not None
            out[name]["asked value"] = _figures(answer.table.rows) if answer else None
    out["pandas"] = tables_speed.with_pandas(folder)
    out["million"] = tables_speed.million(tables_speed.MILLION // (10 if quick else 1))
    return out


def _figures(rows: Sequence[Sequence[Any]]) -> Any:
    """Rows in the form of those of pandas."""
    found = [(r[0], round(r[1], 2)) if len(r) > 1 else r[0] for r in rows]
    return found[0] if len(found) == 1 else found


# ---------------------------------------------------------------- pages


def show(out: dict[str, Any]) -> None:
    print("## Answers from tables: right ones\n")
    print("| questions | number | answered | right | precision |\n|---|---|---|---|---|")
    if isinstance(rules := out["rules"], dict):
        for part in ("tuned on", "held out"):
            _row(f"WikiTableQuestions, rules, {part}", rules[part]["questions"], rules[part]["answered"], rules[part]["right"])
    _row("the sample's table questions, rules", out["sample"]["questions"], out["sample"]["questions"], out["sample"]["right"])
    if isinstance(model := out["model"], dict):
        _row(
            "WikiTableQuestions, rules and model",
            model["questions"],
            model["rules"] + model["model"],
            model["rules right"] + model["model right"],
        )
        _row("of these by the model", model["questions"] - model["rules"], model["model"], model["model right"])
    for name in ("rules", "model"):
        if isinstance(out[name], str):
            print(f"\nnot run: {name}: {out[name]}")
    if isinstance(rules, dict):
        other = rules["elsewhere"]
        print(f"\nA question takes the rules {rules['milliseconds']:.0f} ms (median).")
        print(f"Asked of tables that they do not belong to, {other['answered']} of {other['questions']:,} questions are answered.")
    if isinstance(model, dict):
        print(f"Numbers in the model's sentences: {model['numbers']}, of these in the result: {model['numbers in results']}.")
    print("\n| text questions | tables beside them | number | routed to a table | ms a question |\n|---|---|---|---|---|")
    for name, found in out["text"].items():
        if isinstance(found, str):
            print(f"| {name} | | not run: {found} | | |")
            continue
        for collection, routed in found["collections"].items():
            print(f"| {name} | {collection} | {found['questions']} | {routed['routed']} | {routed['milliseconds']:.0f} |")
    s, peer = out["speed"], out["speed"]["pandas"]
    print(f"\n## Answers from tables: time over {s['records']:,} records\n")
    print("| | question | SQL | pandas, reading the CSV | pandas, in memory |\n|---|---|---|---|---|")
    for name in tables_speed.SQL:
        beside = ("", "") if isinstance(peer, str) else tuple(f"{peer[name][key]:.1f} ms" for key in ("from CSV", "in memory"))
        values = [
            s[name]["value"],
            *([s[name]["asked value"]] if s[name]["answered"] else []),
            *([] if isinstance(peer, str) else [peer[name]["value"]]),
        ]
        same = "" if all(value == values[0] for value in values) else " (results differ)"
        asked = f"{s[name]['question']:.1f} ms" if s[name]["answered"] else "declined"
        print(f"| {name}{same} | {asked} | {s[name]['sql']:.1f} ms | {beside[0]} | {beside[1]} |")
    if isinstance(peer, str):
        print(f"\nnot run: pandas: {peer}")
    m = s["million"]
    print(
        f"\nA table of {m['rows']:,} rows ({m['csv_mb']:.0f} MB of CSV) is imported in {m['import_seconds']:.1f} s ({m['import_cpu_seconds']:.1f} s of CPU), with {m['peak_mb']:.0f} MB "
        f"at the most ({m['before_mb']:.0f} MB before); its file has {m['file_mb']:.0f} MB, and a count takes {m['count_ms']:.0f} ms."
    )


def _row(name: str, questions: int, answered: int, right: int) -> None:
    share = f"{right / answered:.2f}" if answered else ""
    print(f"| {name} | {questions} | {answered} ({answered / max(1, questions):.0%}) | {right} | {share} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the million rows, fewer text questions' tables, fewer wrong tables"
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--work", type=Path, help="where indexes and the model's replies are kept between runs")
    parser.add_argument("--misses", choices=["none", "wrong", "declined", "elsewhere", "all", "right"], default="none")
    parser.add_argument("--only", choices=["rules", "model"], help="nothing else")
    parser.add_argument("--model", type=Path, help="a language model (GGUF), run behind the tests' server")
    parser.add_argument("--sample", type=int, default=100, help="questions that are asked with the model")
    options = parser.parse_args()
    if __name__ == "__main__" and not options.only:
        print(f"{describe()}, {load():.1f} processes waiting\n")
    with tempfile.TemporaryDirectory() as folder:
        out = measure(options, options.work or Path(folder))
    if not options.only:
        show(out)
    else:
        print(json.dumps(out, indent=1))
    if options.json:
        options.json.write_text(json.dumps(out, indent=1), encoding="utf-8")


def measure(options: argparse.Namespace, work: Path) -> dict[str, Any]:
    folder, out = options.data / "wikitablequestions", {}
    missing = "" if (folder / "questions.tsv").is_file() else f"the data is missing ({folder})"
    asked = [] if missing else wtq.load(folder)
    out["rules"], out["model"] = missing, missing or ("" if options.model else "no model was given (--model GGUF)")
    services: dict[str, Service] = {}
    if not missing:
        with indexed(folder / "csv", work / "wtq") as service:
            services["WikiTableQuestions"] = service
            if options.only != "model":
                out["rules"] = by_rules(service, asked, options.misses, options.quick)
            if not options.only:
                out["text"] = text_questions(options.data, {} if options.quick else services)
        if options.model:
            out["model"] = by_model(options.model, folder / "csv", work, asked, options.sample)
    if options.only:
        return out
    out["sample"] = sample_questions(work)
    with service_over(PROJECT / "data", work / "sample") as service:
        found = text_questions(options.data, {"the sample": service})
        for name, entry in found.items():
            held = out.setdefault("text", {}).setdefault(name, entry)
            if isinstance(held, dict) and isinstance(entry, dict):
                held["collections"] |= entry["collections"]
    out["speed"] = speed(work, options.quick)
    return out


if __name__ == "__main__":
    main()
