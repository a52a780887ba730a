"""The answer as a Runnable: retriever, stuff prompt, any chat model of LangChain's, and the citation check."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from hybrid_rag import citations
from hybrid_rag.instructions import without_instructions
from hybrid_rag.prompts import DONT_KNOW, Passage, build

SENTENCES = 3


def answer_chain(retriever: BaseRetriever, model: BaseChatModel, *, sentences: int = SENTENCES) -> Runnable[str, dict[str, Any]]:
    """question -> {"question", "documents", "answer", "cited", "notes"}.

    ``answer`` holds only sentences whose numbers, names and dates stand in a cited document; ``cited`` are those
    documents by their number. Sentences of documents that speak to the model support nothing. When nothing was found the
    model is not asked.
    """
    prompt = RunnableLambda(lambda x: stuff_prompt(x["question"], x["documents"], sentences=sentences))
    write = RunnableLambda(lambda x: (prompt | model).invoke(x).text if x["documents"] else DONT_KNOW)
    gather = RunnableLambda(lambda question: {"question": question, "documents": retriever.invoke(question)})
    return gather | RunnablePassthrough.assign(written=write) | RunnableLambda(_checked)


def stuff_prompt(question: str, documents: list[Document], *, sentences: int = SENTENCES) -> ChatPromptValue:
    """The stuff prompt over documents: numbered from 1, fenced as data."""
    from langchain_core.messages import HumanMessage, SystemMessage

    passages = [Passage(n, str(d.metadata.get("source", "")), d.page_content) for n, d in enumerate(documents, start=1)]
    (_, system), (_, human) = build(question, passages, sentences=sentences)
    return ChatPromptValue(messages=[SystemMessage(system), HumanMessage(human)])


def _checked(state: dict[str, Any]) -> dict[str, Any]:
    documents: list[Document] = state["documents"]
    evidence = [(n, f"{d.metadata.get('source', '')}\n{without_instructions(d.page_content)[0]}") for n, d in enumerate(documents, start=1)]
    result = citations.check(state["written"], evidence)
    cited = {n: documents[n - 1] for _, numbers in result.sentences for n in numbers}
    return {
        "question": state["question"],
        "documents": documents,
        "answer": result.text or DONT_KNOW,
        "cited": dict(sorted(cited.items())),
        "notes": list(result.notes),
    }
