"""Start the MCP server: the same as `hybrid-rag mcp`, for clients that are given a script."""

import sys

from hybrid_rag.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["mcp"]
    main()
