"""What the tables of benchmarks/retrieval.py stand on: intervals, parameters chosen on other questions, forms of reranking."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import eval_sets
import numpy as np

from hybrid_rag.fusion import fuse, mix
from hybrid_rag.metrics import hit, ndcg, reciprocal_rank, unique
from hybrid_rag.retrieval import Retriever

DEPTH = 50  # chunks: enough for ten units
WEIGHTS = (0.3, 0.4, 0.5)
DEFAULT_WEIGHT = 0.4
RESAMPLES = 2000
Values = dict[str, float]  # of each question


@dataclass
class Study:
    """Of one set: nDCG@10 of each question by pipeline and by weight of the vector leg, and rankings by form of reranking."""

    ndcg: dict[str, Values]
    by_weight: dict[float, Values] = field(default_factory=dict)
    reranked: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # form -> question -> units
    relevant: Mapping[str, frozenset[str]] = field(default_factory=dict)


def collect(
    chosen: eval_sets.EvalSet,
    relevant: Mapping[str, frozenset[str]],
    rankings: Mapping[str, Mapping[str, list[str]]],
    make: Callable[..., Retriever],
    *,
    grid: bool,
) -> Study:
    study = Study({name: {q: ndcg(r[q], relevant[q]) for q in relevant} for name, r in rankings.items()}, relevant=relevant)
    if not grid:
        return study
    for weight in WEIGHTS:
        retriever = make(dense_weight=weight)
        study.by_weight[weight] = {
            q: ndcg(unique([chosen.unit(h.chunk) for h in retriever.search(text, k=DEPTH).hits]), relevant[q])
            for q, text in chosen.questions.items()
        }
    retriever = make(rerank_top=10)
    for question, text in chosen.questions.items():
        plain = retriever.search(text, k=DEPTH).hits
        logits = {h.chunk_id: h.scores["rerank"] for h in retriever.search(text, k=DEPTH, rerank=True).hits if "rerank" in h.scores}
        units = [chosen.unit(h.chunk) for h in plain]
        scores = [h.scores["weighted"] for h in plain]
        for form, order in forms(scores, [logits[h.chunk_id] for h in plain[:10]]).items():
            study.reranked.setdefault(form, {})[question] = unique([units[i] for i in order])
    return study


def forms(scores: list[float], logits: list[float]) -> dict[str, list[int]]:
    """The same hits (by their place, from 0) in each form of reranking; ``logits`` of the first ten."""
    every, read = list(range(len(scores))), len(logits)

    def by_logit(n: int) -> list[int]:
        return sorted(every[: min(n, read)], key=lambda i: (-logits[i], i)) + every[min(n, read) :]

    def orders(share: float) -> list[int]:
        return [i for i, _ in fuse([every[:read], by_logit(read)[:read]], [1 - share, share], k=10)] + every[read:]

    def mixed(share: float) -> list[int]:
        return [i for i, _ in mix(scores[:read], logits, share)] + every[read:]

    return {
        "none": every,
        "first three by the cross-encoder": by_logit(3),
        "first five by the cross-encoder": by_logit(5),
        "first ten by the cross-encoder": by_logit(10),
        "first ten, orders fused .5": orders(0.5),
        **{f"first ten, scores mixed {share:.1f}": mixed(share) for share in (0.2, 0.3, 0.4, 0.5, 0.6)},
    }


def report(studies: Mapping[str, Study]) -> dict[str, Any]:
    """Print all three; the figures."""
    return {"intervals": intervals(studies), "held out": held_out(studies), "rerank": reranking(studies)}


def intervals(studies: Mapping[str, Study]) -> dict[str, Any]:
    """Hybrid minus the better leg, paired by question: the mean and where 95 % of resampled means lie."""
    print(f"\n## nDCG@10: hybrid minus the better leg, 95 % of {RESAMPLES:,} paired resamples\n")
    print("| set | better leg | leg | hybrid | difference | interval |\n|---|---|---|---|---|---|")
    out = {}
    rng = np.random.default_rng(0)
    for name, study in studies.items():
        leg = max(("keyword", "dense"), key=lambda n: np.mean(list(study.ndcg[n].values())))
        questions = sorted(study.ndcg["hybrid"])
        gains = np.array([study.ndcg["hybrid"][q] - study.ndcg[leg][q] for q in questions])
        means = gains[rng.integers(0, len(gains), (RESAMPLES, len(gains)))].mean(axis=1)
        low, high = np.percentile(means, [2.5, 97.5])
        leg_mean, mean = (float(np.mean(list(study.ndcg[n].values()))) for n in (leg, "hybrid"))
        out[name] = {"leg": leg, "leg nDCG@10": leg_mean, "hybrid nDCG@10": mean, "low": float(low), "high": float(high)}
        print(f"| {name} | {leg} | {leg_mean:.3f} | {mean:.3f} | {mean - leg_mean:+.3f} | {low:+.3f} to {high:+.3f} |")
    return out


def held_out(studies: Mapping[str, Study]) -> dict[str, Any]:
    """The weight of the vector leg chosen on one half of all questions (mean over sets), measured on the other half."""
    print("\n## The weight of the vector leg, chosen on one half of the questions and measured on the other (nDCG@10)\n")
    print("| chosen on | weight | set | better leg there | hybrid, chosen weight | hybrid, default .4 |\n|---|---|---|---|---|---|")
    out: dict[str, Any] = {}
    for half in (0, 1):
        mine = {name: [q for q in study.relevant if _half(q) == half] for name, study in studies.items()}
        other = {name: [q for q in study.relevant if _half(q) != half] for name, study in studies.items()}
        weight = max(WEIGHTS, key=lambda w: np.mean([_mean(s.by_weight[w], mine[n]) for n, s in studies.items()]))
        for name, study in studies.items():
            leg = max(_mean(study.ndcg[n], other[name]) for n in ("keyword", "dense"))
            chosen, default = (_mean(study.by_weight[w], other[name]) for w in (weight, DEFAULT_WEIGHT))
            out[f"{name}, chosen on half {half + 1}"] = {"weight": weight, "better leg": leg, "chosen": chosen, "default": default}
            print(f"| half {half + 1} | {weight} | {name} | {leg:.3f} | {chosen:.3f} | {default:.3f} |")
    return out


def reranking(studies: Mapping[str, Study]) -> dict[str, Any]:
    """hit@1, MRR and nDCG@10 by form."""
    print("\n## Forms of reranking: hit@1 / MRR / nDCG@10\n")
    form_names = list(next(iter(studies.values())).reranked)
    print("| form | " + " | ".join(studies) + " | mean |\n|---|" + "---|" * (len(studies) + 1))
    out: dict[str, Any] = {}
    for form in form_names:
        for name, study in studies.items():
            pairs = [(study.reranked[form][q], study.relevant[q]) for q in study.relevant]
            out.setdefault(form, {})[name] = [float(np.mean([f(*p) for p in pairs])) for f in (_first, reciprocal_rank, ndcg)]
        out[form]["mean"] = np.mean([out[form][name] for name in studies], axis=0).tolist()
        print(f"| {form} | " + " | ".join("{:.3f} / {:.3f} / {:.3f}".format(*values) for values in out[form].values()) + " |")
    return out


def _first(ranking: list[str], relevant: frozenset[str]) -> float:
    return hit(ranking, relevant, 1)


def _half(question: str) -> int:
    return zlib.crc32(question.encode()) & 1


def _mean(values: Values, questions: list[str]) -> float:
    return float(np.mean([values[q] for q in questions]))
