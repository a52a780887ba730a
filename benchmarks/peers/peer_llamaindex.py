"""LlamaIndex: a VectorStoreIndex over Chroma and its BM25Retriever (stored beside it), fused by QueryFusionRetriever.

Chunks get a number in their metadata: the fusion takes chunks of equal text and metadata for one, so that a text which stands in several
places of a file adds up and comes first (hit@1 .32 on documentation).
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from llama_index.core import SimpleDirectoryReader, StorageContext, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import BaseNode, TextNode
from llama_index.retrievers.bm25 import BM25Retriever
from llama_index.vector_stores.chroma import ChromaVectorStore
from measure import Peer, files, main
from pydantic import PrivateAttr

logging.disable(logging.INFO)
HIDDEN = ["source", "number"]  # metadata that is not part of the text


class _Embedding(BaseEmbedding):
    _held: Any = PrivateAttr()

    def __init__(self, embedder: Any) -> None:
        super().__init__(embed_batch_size=2048)
        self._held = embedder

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._held.query(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._held.documents([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._held.documents(texts)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class LlamaIndex(Peer):
    packages = ("llama-index-core", "llama-index-retrievers-bm25", "llama-index-vector-stores-chroma", "chromadb", "bm25s")

    def load(self, folder: Path) -> list[BaseNode]:
        return self._read(files(folder))

    def _read(self, paths: list[Path]) -> list[BaseNode]:
        documents = SimpleDirectoryReader(input_files=paths).load_data()
        for document in documents:
            document.metadata = {"source": document.metadata["file_name"]}
            document.excluded_embed_metadata_keys = document.excluded_llm_metadata_keys = HIDDEN
        splitter = SentenceSplitter(chunk_size=self.size, chunk_overlap=self.overlap, tokenizer=list, paragraph_separator="\n\n")
        nodes = splitter.get_nodes_from_documents(documents)
        for number, node in enumerate(nodes):
            node.metadata["number"] = number
        return nodes

    def _vectors(self) -> ChromaVectorStore:
        import chromadb

        self._collection = chromadb.PersistentClient(str(self.store)).get_or_create_collection("peers")
        return ChromaVectorStore(chroma_collection=self._collection)

    def index(self, folder: Path, chunks: list[BaseNode]) -> float | None:
        context = StorageContext.from_defaults(vector_store=self._vectors())
        self._index = VectorStoreIndex(chunks, storage_context=context, embed_model=_Embedding(self.embedder))
        self._words(chunks)
        self._combine()
        return None

    def _words(self, nodes: list[BaseNode]) -> None:
        self._bm25 = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=min(self.k, len(nodes)))
        self._bm25.persist(str(self.store / "bm25"))

    def _combine(self) -> None:
        vectors = self._index.as_retriever(similarity_top_k=self.k)
        self._fused = QueryFusionRetriever(
            [vectors, self._bm25], llm=MockLLM(), mode="reciprocal_rerank", similarity_top_k=self.k, num_queries=1, use_async=False
        )

    def open(self) -> None:
        self._index = VectorStoreIndex.from_vector_store(self._vectors(), embed_model=_Embedding(self.embedder))
        self._bm25 = BM25Retriever.from_persist_dir(str(self.store / "bm25"))
        self._bm25.similarity_top_k = self.k
        self._combine()

    def search(self, query: str) -> list[str]:
        return [n.metadata["source"] for n in self._fused.retrieve(query)]

    def update(self, folder: Path, changed: Path) -> None:
        held = self._collection.get(where={"source": changed.name}, include=[])["ids"]
        for start in range(0, len(held), 5000):
            self._collection.delete(ids=held[start : start + 5000])
        self._index.insert_nodes(self._read([changed]))
        nodes: list[BaseNode] = []
        while (kept := self._collection.get(limit=5000, offset=len(nodes), include=["documents", "metadatas"]))["ids"]:
            nodes += [
                TextNode(id_=i, text=text, metadata={key: m[key] for key in HIDDEN}, excluded_embed_metadata_keys=HIDDEN)
                for i, text, m in zip(kept["ids"], kept["documents"], kept["metadatas"], strict=True)
            ]
        self._words(nodes)
        self._combine()


if __name__ == "__main__":
    main(LlamaIndex)
