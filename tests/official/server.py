"""The server that the official conformance suite expects, for `pegboard serve` to stand before.

`python server.py` speaks both eras on stdio. Names and texts are the suite's.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as t
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

Context = ServerRequestContext[Any, Any]
Params = t.CallToolRequestParams
Answer = t.CallToolResult | t.InputRequiredResult
PNG = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763"
        "f8cfc000000301010018dd8db00000000049454e44ae426082"
    )
).decode()
WAV = base64.b64encode(b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0data\0\0\0\0").decode()
PAUSE = 0.05


def text(value: str, *, error: bool = False) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(type="text", text=value)], is_error=error)


def image() -> t.ImageContent:
    return t.ImageContent(type="image", data=PNG, mime_type="image/png")


def embedded(uri: str, value: str) -> t.EmbeddedResource:
    inside = t.TextResourceContents(uri=uri, mime_type="text/plain", text=value)
    return t.EmbeddedResource(type="resource", resource=inside)


def form(message: str, **properties: Any) -> t.ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return t.ElicitRequest(
        params=t.ElicitRequestFormParams(message=message, requested_schema=schema)
    )


def sampling(prompt: str, limit: int = 100) -> t.CreateMessageRequest:
    said = t.SamplingMessage(role="user", content=t.TextContent(type="text", text=prompt))
    params = t.CreateMessageRequestParams(messages=[said], max_tokens=limit)
    return t.CreateMessageRequest(params=params)


STRING: dict[str, Any] = {"type": "string"}
NAME = form("What is your name?", name=STRING)


# Plain tools --------------------------------------------------------------------------------------


async def simple_text(ctx: Context, p: Params) -> Answer:
    return text("This is a simple text response for testing.")


async def image_content(ctx: Context, p: Params) -> Answer:
    return t.CallToolResult(content=[image()])


async def audio_content(ctx: Context, p: Params) -> Answer:
    return t.CallToolResult(content=[t.AudioContent(type="audio", data=WAV, mime_type="audio/wav")])


async def embedded_resource(ctx: Context, p: Params) -> Answer:
    uri = "test://embedded-resource"
    return t.CallToolResult(content=[embedded(uri, "This is an embedded resource content.")])


async def multiple_content_types(ctx: Context, p: Params) -> Answer:
    said = t.TextContent(type="text", text="Multiple content types test:")
    mixed = embedded("test://mixed-content-resource", '{"test":"data","value":123}')
    return t.CallToolResult(content=[said, image(), mixed])


async def error_handling(ctx: Context, p: Params) -> Answer:
    return text("This tool intentionally returns an error for testing", error=True)


async def tool_with_logging(ctx: Context, p: Params) -> Answer:
    for step in ("started", "processing data", "completed"):
        message = t.LoggingMessageNotificationParams(level="info", data=f"Tool execution {step}")
        note = t.LoggingMessageNotification(params=message)
        await ctx.session.send_notification(note, related_request_id=ctx.request_id)
        await anyio.sleep(PAUSE)
    return text("Tool with logging executed successfully")


async def tool_with_progress(ctx: Context, p: Params) -> Answer:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100, f"Completed step {done} of 100")
        await anyio.sleep(PAUSE)
    return text("done")


async def schema_tool(ctx: Context, p: Params) -> Answer:
    return text(f"JSON Schema 2020-12 tool called with: {p.arguments}")


async def custom_headers(ctx: Context, p: Params) -> Answer:
    return text(f"{p.arguments}")


# Questions of the session era ---------------------------------------------------------------------


async def ask(ctx: Context, p: Params, request: Any, result: type[Any]) -> Any:
    """The client's answer in the era's own way; `None` when it has to come back with it."""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return (p.input_responses or {}).get("answer")
    metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
    return await ctx.session.send_request(request, result, metadata=metadata)


async def answered(ctx: Context, p: Params, request: Any) -> Answer:
    """What a person answered to a form, in words."""
    answer = await ask(ctx, p, request, t.ElicitResult)
    if answer is None:
        return required(answer=request)
    return text(f"User response: action={answer.action}, content={answer.content}")


async def sample(ctx: Context, p: Params) -> Answer:
    request = sampling((p.arguments or {}).get("prompt", "Test prompt"))
    answer = await ask(ctx, p, request, t.CreateMessageResult)
    if answer is None:
        return required(answer=request)
    return text(f"LLM response: {getattr(answer.content, 'text', answer.content)}")


async def elicit(ctx: Context, p: Params) -> Answer:
    message = (p.arguments or {}).get("message", "Please provide your information")
    request = form(message, username={**STRING, "description": "Name"}, email=STRING)
    return await answered(ctx, p, request)


async def elicit_defaults(ctx: Context, p: Params) -> Answer:
    request = form(
        "Please review and update the form fields with defaults",
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    return await answered(ctx, p, request)


async def elicit_enums(ctx: Context, p: Params) -> Answer:
    options = ["option1", "option2", "option3"]
    titled = [
        {"const": f"value{n}", "title": f"{word} Option"}
        for n, word in enumerate(("First", "Second", "Third"), start=1)
    ]
    request = form(
        "Please select options from the enum fields",
        untitledSingle={"type": "string", "enum": options},
        titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        untitledMulti={"type": "array", "items": {"type": "string", "enum": options}},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )
    return await answered(ctx, p, request)


# Questions in results -----------------------------------------------------------------------------


def given(p: Any, key: str, field: str) -> Any:
    """The answer under a key, if it is there and has the field; else nothing."""
    answer = (p.input_responses or {}).get(key)
    raw = answer if isinstance(answer, dict) else answer and answer.model_dump(by_alias=True)
    content = (raw or {}).get("content") if field not in ("roots", "content") else raw
    return (content or {}).get(field) if isinstance(content, dict) else None


def required(state: str | None = None, **requests: Any) -> t.InputRequiredResult:
    return t.InputRequiredResult(input_requests=requests, request_state=state)


def sealed(value: str) -> str:
    return f"{value}.{hashlib.sha256(f'secret {value}'.encode()).hexdigest()[:16]}"


def opened(state: str | None) -> str:
    value = (state or "").rpartition(".")[0]
    if state is None or sealed(value) != state:
        raise MCPError(t.INVALID_PARAMS, "requestState failed its integrity check")
    return value


async def ask_name(ctx: Context, p: Params) -> Answer:
    name = given(p, "user_name", "name")
    return text(f"Hello, {name}!") if name else required(user_name=NAME)


async def ask_model(ctx: Context, p: Params) -> Answer:
    answer = given(p, "capital_question", "content")
    if not answer:
        return required(capital_question=sampling("What is the capital of France?"))
    return text(str(answer.get("text") if isinstance(answer, dict) else answer))


async def ask_roots(ctx: Context, p: Params) -> Answer:
    roots = given(p, "client_roots", "roots")
    if roots is None:
        return required(client_roots=t.ListRootsRequest())
    return text(f"Roots: {[str(root['uri']) for root in roots]}")


async def ask_with_state(ctx: Context, p: Params) -> Answer:
    confirm = form("Please confirm", ok={"type": "boolean"})
    if given(p, "confirm", "ok") is None:
        return required(sealed("confirm"), confirm=confirm)
    return text(f"state-ok {opened(p.request_state)}")


async def ask_all(ctx: Context, p: Params) -> Answer:
    fields = (("user_name", "name"), ("greeting", "content"), ("client_roots", "roots"))
    if any(given(p, key, field) is None for key, field in fields):
        return required(
            sealed("all"),
            user_name=NAME,
            greeting=sampling("Generate a greeting", 50),
            client_roots=t.ListRootsRequest(),
        )
    return text(f"all there: {opened(p.request_state)}")


async def ask_in_rounds(ctx: Context, p: Params) -> Answer:
    first = form("Step 1: What is your name?", name=STRING)
    second = form("Step 2: What is your favorite color?", color=STRING)
    if p.request_state is None:
        return required(sealed("1"), step1=first)
    done = opened(p.request_state)
    if done == "1":
        name = given(p, "step1", "name")
        return (
            required(sealed(f"2 {name}"), step2=second)
            if name
            else required(sealed("1"), step1=first)
        )
    color = given(p, "step2", "color")
    return text(f"{done} {color}") if color else required(sealed(done), step2=second)


async def ask_what_is_possible(ctx: Context, p: Params) -> Answer:
    """Asks only for what the client of this request declares."""
    declared = ctx.session.client_capabilities
    asked: dict[str, Any] = {}
    if declared and declared.elicitation is not None:
        asked["user_name"] = NAME
    if declared and declared.sampling is not None:
        asked["greeting"] = sampling("Generate a greeting", 50)
    if declared and declared.roots is not None:
        asked["client_roots"] = t.ListRootsRequest()
    if not asked or p.input_responses:
        return text("nothing to ask")
    return required(sealed("possible"), **asked)


async def missing_capability(ctx: Context, p: Params) -> Answer:
    """Needs sampling, and says so in the protocol's own way when the client has none."""
    declared = ctx.session.client_capabilities
    if declared is None or declared.sampling is None:
        raise MCPError(
            t.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "This tool needs sampling.",
            {"requiredCapabilities": {"sampling": {}}},
        )
    return text("sampling is there")


# Changes ------------------------------------------------------------------------------------------

BUS = InMemorySubscriptionBus()


async def change_tools(ctx: Context, p: Params) -> Answer:
    TOOLS[f"test_added_{len(TOOLS)}"] = (simple_text, ANY)
    await BUS.publish(ToolsListChanged())
    return text("changed")


async def change_prompts(ctx: Context, p: Params) -> Answer:
    PROMPTS.append(t.Prompt(name=f"test_added_{len(PROMPTS)}", description="Added"))
    await BUS.publish(PromptsListChanged())
    return text("changed")


# The server ---------------------------------------------------------------------------------------

ANY: dict[str, Any] = {"type": "object"}
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
HEADERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "priority": {"type": "string", "x-mcp-header": "Priority"},
    },
}
Tool = Callable[[Context, Params], Awaitable[Answer]]
TOOLS: dict[str, tuple[Tool, dict[str, Any]]] = {
    "test_simple_text": (simple_text, ANY),
    "test_image_content": (image_content, ANY),
    "test_audio_content": (audio_content, ANY),
    "test_embedded_resource": (embedded_resource, ANY),
    "test_multiple_content_types": (multiple_content_types, ANY),
    "test_error_handling": (error_handling, ANY),
    "test_tool_with_logging": (tool_with_logging, ANY),
    "test_tool_with_progress": (tool_with_progress, ANY),
    "test_sampling": (sample, ANY),
    "test_elicitation": (elicit, ANY),
    "test_elicitation_sep1034_defaults": (elicit_defaults, ANY),
    "test_elicitation_sep1330_enums": (elicit_enums, ANY),
    "json_schema_2020_12_tool": (schema_tool, SCHEMA),
    "test_custom_headers": (custom_headers, HEADERS),
    "test_missing_capability": (missing_capability, ANY),
    "test_streaming_elicitation": (ask_name, ANY),
    "test_logging_tool": (tool_with_logging, ANY),
    "test_trigger_tool_change": (change_tools, ANY),
    "test_trigger_prompt_change": (change_prompts, ANY),
    "test_input_required_result_elicitation": (ask_name, ANY),
    "test_input_required_result_sampling": (ask_model, ANY),
    "test_input_required_result_list_roots": (ask_roots, ANY),
    "test_input_required_result_request_state": (ask_with_state, ANY),
    "test_input_required_result_multiple_inputs": (ask_all, ANY),
    "test_input_required_result_multi_round": (ask_in_rounds, ANY),
    "test_input_required_result_tampered_state": (ask_with_state, ANY),
    "test_input_required_result_capabilities": (ask_what_is_possible, ANY),
}
STATIC = {
    "test://static-text": "This is the content of the static text resource.",
    "test://watched-resource": "Watched.",
}


def arguments(*names: str) -> list[t.PromptArgument]:
    return [t.PromptArgument(name=name, required=True) for name in names]


def prompt(name: str, *names: str) -> t.Prompt:
    return t.Prompt(name=name, description=f"Tests {name}.", arguments=arguments(*names))


PROMPTS = [
    prompt("test_simple_prompt"),
    prompt("test_prompt_with_arguments", "arg1", "arg2"),
    prompt("test_prompt_with_embedded_resource", "resourceUri"),
    prompt("test_prompt_with_image"),
    prompt("test_input_required_result_prompt"),
]


async def list_tools(ctx: Context, p: Any) -> t.ListToolsResult:
    tools = [
        t.Tool(name=name, description=f"Tests {name}.", input_schema=schema)
        for name, (_, schema) in TOOLS.items()
    ]
    return t.ListToolsResult(tools=tools)


async def call_tool(ctx: Context, p: Params) -> Answer:
    if p.name not in TOOLS:
        raise MCPError(t.INVALID_PARAMS, f"Unknown tool: {p.name}")
    return await TOOLS[p.name][0](ctx, p)


async def list_resources(ctx: Context, p: Any) -> t.ListResourcesResult:
    uris = [*STATIC, "test://static-binary"]
    listed = [t.Resource(uri=uri, name=uri.removeprefix("test://")) for uri in uris]
    return t.ListResourcesResult(resources=listed)


async def list_templates(ctx: Context, p: Any) -> t.ListResourceTemplatesResult:
    template = t.ResourceTemplate(
        uri_template="test://template/{id}/data", name="template", mime_type="application/json"
    )
    return t.ListResourceTemplatesResult(resource_templates=[template])


async def read(ctx: Context, p: t.ReadResourceRequestParams) -> t.ReadResourceResult:
    uri = str(p.uri)
    if uri == "test://static-binary":
        content: Any = t.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    elif uri in STATIC:
        content = t.TextResourceContents(uri=uri, mime_type="text/plain", text=STATIC[uri])
    elif uri.startswith("test://template/"):
        number = uri.split("/")[3]
        value = f'{{"id":"{number}","templateTest":true,"data":"Data for ID: {number}"}}'
        content = t.TextResourceContents(uri=uri, mime_type="application/json", text=value)
    else:
        raise MCPError(t.INVALID_PARAMS, "Resource not found", {"uri": uri})
    return t.ReadResourceResult(contents=[content])


async def list_prompts(ctx: Context, p: Any) -> t.ListPromptsResult:
    return t.ListPromptsResult(prompts=PROMPTS)


def message(content: Any) -> t.PromptMessage:
    said = t.TextContent(type="text", text=content) if isinstance(content, str) else content
    return t.PromptMessage(role="user", content=said)


async def get_prompt(
    ctx: Context, p: t.GetPromptRequestParams
) -> t.GetPromptResult | t.InputRequiredResult:
    known = p.arguments or {}
    match p.name:
        case "test_simple_prompt":
            parts: list[Any] = ["This is a simple prompt for testing."]
        case "test_prompt_with_arguments":
            first, second = known.get("arg1"), known.get("arg2")
            parts = [f"Prompt with arguments: arg1='{first}', arg2='{second}'"]
        case "test_prompt_with_embedded_resource":
            uri = known.get("resourceUri", "test://example-resource")
            parts = [embedded(uri, "Embedded resource content for testing."), "Process it."]
        case "test_prompt_with_image":
            parts = [image(), "Please analyze the image above."]
        case "test_input_required_result_prompt":
            context = given(p, "user_context", "context")
            asked = form("What context should the prompt use?", context=STRING)
            if not context:
                return required(user_context=asked)
            parts = [f"Context: {context}"]
        case _:
            raise MCPError(t.INVALID_PARAMS, f"Unknown prompt: {p.name}")
    return t.GetPromptResult(messages=[message(part) for part in parts])


async def complete(ctx: Context, p: t.CompleteRequestParams) -> t.CompleteResult:
    return t.CompleteResult(completion=t.Completion(values=[], total=0, has_more=False))


async def nothing(ctx: Context, p: Any) -> t.EmptyResult:
    return t.EmptyResult()


async def main() -> None:
    server: Server[Any] = Server(
        "conformance",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read,
        on_subscribe_resource=nothing,
        on_unsubscribe_resource=nothing,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_subscriptions_listen=ListenHandler(BUS),
    )
    # By the constructor it would warn that logging is deprecated, which a relay must carry still.
    server.add_request_handler("logging/setLevel", t.SetLevelRequestParams, nothing)
    options = server.create_initialization_options(
        NotificationOptions(tools_changed=True, prompts_changed=True)
    )
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, options)


if __name__ == "__main__":
    anyio.run(main)
