//! Request bodies of Gemini's generateContent. Signatures of thoughts go back on the very part that carried them. Reading
//! the replies is in `dialect`.

use std::borrow::Cow;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{
    CallIds, EncodedRequest, EncodedTools, Quirks, extra, generation, merged, no_output_schema,
    picture_note, schema, sendable_arguments, sendable_name,
};
use crate::json::Json;
use crate::message::{Message, Part, ToolResult};
use crate::request::{Options, Request, ToolSpec};

/// Stands for a signature on calls that another model made; the provider documents it for that.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

pub(crate) fn encode(request: &Request, quirks: &Quirks) -> EncodedRequest {
    let form = 8 + usize::from(quirks.plain_root_schema);
    let tools = (!request.tools.is_empty()).then(|| {
        request
            .tools
            .encoded(form, |specs| encode_tools(specs, quirks.plain_root_schema))
    });
    let mut notices = tools.map(EncodedTools::notices).unwrap_or_default();
    let model = Generation::of(&request.model);
    let calls = tools.is_some() && request.tools_allowed;
    let with_schema = request.options.output_schema.is_some();
    let schema_taken = quirks.output_schema && (model.is_third() || !calls);
    if with_schema && !quirks.output_schema {
        notices.push(no_output_schema());
    } else if with_schema && !schema_taken {
        notices.push(
            "this model takes no schema for its answer beside tools, so that the form of the answer is not assured"
                .to_owned(),
        );
    }
    let body = Body {
        request,
        quirks,
        tools,
        model,
        schema_taken,
    };
    EncodedRequest {
        body: serde_json::to_vec(&body).expect("a request can always be written"),
        notices,
    }
}

/// Schemas go as `parametersJsonSchema`, which takes JSON Schema, references and `additionalProperties` included;
/// `parameters` takes a small part of OpenAPI and refuses a request for any other keyword. Only `$schema` is no keyword of
/// either.
fn encode_tools(specs: &[ToolSpec], plain_root: bool) -> EncodedTools {
    let mut adapted = Vec::new();
    let list: Vec<_> = specs
        .iter()
        .map(|spec| {
            let (mut schema, changed) = schema(spec, plain_root);
            if changed {
                adapted.push(spec.name.clone());
            }
            without_dialect(&mut schema);
            json!({
                "name": &*spec.name, "description": &*spec.description,
                "parametersJsonSchema": schema,
            })
        })
        .collect();
    EncodedTools::new(&json!([{"functionDeclarations": list}]), adapted)
}

/// Removes `$schema`, which is not in the way of a property of that name.
fn without_dialect(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("$schema").is_some_and(Value::is_string) {
                members.remove("$schema");
            }
            members.values_mut().for_each(without_dialect);
        }
        Value::Array(list) => list.iter_mut().for_each(without_dialect),
        _ => {}
    }
}

/// What the generation of a model decides. A name without one is taken for a new model.
#[derive(Clone, Copy)]
struct Generation(u32);

impl Generation {
    fn of(model: &str) -> Self {
        Self(generation(model).map_or(3, |(major, _)| major))
    }

    /// From the third on: thinking by level, pictures inside of results, schemas beside tools, signatures demanded.
    fn is_third(self) -> bool {
        self.0 >= 3
    }
}

struct Body<'a> {
    request: &'a Request,
    quirks: &'a Quirks,
    tools: Option<&'a EncodedTools>,
    model: Generation,
    schema_taken: bool,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            request,
            quirks,
            tools,
            model,
            schema_taken,
        } = *self;
        let options = &request.options;
        let ours = [
            "model",
            "contents",
            "systemInstruction",
            "system_instruction",
            "tools",
        ];
        let mut extra = extra(options.extra.as_ref(), &ours);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("contents", &contents(&request.messages, quirks, model))?;
        if let Some(system) = request.system.as_deref().filter(|text| !text.is_empty()) {
            map.serialize_entry("systemInstruction", &json!({"parts": [{"text": system}]}))?;
        }
        if let Some(tools) = tools {
            map.serialize_entry("tools", &tools.list)?;
            if !request.tools_allowed {
                let config = json!({"functionCallingConfig": {"mode": "NONE"}});
                map.serialize_entry("toolConfig", &config)?;
            }
        }
        let config = generation_config(options, model, schema_taken);
        if let Some(config) = merged(config, &mut extra, "generationConfig") {
            map.serialize_entry("generationConfig", &config)?;
        }
        for (key, value) in &extra {
            if key == "toolConfig" && (tools.is_none() || !request.tools_allowed) {
                continue;
            }
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

fn generation_config(
    options: &Options,
    model: Generation,
    schema_taken: bool,
) -> Map<String, Value> {
    let mut config = Map::new();
    let mut set = |key: &str, value: Value| config.insert(key.to_owned(), value);
    if let Some(temperature) = options.temperature {
        set("temperature", json!(temperature));
    }
    if let Some(top_p) = options.top_p {
        set("topP", json!(top_p));
    }
    if let Some(limit) = options.max_output_tokens {
        set("maxOutputTokens", json!(limit));
    }
    if let Some(effort) = options.reasoning_effort.as_deref() {
        set("thinkingConfig", thinking_config(effort, model));
    }
    if let Some(output) = options.output_schema.as_ref().filter(|_| schema_taken) {
        let mut schema = output.schema.to_value();
        without_dialect(&mut schema);
        set("responseMimeType", json!("application/json"));
        set("responseJsonSchema", schema);
    }
    config
}

fn thinking_config(effort: &str, model: Generation) -> Value {
    let budget = match effort {
        "none" => 0,
        "minimal" => 512,
        "low" => 2048,
        "medium" => 8192,
        _ => 24_576,
    };
    match effort {
        // No level stands for none.
        "none" => json!({"thinkingBudget": 0}),
        _ if model.is_third() => {
            let level = if matches!(effort, "xhigh" | "max") {
                "high"
            } else {
                effort
            };
            json!({"thinkingLevel": level, "includeThoughts": true})
        }
        _ => json!({"thinkingBudget": budget, "includeThoughts": true}),
    }
}

#[derive(Serialize)]
struct Content<'a> {
    role: &'static str,
    parts: Vec<WirePart<'a>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct WirePart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<InlineData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<FunctionResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    args: Box<RawValue>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    response: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<WirePart<'a>>,
}

impl<'a> WirePart<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }

    fn picture(mime_type: &'a str, data: &'a str) -> Self {
        Self {
            inline_data: Some(InlineData { mime_type, data }),
            ..Self::default()
        }
    }
}

/// Neighbours of one role become one content; nothing empty is sent.
fn contents<'a>(messages: &'a [Message], quirks: &Quirks, model: Generation) -> Vec<Content<'a>> {
    let images_inside = quirks.result_images && model.is_third();
    let mut ids = CallIds::new(false);
    let mut wire: Vec<Content<'a>> = Vec::new();
    for message in messages {
        let (role, parts) = match message {
            Message::User(parts) => ("user", parts.iter().filter_map(user_part).collect()),
            Message::Assistant(parts) => {
                ids.next_message();
                ("model", said(parts, &mut ids, model))
            }
            Message::Tool(results) => ("user", tool_results(results, &ids, images_inside)),
        };
        if parts.is_empty() {
            continue;
        }
        match wire.last_mut() {
            Some(last) if last.role == role => last.parts.extend(parts),
            _ => wire.push(Content { role, parts }),
        }
    }
    wire
}

fn user_part(part: &Part) -> Option<WirePart<'_>> {
    match part {
        Part::Text(text) if text.is_empty() => None,
        Part::Text(text) => Some(WirePart::text(&**text)),
        Part::Image { media_type, base64 } => Some(WirePart::picture(media_type, base64)),
        Part::Reasoning { .. } | Part::Call(_) => None,
    }
}

fn tool_results<'a>(
    results: &'a [ToolResult],
    ids: &CallIds<'a>,
    images_inside: bool,
) -> Vec<WirePart<'a>> {
    let mut behind = Vec::new();
    let mut parts = Vec::new();
    for result in results {
        let id = ids.result(&result.call_id);
        let images = result.images.iter();
        let mut pictures: Vec<_> = images
            .map(|image| WirePart::picture(&image.media_type, &image.base64))
            .collect();
        if !images_inside && !pictures.is_empty() {
            behind.push(WirePart::text(picture_note(result, &id)));
            behind.append(&mut pictures);
        }
        let key = if result.is_error { "error" } else { "output" };
        parts.push(WirePart {
            function_response: Some(FunctionResponse {
                id,
                name: sendable_name(&result.name),
                response: json!({key: &*result.content}),
                parts: pictures,
            }),
            ..WirePart::default()
        });
    }
    parts.append(&mut behind);
    parts
}

/// A signature and the part that carried it.
struct Signature {
    on: On,
    signature: String,
}

enum On {
    /// The part of the text between these bytes.
    Text(usize, usize),
    /// This call of the reply.
    Call(usize),
    Thought,
}

/// The parts of an assistant message: signed thoughts, the text in the pieces that were signed, the calls.
fn said<'a>(parts: &'a [Part], ids: &mut CallIds<'a>, model: Generation) -> Vec<WirePart<'a>> {
    let mut wire = Vec::new();
    let mut text = String::new();
    let mut signatures = Vec::new();
    let mut calls = Vec::new();
    for part in parts {
        match part {
            Part::Text(more) => text.push_str(more),
            Part::Reasoning {
                text,
                opaque: Some(opaque),
            } => match signature(opaque) {
                Some(Signature {
                    on: On::Thought,
                    signature,
                }) => wire.push(WirePart {
                    thought: true,
                    thought_signature: Some(signature),
                    ..WirePart::text(&**text)
                }),
                other => signatures.extend(other),
            },
            Part::Call(call) => {
                let args = sendable_arguments(call).as_str().to_owned();
                let args = RawValue::from_string(args).unwrap_or_default();
                calls.push(WirePart {
                    function_call: Some(FunctionCall {
                        id: ids.call(&call.id),
                        name: sendable_name(&call.name),
                        args,
                    }),
                    ..WirePart::default()
                });
            }
            Part::Reasoning { .. } | Part::Image { .. } => {}
        }
    }
    let mut signed_texts = Vec::new();
    for Signature { on, signature } in signatures {
        match on {
            On::Call(at) => {
                if let Some(call) = calls.get_mut(at) {
                    call.thought_signature = Some(signature);
                }
            }
            On::Text(from, to) => signed_texts.push((from, to, signature)),
            On::Thought => {}
        }
    }
    pieces(&text, signed_texts, &mut wire);
    if model.is_third()
        && let [first, rest @ ..] = &mut *calls
        && first.thought_signature.is_none()
        && rest.iter().all(|call| call.thought_signature.is_none())
    {
        first.thought_signature = Some(NO_SIGNATURE.to_owned());
    }
    wire.append(&mut calls);
    wire
}

/// Cuts the text where signed parts began and ended. A signature whose part is not there any more stands on an empty one
/// at the end.
fn pieces(text: &str, mut signed: Vec<(usize, usize, String)>, wire: &mut Vec<WirePart<'_>>) {
    signed.sort_by_key(|(from, to, _)| (*from, *to));
    let mut at = 0;
    let mut lost = Vec::new();
    let plain = |from: usize, to: usize, wire: &mut Vec<WirePart<'_>>| {
        if from < to {
            wire.push(WirePart::text(text[from..to].to_owned()));
        }
    };
    for (from, to, signature) in signed {
        let part = (from >= at).then(|| text.get(from..to)).flatten();
        let Some(part) = part else {
            lost.push(signature);
            continue;
        };
        plain(at, from, wire);
        wire.push(WirePart {
            thought_signature: Some(signature),
            ..WirePart::text(part.to_owned())
        });
        at = to;
    }
    plain(at, text.len(), wire);
    for signature in lost {
        wire.push(WirePart {
            thought_signature: Some(signature),
            ..WirePart::text("")
        });
    }
}

/// What this dialect's decoder made of a signature. Other dialects' data is left out.
fn signature(opaque: &Json) -> Option<Signature> {
    let value = opaque.to_value();
    if value["type"].as_str()? != "thought_signature" {
        return None;
    }
    let index = |value: &Value| usize::try_from(value.as_u64()?).ok();
    let on = &value["on"];
    let on = match (
        index(&on["call"]),
        index(&on["text"][0]),
        index(&on["text"][1]),
    ) {
        (Some(at), ..) => On::Call(at),
        (None, Some(from), Some(to)) => On::Text(from, to),
        _ => On::Thought,
    };
    let signature = value["signature"].as_str()?.to_owned();
    Some(Signature { on, signature })
}
