//! Request bodies of Chat Completions. Reading the replies is in `dialect`.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde_json::json;

use super::{
    CallIds, EncodedRequest, EncodedTools, Quirks, data_url, extra, is_strict, no_output_schema,
    option, picture_note, schema, sendable_arguments, sendable_name,
};
use crate::message::{Message, Part, ToolResult};
use crate::quirks::ReasoningBack;
use crate::request::{OutputSchema, Request, ToolSpec};

pub(crate) fn encode(request: &Request, quirks: &Quirks) -> EncodedRequest {
    let form = usize::from(quirks.plain_root_schema);
    let tools = (!request.tools.is_empty()).then(|| {
        request
            .tools
            .encoded(form, |specs| encode_tools(specs, quirks.plain_root_schema))
    });
    let body = Body {
        request,
        quirks,
        tools,
    };
    let mut notices = tools.map(EncodedTools::notices).unwrap_or_default();
    if request.options.output_schema.is_some() && !quirks.output_schema {
        notices.push(no_output_schema());
    }
    EncodedRequest {
        body: serde_json::to_vec(&body).expect("a request can always be written"),
        notices,
    }
}

fn encode_tools(specs: &[ToolSpec], plain_root: bool) -> EncodedTools {
    let mut adapted = Vec::new();
    let list = specs
        .iter()
        .map(|spec| {
            let (schema, changed) = schema(spec, plain_root);
            if changed {
                adapted.push(spec.name.clone());
            }
            json!({
                "type": "function",
                "function": {"name": &*spec.name, "description": &*spec.description, "parameters": schema},
            })
        })
        .collect();
    EncodedTools::new(&serde_json::Value::Array(list), adapted)
}

struct Body<'a> {
    request: &'a Request,
    quirks: &'a Quirks,
    tools: Option<&'a EncodedTools>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            request,
            quirks,
            tools,
        } = *self;
        let options = &request.options;
        let ours = [
            "model",
            "messages",
            "stream",
            "stream_options",
            "tools",
            "n",
        ];
        let extra = extra(options.extra.as_ref(), &ours);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", &*request.model)?;
        map.serialize_entry("messages", &Messages { request, quirks })?;
        map.serialize_entry("stream", &true)?;
        if quirks.stream_options {
            map.serialize_entry("stream_options", &json!({"include_usage": true}))?;
        }
        if let Some(tools) = tools {
            map.serialize_entry("tools", &tools.list)?;
            let choice = (!request.tools_allowed).then_some("none");
            if let Some(choice) = choice {
                map.serialize_entry("tool_choice", choice)?;
            }
            option(
                &mut map,
                &extra,
                "parallel_tool_calls",
                quirks.parallel_tool_calls,
            )?;
        }
        option(&mut map, &extra, "temperature", options.temperature)?;
        option(&mut map, &extra, "top_p", options.top_p)?;
        option(
            &mut map,
            &extra,
            &quirks.max_tokens_field,
            options.max_output_tokens,
        )?;
        option(
            &mut map,
            &extra,
            "reasoning_effort",
            options.reasoning_effort.as_deref(),
        )?;
        let format = options.output_schema.as_ref().map(response_format);
        let format = format.filter(|_| quirks.output_schema);
        option(&mut map, &extra, "response_format", format)?;
        let key = options.cache_key.as_deref();
        let key = key.filter(|_| quirks.prompt_cache_key);
        option(&mut map, &extra, "prompt_cache_key", key)?;
        for (key, value) in &extra {
            if key == "tool_choice" && (tools.is_none() || !request.tools_allowed) {
                continue;
            }
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

fn response_format(output: &OutputSchema) -> serde_json::Value {
    let schema = output.schema.to_value();
    json!({
        "type": "json_schema",
        "json_schema": {"name": &*output.name, "strict": is_strict(&schema), "schema": schema},
    })
}

struct Messages<'a> {
    request: &'a Request,
    quirks: &'a Quirks,
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { request, quirks } = *self;
        let mut ids = CallIds::new(quirks.strict_ids);
        let marks = quirks.chat_cache_marks && is_anthropic(&request.model);
        let last = request.messages.len().saturating_sub(1);
        let last_user = request
            .messages
            .iter()
            .rposition(|message| matches!(message, Message::User(_)));
        let mut seq = serializer.serialize_seq(None)?;
        if let Some(system) = request.system.as_deref() {
            let mut content = Content::Text(system.into());
            if marks && !system.is_empty() {
                content.mark();
            }
            let role = match &*quirks.system_role {
                "developer" => "developer",
                _ => "system",
            };
            seq.serialize_element(&WireMessage::new(role, content))?;
        }
        for (at, message) in request.messages.iter().enumerate() {
            let mut wire = match message {
                Message::User(parts) => vec![WireMessage::new("user", user_content(parts))],
                Message::Assistant(parts) => {
                    ids.next_message();
                    let texts = match quirks.reasoning_back {
                        ReasoningBack::Never => false,
                        ReasoningBack::Always => true,
                        ReasoningBack::ToolLoop => last_user.is_none_or(|user| user < at),
                    };
                    vec![assistant(parts, &mut ids, quirks, texts)]
                }
                Message::Tool(results) => tool_results(results, &ids),
            };
            if marks
                && at == last
                && let Some(end) = wire.last_mut().filter(|end| end.role != "assistant")
            {
                end.content.mark();
            }
            for message in &wire {
                seq.serialize_element(message)?;
            }
        }
        seq.end()
    }
}

/// Whether a router will hand the request to Anthropic.
fn is_anthropic(model: &str) -> bool {
    model.trim_start_matches('~').starts_with("anthropic/")
}

/// Results are text only here, so their pictures follow the whole batch as said by the user.
fn tool_results<'a>(results: &'a [ToolResult], ids: &CallIds<'a>) -> Vec<WireMessage<'a>> {
    let mut pictures = Vec::new();
    let mut wire: Vec<_> = results
        .iter()
        .map(|result| {
            let id = ids.result(&result.call_id);
            if !result.images.is_empty() {
                pictures.push(WirePart::text(picture_note(result, &id)));
                pictures.extend(result.images.iter().map(|image| WirePart::ImageUrl {
                    image_url: ImageUrl {
                        url: data_url(&image.media_type, &image.base64),
                    },
                }));
            }
            let mut message = WireMessage::new("tool", Content::Text((&*result.content).into()));
            message.tool_call_id = Some(id);
            message
        })
        .collect();
    if !pictures.is_empty() {
        wire.push(WireMessage::new("user", Content::Parts(pictures)));
    }
    wire
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<serde_json::Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
}

impl<'a> WireMessage<'a> {
    fn new(role: &'static str, content: Content<'a>) -> Self {
        Self {
            role,
            content,
            reasoning_content: None,
            reasoning: None,
            reasoning_details: Vec::new(),
            tool_calls: Vec::new(),
            tool_call_id: None,
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Null(()),
    Text(Cow<'a, str>),
    Parts(Vec<WirePart<'a>>),
}

impl Content<'_> {
    /// Marks the end for the cache.
    fn mark(&mut self) {
        if let Self::Text(text) = self {
            *self = Self::Parts(vec![WirePart::text(std::mem::take(text))]);
        }
        if let Self::Parts(parts) = self {
            let text = parts.iter_mut().rev().find_map(|part| match part {
                WirePart::Text {
                    text,
                    cache_control,
                } if !text.is_empty() => Some(cache_control),
                _ => None,
            });
            if let Some(cache_control) = text {
                *cache_control = Some(CacheMark { kind: "ephemeral" });
            }
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WirePart<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheMark>,
    },
    ImageUrl {
        image_url: ImageUrl,
    },
}

impl<'a> WirePart<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text {
            text: text.into(),
            cache_control: None,
        }
    }
}

#[derive(Serialize)]
struct CacheMark {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: Cow<'a, str>,
    arguments: Arc<str>,
}

fn user_content(parts: &[Part]) -> Content<'_> {
    if let [Part::Text(text)] = parts {
        return Content::Text((&**text).into());
    }
    let wire: Vec<_> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(WirePart::text(&**text)),
            Part::Image { media_type, base64 } => Some(WirePart::ImageUrl {
                image_url: ImageUrl {
                    url: data_url(media_type, base64),
                },
            }),
            Part::Reasoning { .. } | Part::Call(_) => None,
        })
        .collect();
    if wire.is_empty() {
        Content::Text("".into())
    } else {
        Content::Parts(wire)
    }
}

fn assistant<'a>(
    parts: &'a [Part],
    ids: &mut CallIds<'a>,
    quirks: &Quirks,
    texts: bool,
) -> WireMessage<'a> {
    let mut message = WireMessage::new("assistant", Content::Null(()));
    let mut text: Option<Cow<'a, str>> = None;
    let mut reasoning: Option<String> = None;
    for part in parts {
        match part {
            Part::Text(more) => match &mut text {
                None => text = Some(Cow::Borrowed(more)),
                Some(text) => text.to_mut().push_str(more),
            },
            Part::Reasoning { text: more, opaque } => {
                if texts && !more.is_empty() {
                    reasoning.get_or_insert_default().push_str(more);
                }
                if let Some(opaque) = opaque
                    && quirks.reasoning_details
                {
                    message
                        .reasoning_details
                        .extend(details(&opaque.to_value()));
                }
            }
            Part::Call(call) => message.tool_calls.push(WireCall {
                id: ids.call(&call.id),
                kind: "function",
                function: WireFunction {
                    name: sendable_name(&call.name),
                    arguments: sendable_arguments(call).shared(),
                },
            }),
            Part::Image { .. } => {}
        }
    }
    match text {
        Some(text) => message.content = Content::Text(text),
        None if message.tool_calls.is_empty() => message.content = Content::Text("".into()),
        None => {}
    }
    // Details hold the text too.
    if message.reasoning_details.is_empty() {
        match &*quirks.reasoning_field {
            "reasoning" => message.reasoning = reasoning,
            _ => message.reasoning_content = reasoning,
        }
    }
    message
}

/// What the decoder of this dialect made of `reasoning_details`. Other dialects' data is left out.
fn details(opaque: &serde_json::Value) -> Vec<serde_json::Value> {
    match opaque["type"].as_str() {
        Some("reasoning_details") => opaque["details"].as_array().cloned().unwrap_or_default(),
        _ => Vec::new(),
    }
}
