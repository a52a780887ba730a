"""The protocol joined to the tools: lists, calls, errors as results, cancellation. The same for every transport."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.shared.exceptions import MCPError

from hybrid_rag.errors import HybridRagError, IndexEmptyError
from hybrid_rag.mcp_server import prompts, resources
from hybrid_rag.mcp_server.arguments import Call
from hybrid_rag.mcp_server.library import Library
from hybrid_rag.mcp_server.results import Reply
from hybrid_rag.mcp_server.schema import check
from hybrid_rag.mcp_server.tools import BY_NAME, INSTRUCTIONS, TOOLS, Tool
from hybrid_rag.mcp_server.updates import Updates

if TYPE_CHECKING:
    from hybrid_rag.service import Service

NAME, TITLE = "hybrid-rag", "My documents"
CALLS_AT_ONCE = 16  # that run at the same time; more wait
ANSWERS_AT_ONCE = 4  # calls that may wait for a language model: they have room of their own, so that nothing waits behind them
CHANGES = NotificationOptions(resources_changed=True)
T = TypeVar("T")
log = logging.getLogger(__name__)
# What a remedy for the command line means to a client.
_TOOL_WORDS = (
    ("Run `hybrid-rag index`", "Call update_documents"),
    ("run `hybrid-rag index`", "call update_documents"),
    ("`hybrid-rag list`", "list_documents"),
    ("`hybrid-rag tables`", "describe_tables"),
    ("`hybrid-rag report`", "get_report"),
    ("`hybrid-rag search --json`", "search_documents"),
    ("`hybrid-rag read` without --heading", "read_document without heading"),
)


class DocumentServer:
    """The tools, resources and prompts over one library. ``server`` is what a transport runs."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.updates = Updates(library)
        self._limiters: dict[int, anyio.CapacityLimiter] = {}
        self.server: Server[Any] = Server(
            NAME,
            title=TITLE,
            version=version("hybrid-rag"),
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
        )
        self.server.middleware.append(self._observe)

    async def _observe(self, ctx: Any, call_next: Callable[[Any], Any]) -> Any:
        """Open the index once a client has its first answer, and note why a call was cancelled."""
        if ctx.method == "notifications/cancelled":
            self.updates.note_cancelled((ctx.params or {}).get("requestId"), str((ctx.params or {}).get("reason") or ""))
        answer = await call_next(ctx)
        if ctx.method not in ("initialize", "server/discover", "ping"):
            self.warm()
        return answer

    def warm(self) -> None:
        """Begin to open the index in the background and, where the configuration says so, to bring it up to date."""
        self.library.warm(self._opened)

    def _opened(self, service: Service) -> None:
        if service.config.mcp.sync_on_start:
            self.updates.begin(service)

    def close(self) -> None:
        """Stop a run after its present batch and let go of the index."""
        self.library.close()

    async def _in_thread(self, function: Callable[[], T], at_once: int = CALLS_AT_ONCE) -> T:
        """Run a blocking call; a client that cancels is let go at once."""
        if at_once not in self._limiters:
            self._limiters[at_once] = anyio.CapacityLimiter(at_once)
        return await anyio.to_thread.run_sync(function, abandon_on_cancel=True, limiter=self._limiters[at_once])

    # ------------------------------------------------------------ tools

    async def _list_tools(self, ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in TOOLS])

    async def _call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = BY_NAME.get(params.name)
        if tool is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"There is no tool {params.name!r}. Tools: {', '.join(BY_NAME)}.")
        started = time.monotonic()
        try:
            reply = await self._run(tool, params.arguments or {}, ctx)
        except HybridRagError as error:
            log.info("%s: %s after %.0f ms", tool.name, type(error).__name__, (time.monotonic() - started) * 1000)
            return _failed(error_text(error))
        except Exception as error:
            log.exception("%s failed", tool.name)
            return _failed(f"Internal error in {tool.name}: {type(error).__name__}: {error}\nThe server's log file has the details.")
        log.info("%s: %.0f ms", tool.name, (time.monotonic() - started) * 1000)
        return types.CallToolResult(content=[types.TextContent(text=reply.text)], structured_content=reply.data)

    async def _run(self, tool: Tool, given: dict[str, Any], ctx: Any) -> Reply:
        arguments = check(tool.name, tool.input, given)
        if tool.name == "update_documents":
            return await self.updates.call(arguments, ctx)
        if tool.name == "get_stats":
            return await self._in_thread(self.updates.stats)
        stopped = threading.Event()
        at_once = ANSWERS_AT_ONCE if tool.name == "query_documents" else CALLS_AT_ONCE
        try:
            return await self._in_thread(
                lambda: tool.load()(Call(self.library.service, self.library.budget, stopped.is_set), arguments), at_once
            )
        except anyio.get_cancelled_exc_class():
            stopped.set()  # a language model that is writing ends
            raise

    # ------------------------------------------------------------ resources

    async def _list_resources(self, ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        cursor = params.cursor if params else None
        try:
            return await self._in_thread(lambda: resources.page(self.library.service, cursor))
        except IndexEmptyError:
            return types.ListResourcesResult(resources=[])  # there are none; the tools say how to index
        except HybridRagError as error:
            raise _protocol_error(error) from error

    async def _list_templates(self, ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def _read_resource(self, ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        try:
            return await self._in_thread(lambda: resources.read(self.library.service, str(params.uri), self.library.budget))
        except HybridRagError as error:
            raise _protocol_error(error) from error

    async def _complete(self, ctx: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
        try:
            return await self._in_thread(lambda: resources.complete(self.library.service, params))
        except HybridRagError:
            return types.CompleteResult(completion=types.Completion(values=[]))  # suggestions only

    # ------------------------------------------------------------ prompts

    async def _list_prompts(self, ctx: Any, params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=prompts.PROMPTS)

    async def _get_prompt(self, ctx: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        try:
            return prompts.get(params.name, params.arguments or {})
        except HybridRagError as error:
            raise _protocol_error(error) from error


def error_text(error: HybridRagError) -> str:
    """Message and remedy, in the words of the tools."""
    text = f"{error.message}\n{error.remedy}".strip()
    for words, instead in _TOOL_WORDS:
        text = text.replace(words, instead)
    return text.encode("utf-8", "replace").decode("utf-8")


def _failed(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def _protocol_error(error: HybridRagError) -> MCPError:
    return MCPError(code=types.INVALID_PARAMS if error.exit_code == 2 else types.INTERNAL_ERROR, message=error_text(error))


def _described(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        title=tool.title, read_only_hint=tool.read_only, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input,
        output_schema=tool.output,
        annotations=hints,
    )
