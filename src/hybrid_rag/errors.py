"""The error tree. Every error that a user can meet is one of these.

    HybridRagError            message + remedy
    ├── ConfigError           a configuration value is wrong or a key is unknown
    ├── InputError            an argument of a call is wrong (query, filter, path, SQL text)
    ├── DataError             the data folder is missing or holds nothing to index
    ├── ReadError             one file could not be read (collected in the report, never fatal)
    ├── ModelError            a bundled or local model file is missing or altered
    ├── EmbeddingError        an embedder failed on some texts, or answered wrongly
    ├── IndexError_           the index directory
    │   ├── IndexLockedError      another process is writing
    │   ├── IndexDamagedError     the catalog cannot be read; rebuild from the documents
    │   ├── IndexVersionError     made by another schema version
    │   ├── IndexEmptyError       nothing is indexed yet
    │   ├── IndexStorageError     the disk is full, or the folder cannot be read or written
    │   └── EmbedderMismatchError the index holds vectors of another embedder
    ├── OllamaError           the Ollama server
    │   ├── OllamaUnreachableError   no server at the address
    │   ├── OllamaModelMissingError  the server does not have the model
    │   ├── OllamaBusyError          503 after all retries
    │   └── OllamaProtocolError      cut body, malformed or unexpected answer
    ├── TableError            a table question or a SQL statement
    │   ├── SqlRejectedError      not one read-only SELECT
    │   └── SqlLimitError         time, memory, rows or output limit
    ├── MissingExtraError     an optional package is not installed
    └── Cancelled             the user stopped a run; what was done is kept

Interfaces print ``message`` and ``remedy``; ``--debug`` lets the traceback through.
"""


class HybridRagError(Exception):
    """Base of all errors shown to users.

    ``message`` says what and where; ``remedy`` is what to do about it (may be empty);
    ``exit_code`` is what a command exits with.
    """

    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n{self.remedy}" if self.remedy else self.message

    def __reduce__(self):
        # Errors cross process boundaries (readers run in worker processes).
        return type(self), (self.message, self.remedy)

    def to_dict(self) -> dict[str, str]:
        return {"error": type(self).__name__, "message": self.message, "remedy": self.remedy}


class ConfigError(HybridRagError):
    exit_code = 2


class InputError(HybridRagError):
    exit_code = 2


class DataError(HybridRagError):
    pass


class ReadError(HybridRagError):
    pass


class ModelError(HybridRagError):
    pass


class EmbeddingError(HybridRagError):
    pass


class IndexError_(HybridRagError):
    """Base of index errors (the underscore keeps the builtin's name free)."""


class IndexLockedError(IndexError_):
    exit_code = 3


class IndexDamagedError(IndexError_):
    exit_code = 4


class IndexVersionError(IndexError_):
    exit_code = 4


class IndexEmptyError(IndexError_):
    pass


class IndexStorageError(IndexError_):
    pass


class EmbedderMismatchError(IndexError_):
    pass


class OllamaError(HybridRagError):
    exit_code = 5


class OllamaUnreachableError(OllamaError):
    pass


class OllamaModelMissingError(OllamaError):
    pass


class OllamaBusyError(OllamaError):
    pass


class OllamaProtocolError(OllamaError):
    pass


class TableError(HybridRagError):
    pass


class SqlRejectedError(TableError):
    exit_code = 2


class SqlLimitError(TableError):
    pass


class MissingExtraError(HybridRagError):
    exit_code = 2


class Cancelled(HybridRagError):
    exit_code = 130
