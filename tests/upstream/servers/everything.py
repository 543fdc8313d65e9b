"""A server that does everything a relay must carry, on the SDK: run it, or hold it in memory.

`python everything.py legacy` speaks the handshake only, `... modern` both eras.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as t
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

Context = ServerRequestContext[Any, Any]
Params = t.CallToolRequestParams
Answer = t.CallToolResult | t.InputRequiredResult
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def text(value: str, **extra: Any) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(type="text", text=value)], **extra)


def is_modern(ctx: Context) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def form(message: str) -> t.ElicitRequest:
    return t.ElicitRequest(params=t.ElicitRequestFormParams(message=message, requested_schema=FORM))


def page() -> t.ElicitRequestURLParams:
    return t.ElicitRequestURLParams(
        message="sign in", url="https://example.test/login", elicitation_id="e1"
    )


def sampling() -> t.CreateMessageRequest:
    said = t.SamplingMessage(role="user", content=t.TextContent(type="text", text="draw"))
    return t.CreateMessageRequest(
        params=t.CreateMessageRequestParams(messages=[said], max_tokens=5)
    )


async def ask(ctx: Context, p: Params, key: str, request: Any, result: type[Any]) -> Any:
    """The client's answer in the era's own way; `None` when it has to come back with it."""
    if is_modern(ctx):
        return (p.input_responses or {}).get(key)
    metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
    return await ctx.session.send_request(request, result, metadata=metadata)


def required(key: str, request: Any, state: str = "state") -> t.InputRequiredResult:
    return t.InputRequiredResult(input_requests={key: request}, request_state=state)


class Everything:
    """The tools, and what they saw."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.cancelled = anyio.Event()
        self.signed_in = False
        self.level: str | None = None
        self.roots_changed = anyio.Event()
        self.bus = InMemorySubscriptionBus()
        self.listed = 0
        self.schemas: dict[str, dict[str, Any]] = {}
        offered = [self.echo, self.ask, self.ask_twice, self.ask_page, self.sample, self.roots]
        offered += [self.log, self.progress, self.wait, self.fail, self.rich, self.page_first]
        self.tools: dict[str, Callable[[Context, Params], Awaitable[Answer]]] = {
            tool.__name__: tool for tool in (*offered, self.change_tools)
        }

    async def echo(self, ctx: Context, p: Params) -> Answer:
        seen = {"arguments": p.arguments, "meta": (ctx.params or {}).get("_meta")}
        return text("echo", structured_content=seen, _meta={"example.test/kept": [1, None]})

    async def ask(self, ctx: Context, p: Params) -> Answer:
        request = form("your name?")
        answer = await ask(ctx, p, "name", request, t.ElicitResult)
        if answer is None:
            return required("name", request)
        return text(f"{answer.action} {answer.content}")

    async def ask_twice(self, ctx: Context, p: Params) -> Answer:
        state = p.request_state
        if state is None or state == "asked":
            first: Any = await ask(ctx, p, "one", form("one?"), t.ElicitResult)
            if first is None:
                return required("one", form("one?"), "asked")
            state = f"first={first.content['name']}"
        second: Any = await ask(ctx, p, "two", form("two?"), t.ElicitResult)
        if second is None:
            return required("two", form("two?"), state)
        return text(f"{state} second={second.content['name']}")

    async def ask_page(self, ctx: Context, p: Params) -> Answer:
        request = t.ElicitRequest(params=page())
        answer = await ask(ctx, p, "page", request, t.ElicitResult)
        return required("page", request) if answer is None else text(answer.action)

    async def sample(self, ctx: Context, p: Params) -> Answer:
        answer = await ask(ctx, p, "draw", sampling(), t.CreateMessageResult)
        if answer is None:
            return required("draw", sampling())
        kept = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        return text("sampled", structured_content=kept)

    async def roots(self, ctx: Context, p: Params) -> Answer:
        request = t.ListRootsRequest()
        answer = await ask(ctx, p, "roots", request, t.ListRootsResult)
        if answer is None:
            return required("roots", request)
        return text(",".join(str(root.uri) for root in answer.roots))

    async def log(self, ctx: Context, p: Params) -> Answer:
        for level in ("debug", "error"):
            note = t.LoggingMessageNotification(
                params=t.LoggingMessageNotificationParams(level=level, data={"at": [level]})
            )
            await ctx.session.send_notification(note, related_request_id=ctx.request_id)
        return text("logged")

    async def progress(self, ctx: Context, p: Params) -> Answer:
        for done in range(1, 4):
            await ctx.session.report_progress(done, 3, f"step {done}")
        return text("done")

    async def wait(self, ctx: Context, p: Params) -> Answer:
        self.started.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled.set()
        return text("never")

    async def fail(self, ctx: Context, p: Params) -> Answer:
        raise MCPError(-32123, "it broke", {"why": ["rust"]})

    async def rich(self, ctx: Context, p: Params) -> Answer:
        inside = t.TextResourceContents(uri="mem://a", text="inside")
        return t.CallToolResult(
            content=[
                t.ImageContent(type="image", data="aGk=", mime_type="image/png"),
                t.AudioContent(type="audio", data="aGk=", mime_type="audio/wav"),
                t.ResourceLink(type="resource_link", uri="mem://linked", name="linked"),
                t.EmbeddedResource(type="resource", resource=inside),
            ]
        )

    async def page_first(self, ctx: Context, p: Params) -> Answer:
        if not self.signed_in:
            self.signed_in = True
            raise UrlElicitationRequiredError([page()])
        return text("welcome")

    async def change_tools(self, ctx: Context, p: Params) -> Answer:
        self.tools["new"] = self.echo
        await ctx.session.send_tool_list_changed()
        await self.bus.publish(ToolsListChanged())
        return text("changed")


def make_server(everything: Everything | None = None) -> Server[Any]:
    it = everything or Everything()

    async def list_tools(ctx: Context, p: Any) -> t.ListToolsResult:
        it.listed += 1
        return t.ListToolsResult(
            tools=[
                t.Tool(name=name, input_schema=it.schemas.get(name, {"type": "object"}))
                for name in it.tools
            ]
        )

    async def call_tool(ctx: Context, p: Params) -> Answer:
        if p.name not in it.tools:
            raise MCPError(t.INVALID_PARAMS, f"Unknown tool: {p.name}")
        return await it.tools[p.name](ctx, p)

    async def list_resources(ctx: Context, p: Any) -> t.ListResourcesResult:
        return t.ListResourcesResult(resources=[t.Resource(uri="mem://a", name="a")])

    async def list_templates(ctx: Context, p: Any) -> t.ListResourceTemplatesResult:
        template = t.ResourceTemplate(uri_template="mem://{server}/things/{id}", name="thing")
        return t.ListResourceTemplatesResult(resource_templates=[template])

    async def read(ctx: Context, p: t.ReadResourceRequestParams) -> t.ReadResourceResult:
        content = t.TextResourceContents(uri=p.uri, text=f"read {p.uri}")
        return t.ReadResourceResult(contents=[content])

    async def subscribe(ctx: Context, p: t.SubscribeRequestParams) -> t.EmptyResult:
        await ctx.session.send_resource_updated(p.uri)
        return t.EmptyResult()

    async def list_prompts(ctx: Context, p: Any) -> t.ListPromptsResult:
        return t.ListPromptsResult(prompts=[t.Prompt(name="greet")])

    async def get_prompt(ctx: Context, p: t.GetPromptRequestParams) -> t.GetPromptResult:
        said = t.TextContent(type="text", text=f"{p.name} {p.arguments}")
        return t.GetPromptResult(messages=[t.PromptMessage(role="user", content=said)])

    async def complete(ctx: Context, p: t.CompleteRequestParams) -> t.CompleteResult:
        about = p.ref.name if isinstance(p.ref, t.PromptReference) else str(p.ref.uri)
        return t.CompleteResult(completion=t.Completion(values=[f"{about} {p.argument.value}"]))

    async def set_level(ctx: Context, p: t.SetLevelRequestParams) -> t.EmptyResult:
        it.level = p.level
        return t.EmptyResult()

    async def roots_changed(ctx: Context, p: t.NotificationParams) -> None:
        it.roots_changed.set()

    server: Server[Any] = Server(
        "everything",
        version="1.2.3",
        instructions="Ask me anything.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read,
        on_subscribe_resource=subscribe,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_subscriptions_listen=ListenHandler(it.bus),
    )
    # By the constructor it would warn that logging is deprecated, which a relay must carry still.
    server.add_request_handler("logging/setLevel", t.SetLevelRequestParams, set_level)
    server.add_notification_handler(
        "notifications/roots/list_changed", t.NotificationParams, roots_changed
    )
    return server


def options(server: Server[Any]) -> InitializationOptions:
    return server.create_initialization_options(NotificationOptions(tools_changed=True))


async def serve(server: Server[Any], read: Any, write: Any, era: str) -> None:
    """Serve over a pair of streams, in the handshake era only or in both."""
    if era == "legacy":
        async with server.lifespan(server) as state:
            await serve_loop(
                server, read, write, lifespan_state=state, init_options=options(server)
            )
    else:
        await server.run(read, write, options(server))


async def main(era: str) -> None:
    async with stdio_server() as (read, write):
        await serve(make_server(), read, write, era)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
