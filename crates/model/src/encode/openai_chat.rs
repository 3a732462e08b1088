//! Request bodies of Chat Completions. Reading the replies is in `dialect`.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde_json::json;

use super::{
    CallIds, EncodedRequest, EncodedTools, Quirks, extra, option, schema, sendable_arguments,
    sendable_name,
};
use crate::message::{Message, Part};
use crate::request::{Request, ToolSpec};

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
    EncodedRequest {
        body: serde_json::to_vec(&body).expect("a request can always be written"),
        notices: tools.map(EncodedTools::notices).unwrap_or_default(),
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
        for (key, value) in &extra {
            if key == "tool_choice" && (tools.is_none() || !request.tools_allowed) {
                continue;
            }
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

struct Messages<'a> {
    request: &'a Request,
    quirks: &'a Quirks,
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { request, quirks } = *self;
        let mut ids = CallIds::new(false);
        let mut seq = serializer.serialize_seq(None)?;
        if let Some(system) = request.system.as_deref() {
            seq.serialize_element(&WireMessage::new("system", Content::Text(system.into())))?;
        }
        for message in &request.messages {
            match message {
                Message::User(parts) => {
                    seq.serialize_element(&WireMessage::new("user", user_content(parts)))?
                }
                Message::Assistant(parts) => {
                    ids.next_message();
                    seq.serialize_element(&assistant(parts, &mut ids, quirks))?;
                }
                Message::Tool(results) => {
                    for result in results {
                        let mut message =
                            WireMessage::new("tool", Content::Text((&*result.content).into()));
                        message.tool_call_id = Some(ids.result(&result.call_id));
                        seq.serialize_element(&message)?;
                    }
                }
            }
        }
        seq.end()
    }
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
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

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WirePart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
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
            Part::Text(text) => Some(WirePart::Text { text }),
            Part::Image { media_type, base64 } => Some(WirePart::ImageUrl {
                image_url: ImageUrl {
                    url: format!("data:{media_type};base64,{base64}"),
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

fn assistant<'a>(parts: &'a [Part], ids: &mut CallIds<'a>, quirks: &Quirks) -> WireMessage<'a> {
    let mut text: Option<Cow<'a, str>> = None;
    let mut reasoning: Option<String> = None;
    let mut calls = Vec::new();
    for part in parts {
        match part {
            Part::Text(more) => match &mut text {
                None => text = Some(Cow::Borrowed(more)),
                Some(text) => text.to_mut().push_str(more),
            },
            Part::Reasoning { text: more, .. } if quirks.send_reasoning_back => {
                reasoning.get_or_insert_default().push_str(more);
            }
            Part::Call(call) => calls.push(WireCall {
                id: ids.call(&call.id),
                kind: "function",
                function: WireFunction {
                    name: sendable_name(&call.name),
                    arguments: sendable_arguments(call).shared(),
                },
            }),
            Part::Reasoning { .. } | Part::Image { .. } => {}
        }
    }
    let content = match text {
        Some(text) => Content::Text(text),
        None if calls.is_empty() => Content::Text("".into()),
        None => Content::Null(()),
    };
    WireMessage {
        role: "assistant",
        content,
        reasoning_content: reasoning,
        tool_calls: calls,
        tool_call_id: None,
    }
}
