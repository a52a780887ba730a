"""Thin adapters between this package and LangChain, one module a kind of part. Importing one of them imports langchain_core."""
