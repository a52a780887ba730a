"""hybrid-rag: answers from a folder of documents and tables, with citations that code has checked."""
