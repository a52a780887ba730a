"""The page and the JSON API of a service. Imported by ``hybrid-rag serve`` only: it needs FastAPI, which nothing else pays for."""
