//! What every request to a model must be, whatever happened before it: each call answered once,
//! right behind its message, and no id used twice.

use std::collections::HashSet;

use attache_model::{Message, Part, Request};

/// Looks at a request.
///
/// # Errors
///
/// What is wrong with it, in words.
pub fn well_formed(request: &Request) -> Result<(), String> {
    let mut ids: HashSet<&str> = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (place, message) in request.messages.iter().enumerate() {
        match message {
            Message::Tool(results) => {
                let answered: Vec<&str> = results.iter().map(|it| &*it.call_id).collect();
                if open.is_empty() || answered != open {
                    return Err(format!(
                        "message {place} answers {answered:?}, asked were {open:?}"
                    ));
                }
                open.clear();
            }
            Message::User(parts) | Message::Assistant(parts) => {
                if !open.is_empty() {
                    return Err(format!("before message {place} lack results of {open:?}"));
                }
                if parts.is_empty() {
                    return Err(format!("message {place} is empty"));
                }
                for part in parts {
                    if let Part::Call(call) = part {
                        if !ids.insert(&call.id) {
                            return Err(format!("call id {:?} is used twice", call.id));
                        }
                        open.push(&call.id);
                    }
                }
                if matches!(message, Message::User(_)) && !open.is_empty() {
                    return Err(format!("message {place} is of a user and calls"));
                }
            }
        }
    }
    if !open.is_empty() {
        return Err(format!("at the end lack results of {open:?}"));
    }
    match request.messages.last() {
        Some(Message::Assistant(_)) => Err("the model has the last word already".to_owned()),
        None => Err("there is no message".to_owned()),
        Some(_) => Ok(()),
    }
}
