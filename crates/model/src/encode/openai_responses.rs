//! Request bodies of OpenAI's Responses. Nothing is kept at the provider, so reasoning goes back encrypted, before the very
//! item that it stood before. Reading the replies is in `dialect`.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use super::{
    CallIds, EncodedRequest, EncodedTools, Quirks, data_url, extra, is_strict, merged,
    no_output_schema, option, picture_note, schema, sendable_arguments, sendable_name,
};
use crate::json::Json;
use crate::message::{Message, Part, ToolResult};
use crate::request::{OutputSchema, Request, ToolSpec};

pub(crate) fn encode(request: &Request, quirks: &Quirks) -> EncodedRequest {
    let form = 6 + usize::from(quirks.plain_root_schema);
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
            // Tools are strict here unless one says otherwise, and few schemas keep the rules of strict ones.
            json!({
                "type": "function", "name": &*spec.name, "description": &*spec.description,
                "parameters": schema, "strict": false,
            })
        })
        .collect();
    EncodedTools::new(&Value::Array(list), adapted)
}

/// Whether a model reasons. Models that do not refuse to be asked for encrypted reasoning, those for plain chat among
/// them; of a model with a name of its own only the wish for an effort tells.
fn reasons(model: &str, effort: Option<&str>) -> bool {
    if effort.is_some_and(|effort| effort != "none") {
        return true;
    }
    let name = model.rsplit('/').next().unwrap_or_default();
    let digit_after = |prefix: &str| {
        let rest = name.strip_prefix(prefix)?;
        rest.bytes().next().filter(u8::is_ascii_digit)
    };
    let chat = name.contains("-chat");
    let of_series = digit_after("o").is_some();
    let of_generation = digit_after("gpt-").is_some_and(|digit| digit >= b'5');
    !chat && (of_series || of_generation || name.contains("codex") || name.contains("gpt-oss"))
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
            "input",
            "instructions",
            "stream",
            "store",
            "tools",
            "previous_response_id",
            "conversation",
        ];
        let mut extra = extra(options.extra.as_ref(), &ours);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", &*request.model)?;
        if let Some(system) = request.system.as_deref().filter(|text| !text.is_empty()) {
            map.serialize_entry("instructions", system)?;
        }
        map.serialize_entry("input", &input(&request.messages, quirks))?;
        map.serialize_entry("stream", &true)?;
        map.serialize_entry("store", &false)?;
        let effort = options.reasoning_effort.as_deref();
        let include = reasons(&request.model, effort).then_some(["reasoning.encrypted_content"]);
        option(&mut map, &extra, "include", include)?;
        if let Some(tools) = tools {
            map.serialize_entry("tools", &tools.list)?;
            if !request.tools_allowed {
                map.serialize_entry("tool_choice", "none")?;
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
        let limit = options.max_output_tokens;
        option(&mut map, &extra, "max_output_tokens", limit)?;
        for (key, ours) in [
            ("reasoning", reasoning(effort)),
            ("text", text_format(options.output_schema.as_ref(), quirks)),
        ] {
            if let Some(value) = merged(ours, &mut extra, key) {
                map.serialize_entry(key, &value)?;
            }
        }
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

fn reasoning(effort: Option<&str>) -> Map<String, Value> {
    let mut reasoning = Map::new();
    if let Some(effort) = effort {
        reasoning.insert("effort".to_owned(), effort.into());
        if effort != "none" {
            reasoning.insert("summary".to_owned(), "auto".into());
        }
    }
    reasoning
}

fn text_format(output: Option<&OutputSchema>, quirks: &Quirks) -> Map<String, Value> {
    let mut text = Map::new();
    if let (Some(output), true) = (output, quirks.output_schema) {
        let schema = output.schema.to_value();
        let format = json!({
            "type": "json_schema", "name": &*output.name, "strict": is_strict(&schema), "schema": schema,
        });
        text.insert("format".to_owned(), format);
    }
    text
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        content: Vec<Content<'a>>,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: Arc<str>,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: Output<'a>,
    },
    /// An item that goes back as the provider sent it.
    #[serde(untagged)]
    Kept(Value),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(&'a str),
    Parts(Vec<Content<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { image_url: String },
    OutputText { text: String },
}

fn input<'a>(messages: &'a [Message], quirks: &Quirks) -> Vec<Item<'a>> {
    let mut ids = CallIds::new(true);
    let mut items = Vec::new();
    for message in messages {
        match message {
            Message::User(parts) => {
                let content: Vec<_> = parts.iter().filter_map(user_content).collect();
                if !content.is_empty() {
                    items.push(user(content));
                }
            }
            Message::Assistant(parts) => {
                ids.next_message();
                said(parts, &mut ids, &mut items);
            }
            Message::Tool(results) => {
                let mut apart = Vec::new();
                for result in results {
                    let call_id = ids.result(&result.call_id);
                    if !quirks.result_images && !result.images.is_empty() {
                        apart.push(Content::InputText {
                            text: picture_note(result, &call_id).into(),
                        });
                        apart.extend(pictures(result));
                    }
                    let output = output(result, quirks.result_images);
                    items.push(Item::FunctionCallOutput { call_id, output });
                }
                if !apart.is_empty() {
                    items.push(user(apart));
                }
            }
        }
    }
    items
}

fn user(content: Vec<Content<'_>>) -> Item<'_> {
    Item::Message {
        role: "user",
        content,
    }
}

fn user_content(part: &Part) -> Option<Content<'_>> {
    match part {
        Part::Text(text) => Some(Content::InputText {
            text: (&**text).into(),
        }),
        Part::Image { media_type, base64 } => Some(Content::InputImage {
            image_url: data_url(media_type, base64),
        }),
        Part::Reasoning { .. } | Part::Call(_) => None,
    }
}

fn pictures(result: &ToolResult) -> impl Iterator<Item = Content<'_>> {
    result.images.iter().map(|image| Content::InputImage {
        image_url: data_url(&image.media_type, &image.base64),
    })
}

fn output(result: &ToolResult, images_inside: bool) -> Output<'_> {
    if !images_inside || result.images.is_empty() {
        return Output::Text(&result.content);
    }
    let text = (!result.content.is_empty()).then(|| Content::InputText {
        text: (&*result.content).into(),
    });
    Output::Parts(text.into_iter().chain(pictures(result)).collect())
}

/// Where a reasoning item stood.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// Before the message that began at this byte of the text.
    Text(usize),
    /// Before this call of the reply.
    Call(usize),
    /// Before the next reasoning item.
    Reasoning,
    /// Last. The provider refuses reasoning that nothing follows.
    Nothing,
}

/// The items of an assistant message. Histories keep reasoning, text and calls apart, so each reasoning item tells what it
/// stood before; only what its text was cut into, not the order of text and calls, is known.
fn said<'a>(parts: &'a [Part], ids: &mut CallIds<'a>, items: &mut Vec<Item<'a>>) {
    let mut text = String::new();
    let mut calls = Vec::new();
    let mut reasoning: Vec<(Before, Value)> = Vec::new();
    for part in parts {
        match part {
            Part::Text(more) => text.push_str(more),
            Part::Call(call) => calls.push(Item::FunctionCall {
                call_id: ids.call(&call.id),
                name: sendable_name(&call.name),
                arguments: sendable_arguments(call).shared(),
            }),
            Part::Reasoning {
                opaque: Some(opaque),
                ..
            } => reasoning.extend(reasoning_item(opaque)),
            Part::Reasoning { .. } | Part::Image { .. } => {}
        }
    }
    let mut next = Before::Nothing;
    for (before, _) in reasoning.iter_mut().rev() {
        match before {
            Before::Reasoning => *before = next,
            Before::Text(at) if text.is_empty() => *before = Before::Call(0),
            // The text is another than it was: what is left of it must still follow.
            Before::Text(at) if *at >= text.len() || !text.is_char_boundary(*at) => *at = 0,
            _ => {}
        }
        next = *before;
    }
    let mut cuts: Vec<usize> = reasoning
        .iter()
        .filter_map(|(before, _)| match before {
            Before::Text(at) => Some(*at),
            _ => None,
        })
        .chain([0, text.len()])
        .collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut place = |here: Before, items: &mut Vec<Item<'a>>| {
        for (before, item) in &mut reasoning {
            if *before == here {
                items.push(Item::Kept(item.take()));
            }
        }
    };
    for piece in cuts.windows(2) {
        place(Before::Text(piece[0]), items);
        items.push(Item::Message {
            role: "assistant",
            content: vec![Content::OutputText {
                text: text[piece[0]..piece[1]].to_owned(),
            }],
        });
    }
    for (at, call) in calls.into_iter().enumerate() {
        place(Before::Call(at), items);
        items.push(call);
    }
}

/// A reasoning item as it may go back, and where. Other dialects' data is left out, and so is what the provider would have
/// to look up, because it was told to keep nothing.
fn reasoning_item(opaque: &Json) -> Option<(Before, Value)> {
    let mut value = opaque.to_value();
    if value["type"].as_str() != Some("reasoning") {
        return None;
    }
    let item = value.as_object_mut()?;
    let index = |value: &Value| usize::try_from(value.as_u64()?).ok();
    let before = match item.remove("before") {
        Some(Value::String(word)) if word == "reasoning" => Before::Reasoning,
        Some(before) => match (index(&before["text"]), index(&before["call"])) {
            (Some(at), _) => Before::Text(at),
            (None, Some(at)) => Before::Call(at),
            (None, None) => Before::Nothing,
        },
        None => Before::Nothing,
    };
    // Told in replies, refused in requests.
    item.remove("status");
    let empty = |value: Option<&Value>| match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    if empty(item.get("content")) {
        item.remove("content");
    }
    if empty(item.get("encrypted_content")) {
        item.remove("encrypted_content");
        item.remove("id");
        if !item.contains_key("content") {
            return None;
        }
    }
    item.entry("summary").or_insert_with(|| json!([]));
    Some((before, value))
}
