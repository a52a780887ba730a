"""A conversation: follow-up questions are understood from the turns before, and the rewritten question is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid_rag.citations import strip_links
from hybrid_rag.errors import HybridRagError
from hybrid_rag.filters import Filters
from hybrid_rag.records import Answer, Turn

if TYPE_CHECKING:
    from hybrid_rag.service import Service

TURNS_REMEMBERED = 6
LONGEST_REWRITE = 400  # characters; a model that writes more has not rewritten a question
_FOLLOW_UP = re.compile(r"^\s*(?:and|but|so|also|what about|how about|why|when|where|then)\b|\b(?:it|its|they|them|their|that one|this one|those|these|he|she|his|her|him|there)\b", re.IGNORECASE)
_SUBJECT = re.compile(r"\b[A-Z][\w-]*(?:\s+(?:[A-Z][\w-]*|\d[\w.-]*))*|\b[A-Za-z]*\d[\w-]*\b|[\"“]([^\"”]+)[\"”]")
_QUESTION_WORDS = frozenset(["What", "Which", "Who", "When", "Where", "Why", "How", "Is", "Are", "Was", "Were", "Do", "Does", "Did", "Can", "Could", "Will", "Would", "Should", "The", "A", "An", "In", "On", "For", "And", "But", "Within", "From", "Until", "By"])

PROMPT = """Rewrite the last question so that it can be understood without the conversation. Keep its language and meaning.
Write the question only.

{turns}
Last question: {question}
Rewritten question:"""


class Conversation:
    """Turns of questions and answers over one service. Not for several threads at once."""

    def __init__(self, service: Service, *, filters: Filters | None = None) -> None:
        self._service, self._filters = service, filters
        self.turns: list[Turn] = []

    def ask(
        self, question: str, *, k: int | None = None, on_token: Callable[[str], None] | None = None, cancel: Callable[[], bool] | None = None
    ) -> Answer:
        """Answer a question in the light of the turns before; ``rewritten_question`` is set when it was rewritten."""
        asked = self._rewritten(question, cancel) if self.turns and _FOLLOW_UP.search(question) else question
        answer = self._service.ask(asked, filters=self._filters, k=k, on_token=on_token, cancel=cancel)
        rewritten = asked if asked != question else None
        answer = replace(answer, question=question, rewritten_question=rewritten)
        sources = tuple(dict.fromkeys(c.source for c in answer.citations))
        self.turns.append(Turn(question, rewritten, answer.answer, sources))
        return answer

    def command(self, line: str) -> str:
        """Carry out /reset, /sources or /export FILE and say what was done."""
        name, _, argument = line.strip().partition(" ")
        if name == "/reset":
            self.reset()
            return "The conversation begins anew."
        if name == "/sources":
            lines = [f"{i}. {turn.question}: {', '.join(turn.sources) or 'no sources'}" for i, turn in enumerate(self.turns, start=1)]
            return "\n".join(lines) or "No questions yet."
        if name == "/export" and argument.strip():
            path = Path(argument.strip())
            self.export(path)
            return f"{len(self.turns)} turns were written to {path}."
        return "Commands: /sources, /reset, /export FILE. An empty line ends."

    def reset(self) -> None:
        self.turns.clear()

    def export(self, path: Path) -> None:
        """Write the turns as JSON when the file is named so, else as Markdown. Raises HybridRagError."""
        if path.suffix == ".json":
            text = json.dumps([asdict(turn) for turn in self.turns], ensure_ascii=False, indent=2)
        else:
            text = "\n".join(f"## {t.question}\n\n{t.answer}\n\n{''.join(f'- {s}{chr(10)}' for s in t.sources)}" for t in self.turns)
        try:
            path.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise HybridRagError(f"{path} cannot be written: {error.strerror}.", "Name another file.") from error

    def _rewritten(self, question: str, cancel: Callable[[], bool] | None = None) -> str:
        chat = self._service.parts.chat() if self._service.config.llm.rewrite_followups else None
        if chat is None:
            return self._with_subject(question)
        turns = "\n".join(f"Question: {t.rewritten or t.question}\nAnswer: {t.answer[:300]}" for t in self.turns[-TURNS_REMEMBERED:])
        text = chat.generate([("human", PROMPT.format(turns=turns, question=question))], cancel=cancel).text
        line = strip_links(text).strip().splitlines()[0].strip(' "“”') if text.strip() else ""
        return line if 0 < len(line) <= LONGEST_REWRITE else self._with_subject(question)

    def _with_subject(self, question: str) -> str:
        """The question with the names of the last question behind it, those that it does not name itself."""
        last = self.turns[-1].rewritten or self.turns[-1].question
        names = [m[1] or m[0] for m in _SUBJECT.finditer(last)]
        names = [" ".join(w for w in name.split() if w not in _QUESTION_WORDS) for name in names]
        fresh = [name for name in dict.fromkeys(names) if name and name.casefold() not in question.casefold()]
        if not fresh:
            return f"{question.rstrip()} ({last.rstrip('?')})"
        return f"{question.rstrip('? ')} ({', '.join(fresh)})?"
