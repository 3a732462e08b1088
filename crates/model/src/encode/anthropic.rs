//! Request bodies of Anthropic's Messages. Reading the replies is in `dialect`.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::json;
use serde_json::value::RawValue;

use super::{
    CallIds, EncodedRequest, EncodedTools, Quirks, extra, generation, merged, no_output_schema,
    option, picture_note, schema, sendable_arguments, sendable_name,
};
use crate::json::Json;
use crate::message::{Message, Part, ToolResult};
use crate::quirks::Thinking;
use crate::request::{Request, ToolSpec};

pub(crate) fn encode(request: &Request, quirks: &Quirks) -> EncodedRequest {
    let form = 2 + usize::from(quirks.plain_root_schema) + 2 * usize::from(quirks.cache_marks);
    let tools = (!request.tools.is_empty()).then(|| {
        request
            .tools
            .encoded(form, |specs| encode_tools(specs, quirks))
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

fn encode_tools(specs: &[ToolSpec], quirks: &Quirks) -> EncodedTools {
    let mut adapted = Vec::new();
    let mut list: Vec<_> = specs
        .iter()
        .map(|spec| {
            let (schema, changed) = schema(spec, quirks.plain_root_schema);
            if changed {
                adapted.push(spec.name.clone());
            }
            json!({"name": &*spec.name, "description": &*spec.description, "input_schema": schema})
        })
        .collect();
    if quirks.cache_marks
        && let Some(last) = list.last_mut()
    {
        last["cache_control"] = json!({"type": "ephemeral"});
    }
    EncodedTools::new(&serde_json::Value::Array(list), adapted)
}

/// How many tokens of thinking an effort stands for; other words ask for none.
fn thinking_budget(effort: &str) -> Option<u32> {
    match effort {
        "low" => Some(2048),
        "medium" => Some(8192),
        "high" => Some(16_384),
        "xhigh" | "max" => Some(32_768),
        _ => None,
    }
}

/// Whether thinking is asked for by an effort. Models since generation 4.6, and those whose name has none, decide
/// themselves how long they think, and the newest refuse a number of tokens.
fn is_adaptive(model: &str, quirks: &Quirks) -> bool {
    match quirks.thinking {
        Thinking::Adaptive => true,
        Thinking::Budget => false,
        Thinking::ByModel => {
            model.contains("claude") && generation(model).is_none_or(|found| found >= (4, 6))
        }
    }
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
        let mut extra = extra(
            options.extra.as_ref(),
            &["model", "messages", "stream", "system", "tools"],
        );
        let budget = options
            .reasoning_effort
            .as_deref()
            .and_then(thinking_budget);
        let adaptive = is_adaptive(&request.model, quirks);
        // The limit counts thinking too, and must be larger than the budget for it.
        let limit = options
            .max_output_tokens
            .unwrap_or(quirks.default_max_tokens)
            .saturating_add(budget.unwrap_or(0));
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", &*request.model)?;
        option(&mut map, &extra, "max_tokens", Some(limit))?;
        if let Some(system) = request
            .system
            .as_deref()
            .filter(|system| !system.is_empty())
        {
            let block = Block::new(BlockKind::Text {
                text: system.into(),
            });
            map.serialize_entry("system", &[block.marked(quirks.cache_marks)])?;
        }
        map.serialize_entry("messages", &messages(&request.messages, quirks))?;
        map.serialize_entry("stream", &true)?;
        if let Some(tools) = tools {
            map.serialize_entry("tools", &tools.list)?;
            if !request.tools_allowed {
                map.serialize_entry("tool_choice", &json!({"type": "none"}))?;
            }
        }
        let mut output = serde_json::Map::new();
        if let (Some(schema), true) = (&options.output_schema, quirks.output_schema) {
            let format = json!({"type": "json_schema", "schema": schema.schema.to_value()});
            output.insert("format".to_owned(), format);
        }
        match budget {
            // With thinking the provider refuses a temperature of our own.
            Some(_) if adaptive => {
                output.insert("effort".to_owned(), json!(options.reasoning_effort));
                let thinking = json!({"type": "adaptive"});
                option(&mut map, &extra, "thinking", Some(thinking))?;
            }
            Some(budget) => option(
                &mut map,
                &extra,
                "thinking",
                Some(json!({"type": "enabled", "budget_tokens": budget})),
            )?,
            None => {
                option(&mut map, &extra, "temperature", options.temperature)?;
                option(&mut map, &extra, "top_p", options.top_p)?;
            }
        }
        if let Some(output) = merged(output, &mut extra, "output_config") {
            map.serialize_entry("output_config", &output)?;
        }
        for (key, value) in &extra {
            if key == "tool_choice" && (tools.is_none() || !request.tools_allowed) {
                continue;
            }
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Block<'a> {
    Ours(OwnBlock<'a>),
    /// A block that goes back as the provider sent it.
    Kept(Box<RawValue>),
}

#[derive(Serialize)]
struct OwnBlock<'a> {
    #[serde(flatten)]
    kind: BlockKind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheMark>,
}

#[derive(Serialize)]
struct CacheMark {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockKind<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: ImageSource<'a>,
    },
    Thinking {
        thinking: &'a str,
        signature: String,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Box<RawValue>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "ResultContent::is_empty")]
        content: ResultContent<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum ResultContent<'a> {
    Text(&'a str),
    Blocks(Vec<BlockKind<'a>>),
}

impl ResultContent<'_> {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Text(""))
    }
}

#[derive(Serialize)]
struct ImageSource<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'a str,
    data: &'a str,
}

impl<'a> Block<'a> {
    fn new(kind: BlockKind<'a>) -> Self {
        Self::Ours(OwnBlock {
            kind,
            cache_control: None,
        })
    }

    fn marked(mut self, mark: bool) -> Self {
        if let Self::Ours(block) = &mut self
            && mark
        {
            block.cache_control = Some(CacheMark { kind: "ephemeral" });
        }
        self
    }

    fn is_result(&self) -> bool {
        matches!(
            self,
            Self::Ours(OwnBlock {
                kind: BlockKind::ToolResult { .. },
                ..
            })
        )
    }
}

/// Neighbours of one role become one message; results stand first in theirs; nothing empty is sent.
fn messages<'a>(messages: &'a [Message], quirks: &Quirks) -> Vec<WireMessage<'a>> {
    let mut ids = CallIds::new(true);
    let mut wire: Vec<WireMessage<'a>> = Vec::new();
    for message in messages {
        let (role, blocks): (_, Vec<Block<'a>>) = match message {
            Message::User(parts) => (
                "user",
                parts.iter().filter_map(|part| block(part, None)).collect(),
            ),
            Message::Assistant(parts) => {
                ids.next_message();
                (
                    "assistant",
                    parts
                        .iter()
                        .filter_map(|part| block(part, Some(&mut ids)))
                        .collect(),
                )
            }
            Message::Tool(results) => {
                let blocks = results
                    .iter()
                    .flat_map(|result| result_blocks(result, &ids, quirks.result_images));
                ("user", blocks.collect())
            }
        };
        if blocks.is_empty() {
            continue;
        }
        match wire.last_mut() {
            Some(last) if last.role == role => {
                last.content.extend(blocks);
                last.content
                    .sort_by_key(|block| role == "user" && !block.is_result());
            }
            _ => wire.push(WireMessage {
                role,
                content: blocks,
            }),
        }
    }
    if quirks.cache_marks
        && let Some(last) = wire.last_mut()
        && last.role == "user"
        && let Some(block) = last.content.pop()
    {
        last.content.push(block.marked(true));
    }
    wire
}

fn picture<'a>(media_type: &'a str, data: &'a str) -> BlockKind<'a> {
    BlockKind::Image {
        source: ImageSource {
            kind: "base64",
            media_type,
            data,
        },
    }
}

/// A result with its pictures: inside of it, or behind all results where the provider does not take them there.
fn result_blocks<'a>(
    result: &'a ToolResult,
    ids: &CallIds<'a>,
    images_inside: bool,
) -> Vec<Block<'a>> {
    let tool_use_id = ids.result(&result.call_id);
    let mut pictures: Vec<_> = result
        .images
        .iter()
        .map(|image| picture(&image.media_type, &image.base64))
        .collect();
    let mut content = ResultContent::Text(&result.content);
    if images_inside && !pictures.is_empty() {
        if !result.content.trim().is_empty() {
            let text = (&*result.content).into();
            pictures.insert(0, BlockKind::Text { text });
        }
        content = ResultContent::Blocks(std::mem::take(&mut pictures));
    }
    if !pictures.is_empty() {
        let text = picture_note(result, &tool_use_id).into();
        pictures.insert(0, BlockKind::Text { text });
    }
    let is_error = result.is_error;
    let own = BlockKind::ToolResult {
        tool_use_id,
        content,
        is_error,
    };
    std::iter::once(own)
        .chain(pictures)
        .map(Block::new)
        .collect()
}

/// A part as a block; `ids` is given for assistant messages.
fn block<'a>(part: &'a Part, ids: Option<&mut CallIds<'a>>) -> Option<Block<'a>> {
    let kind = match (part, ids) {
        // Text without anything but white space is refused.
        (Part::Text(text), _) if text.trim().is_empty() => return None,
        (Part::Text(text), _) => BlockKind::Text {
            text: (&**text).into(),
        },
        (Part::Image { media_type, base64 }, None) => picture(media_type, base64),
        (
            Part::Reasoning {
                text,
                opaque: Some(opaque),
            },
            Some(_),
        ) => return thinking(text, opaque),
        (Part::Call(call), Some(ids)) => BlockKind::ToolUse {
            id: ids.call(&call.id),
            name: sendable_name(&call.name),
            input: RawValue::from_string(sendable_arguments(call).as_str().to_owned()).ok()?,
        },
        // Reasoning without a signature is refused; the others have no place here.
        (Part::Reasoning { .. } | Part::Image { .. } | Part::Call(_), _) => return None,
    };
    Some(Block::new(kind))
}

/// The block that this dialect's decoder made `opaque` of. Other dialects' data is left out.
fn thinking<'a>(text: &'a Arc<str>, opaque: &Json) -> Option<Block<'a>> {
    let value = opaque.to_value();
    match value["type"].as_str()? {
        "redacted_thinking" => RawValue::from_string(opaque.as_str().to_owned())
            .ok()
            .map(Block::Kept),
        "thinking" => {
            let signature = value["signature"].as_str()?.to_owned();
            Some(Block::new(BlockKind::Thinking {
                thinking: text,
                signature,
            }))
        }
        _ => None,
    }
}
