"""``python -m hybrid_rag`` is the command ``hybrid-rag``."""

from hybrid_rag.cli import main

if __name__ == "__main__":
    main()
