"""The sample collection: tables, documents that agree with them, and the large set for benchmarks."""
